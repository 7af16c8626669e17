package fields

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// heir is an entry of managedFields after an update.
type heir struct {
	metav1.ManagedFieldsEntry
	of int // which entry it has its time from; -1 is the update itself
}

// maxEntries is how many entries there may be before upstream begins to merge them, by their times.
const maxEntries = 9

// Update gives obj, which is about to replace old, the managedFields that upstream's field manager
// gives it. It has none yet; the client has brought some, or not.
func (o *Owners) Update(old, obj runtime.Object, brought []metav1.ManagedFieldsEntry, manager string) error {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	before, sketch := o.change(old, obj, brought, manager)
	if sketch != nil {
		if heirs, ok := o.later.get(sketch); ok {
			accessor.SetManagedFields(inherit(heirs, before))
			return nil
		}
	}
	start := time.Now()
	accessor.SetManagedFields(brought)
	o.manager.UpdateNoErrors(old, obj, manager)
	if heirs, ok := heirsIn(accessor.GetManagedFields(), before, start); ok && sketch != nil {
		o.later.put(sketch, heirs)
	}
	return nil
}

// change is all that decides who owns what then, and the entries from which that follows; nil if
// it cannot be told.
func (o *Owners) change(old, obj runtime.Object, brought []metav1.ManagedFieldsEntry, manager string) (before []metav1.ManagedFieldsEntry, sketch []byte) {
	accessor, err := meta.Accessor(old)
	if err != nil {
		return nil, nil
	}
	before = accessor.GetManagedFields()
	to := addText(make([]byte, 0, 8<<10), manager)
	if o.subresource == "" && brought != nil { // what is brought to a subresource does not count
		to = addEntries(to, before) // that what was brought cannot be read
		before = brought
	}
	if len(before) == 0 || len(before) > maxEntries || !distinct(before) {
		return nil, nil // taken back, or for upstream to merge
	}
	to = addEntries(to, before)
	from, ok := o.outlined(old)
	into, fine := o.outlined(obj)
	if !ok || !fine {
		return nil, nil
	}
	if to, ok = o.outline.diff(to, from, into); !ok || len(to) > maxSketch {
		return nil, nil
	}
	return before, to
}

// addEntries appends entries but for their times.
func addEntries(to []byte, entries []metav1.ManagedFieldsEntry) []byte {
	to = append(to, byte(len(entries)))
	for i := range entries {
		e := &entries[i]
		for _, text := range []string{e.Manager, string(e.Operation), e.APIVersion, e.FieldsType, e.Subresource} {
			to = addText(to, text)
		}
		to = addText(to, e.FieldsV1.GetRawBytes())
	}
	return to
}

// same says whether two entries are of one manager, and so replace each other.
func same(a, b *metav1.ManagedFieldsEntry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.APIVersion == b.APIVersion && a.Subresource == b.Subresource
}

func distinct(entries []metav1.ManagedFieldsEntry) bool {
	for i := range entries {
		for j := range i {
			if same(&entries[i], &entries[j]) {
				return false
			}
		}
	}
	return true
}

// inherit makes the entries of heirs, in the order that upstream gives them.
func inherit(heirs []heir, before []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	now := &metav1.Time{Time: time.Now().UTC()}
	after := make([]metav1.ManagedFieldsEntry, len(heirs))
	for i, heir := range heirs {
		after[i] = heir.ManagedFieldsEntry
		if after[i].Time = now; heir.of >= 0 {
			after[i].Time = before[heir.of].Time
		}
	}
	slices.SortFunc(after, func(a, b metav1.ManagedFieldsEntry) int {
		return cmp.Or(cmp.Compare(a.Operation, b.Operation), cmp.Compare(seconds(a.Time), seconds(b.Time)),
			cmp.Compare(a.Manager, b.Manager), cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Subresource, b.Subresource))
	})
	if len(after) == 0 {
		return nil
	}
	return after
}

func seconds(t *metav1.Time) int64 {
	if t == nil {
		return 0
	}
	return t.Unix()
}

// heirsIn finds out from where each entry has its time. An update that began at start makes times
// after that. It returns false if one is from elsewhere.
func heirsIn(after, before []metav1.ManagedFieldsEntry, start time.Time) ([]heir, bool) {
	heirs := make([]heir, len(after))
	for i := range after {
		heirs[i] = heir{after[i], slices.IndexFunc(before, func(e metav1.ManagedFieldsEntry) bool {
			return same(&e, &after[i]) && e.Time.Equal(after[i].Time)
		})}
		if made := after[i].Time; heirs[i].of < 0 && (made == nil || made.Time.Before(start)) {
			return nil, false
		}
		heirs[i].Time = nil
		heirs[i].FieldsV1 = after[i].FieldsV1.DeepCopy()
	}
	return heirs, true
}
