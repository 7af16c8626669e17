package storage_test

import (
	"bytes"
	"context"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/apis/example"
	upstream "k8s.io/apiserver/pkg/storage"

	"kontiki/fsm"
)

// TestEncodedOnce: however many watches send an event, it is encoded once for
// each encoding that they want.
func TestEncodedOnce(t *testing.T) {
	t.Parallel()
	leader, _ := newReplicas(0)
	store := leader.store(t)
	mustCreate(t, store, labelled("a", "1"))
	mustSet(t, store, "a", label("2"))
	mustDelete(t, store, "a")
	encoded := &counter{}
	var watches sync.WaitGroup
	for range 20 {
		w := mustWatch(t, store, upstream.ListOptions{ResourceVersion: "1"})
		watches.Go(func() {
			for range 2 { // the change and the deletion
				encoded.check(t, <-w.ResultChan())
			}
		})
	}
	watches.Wait()
	if n := encoded.calls.Load(); n != 4 {
		t.Errorf("two events in two encodings were encoded %d times", n)
	}
}

// counter counts encodings.
type counter struct{ calls atomic.Int64 }

func (c *counter) check(t *testing.T, e event) {
	obj, ok := e.Object.(runtime.CacheableObject)
	if !ok {
		t.Errorf("event with a %T", e.Object)
		return
	}
	for _, id := range []runtime.Identifier{"one", "two"} {
		var got bytes.Buffer
		err := obj.CacheEncode(id, func(obj runtime.Object, w io.Writer) error {
			c.calls.Add(1)
			_, err := io.WriteString(w, string(id)+" "+obj.(*example.Pod).ResourceVersion)
			return err
		}, &got)
		want := string(id) + " " + podOf(t, e).ResourceVersion
		if err != nil || got.String() != want {
			t.Errorf("encoded %q %v, want %q", got.String(), err, want)
		}
	}
}

// TestTableRowsAreNotKept: a row shows an age, and column headers go with the
// first row of each stream.
func TestTableRowsAreNotKept(t *testing.T) {
	t.Parallel()
	leader, _ := newReplicas(0)
	store := leader.store(t)
	mustCreate(t, store, labelled("a", "1"))
	obj := (<-mustWatch(t, store, upstream.ListOptions{}).ResultChan()).Object.(runtime.CacheableObject)
	for _, want := range []string{"first", "second"} {
		var got bytes.Buffer
		encode := func(_ runtime.Object, w io.Writer) error {
			_, err := io.WriteString(w, want)
			return err
		}
		if err := obj.CacheEncode("json meta.k8s.io/v1, Kind=Table", encode, &got); err != nil || got.String() != want {
			t.Errorf("got %q %v, want %q", got.String(), err, want)
		}
	}
}

// TestDecodedOnce: a version is decoded once on a node, by whoever asks first.
func TestDecodedOnce(t *testing.T) {
	t.Parallel()
	leader, late := newReplicas(1)
	mustCreate(t, leader.store(t), labelled("a", "1"))
	late[0].catchUp()
	counting := &countingCodec{Codec: codec}
	store := podStore(t, late[0].backend(), "/core", counting)
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			if _, err := get(store, "a", "0"); err != nil {
				t.Error(err)
			}
			mustList(t, store, upstream.ListOptions{ResourceVersion: "0"})
			expect(t, mustWatch(t, store, upstream.ListOptions{ResourceVersion: "0"}), "ADDED a=1@1")
		})
	}
	readers.Wait()
	first := counting.decoded.Load() // those who came at once may each have decoded
	mustList(t, store, upstream.ListOptions{ResourceVersion: "0"})
	if again := counting.decoded.Load(); first > 8 || again != first {
		t.Errorf("decoded %d times, then %d", first, again)
	}
	entry, _ := late[0].machine.View().Get("/core/pods/ns/a")
	if _, shared := entry.Memo().(runtime.CacheableObject); !shared {
		t.Errorf("the entry remembers a %T", entry.Memo())
	}
}

// countingCodec counts what it decodes.
type countingCodec struct {
	runtime.Codec
	decoded atomic.Int64
}

func (c *countingCodec) Decode(data []byte, gvk *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	c.decoded.Add(1)
	return c.Codec.Decode(data, gvk, into)
}

// TestUndecodable is an entry that another version of the program wrote.
func TestUndecodable(t *testing.T) {
	t.Parallel()
	leader, _ := newReplicas(0)
	store := leader.store(t)
	mustCreate(t, store, labelled("a", "1"))
	cmd := fsm.Command{Op: fsm.OpCreate, Key: "/core/pods/ns/b", Value: []byte("?")}
	if _, err := leader.Propose(context.Background(), cmd); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, store, labelled("c", "1"))
	for verb, err := range map[string]error{
		"get":    second(get(store, "b", "")),
		"list":   second(list(store, upstream.ListOptions{})),
		"update": set(store, "b", &example.Pod{}, label("2")),
		"delete": remove(store, "b", &example.Pod{}, nil),
	} {
		if !upstream.IsInternalError(err) {
			t.Errorf("%s: got %v, want an internal error", verb, err)
		}
	}
	expect(t, mustWatch(t, store, upstream.ListOptions{}), "ADDED a=1@1, ERROR 500, closed")
	expect(t, mustWatch(t, store, upstream.ListOptions{ResourceVersion: "2"}), "ADDED c=1@3")
}

func second[T any](_ T, err error) error { return err }
