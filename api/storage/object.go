package storage

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/fsm"
)

// object is what an entry means to Kubernetes. It is decoded once per entry and
// node, by whoever needs that first, and kept in the entry's memo while Memos
// allows. It is shared and must not be changed.
//
// It is also what is sent: as a runtime.CacheableObject it lets a thousand
// watchers of one event share one encoding.
type object struct {
	store *Store
	entry *fsm.Entry
	index uint64 // the version that it shows

	decoding sync.Once
	decoded  runtime.Object // of decode
	failure  error          // of decode

	encodings sync.Map               // runtime.Identifier -> *encoding
	last      atomic.Pointer[object] // see asOf
}

var (
	_ runtime.CacheableObject   = (*object)(nil)
	_ metav1.ObjectMetaAccessor = (*object)(nil)
)

// tableMark is in the identifier of every encoder that makes tables.
const tableMark = "Kind=Table"

// watchMark begins the identifier of every encoder of watch events.
const watchMark = `{"name":"watch","`

// objectOf returns the entry's object.
func (s *Store) objectOf(entry *fsm.Entry) *object {
	if memo, ok := entry.Memo().(*object); ok {
		return memo
	}
	obj := entry.SetMemo(&object{store: s, entry: entry, index: entry.ModIndex}).(*object)
	s.Memos.add(objectBytes, s.State.View)
	return obj
}

// decodedOf returns the entry's object, decoded.
func (s *Store) decodedOf(entry *fsm.Entry) (runtime.Object, error) {
	return s.objectOf(entry).decode()
}

// decode returns what registries work on. It is shared.
func (o *object) decode() (runtime.Object, error) {
	o.decoding.Do(func() {
		o.decoded, o.failure = o.store.decode(o.entry.Value, o.index)
		if o.failure != nil {
			o.failure = fmt.Errorf("%s at %d: %w", o.entry.Key, o.entry.ModIndex, o.failure)
			return
		}
		o.store.Memos.add(decodedBytes(len(o.entry.Value)), o.store.State.View)
	})
	return o.decoded, o.failure
}

// decode makes a new object of stored bytes, at the version that they have.
func (s *Store) decode(value []byte, index uint64) (runtime.Object, error) {
	decoded, _, err := s.Codec.Decode(value, nil, s.NewFunc())
	if err != nil {
		return nil, err
	}
	return decoded, s.versioner.UpdateObject(decoded, index)
}

// copy returns an object that the caller may change.
func (o *object) copy() (runtime.Object, error) {
	decoded, err := o.decode()
	if err != nil {
		return nil, err
	}
	return decoded.DeepCopyObject(), nil
}

// asOf returns the object as its last event shows it: its content, at the
// version of the entry that deleted it or moved it out of a selector. An entry
// is followed by exactly one other, so there is one such version.
func (o *object) asOf(index uint64) *object {
	if last := o.last.Load(); last != nil {
		return last
	}
	o.last.CompareAndSwap(nil, &object{store: o.store, entry: o.entry, index: index})
	return o.last.Load()
}

// CacheEncode implements runtime.CacheableObject. An encoding lives as long as
// the entry, so a table row is not kept: it shows an age, and the encoder that
// makes it counts on being called to know that it has sent the column headers.
// What is stored as it is sent is not kept a second time.
func (o *object) CacheEncode(id runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer) error {
	if strings.Contains(string(id), tableMark) {
		obj, err := o.copy()
		if err != nil {
			return err
		}
		return encode(obj, w)
	}
	if sent, ok := o.sentAs(id); ok {
		_, err := w.Write(sent.whole())
		return err
	}
	enc := o.encodingOf(id, encode)
	if enc.err != nil {
		return enc.err
	}
	_, err := w.Write(enc.bytes)
	return err
}

// encode makes an encoding. Encoders convert what they get and change nothing of it
// but its kind, which they set and take back; so they get a struct of their own. That
// of a watch event gets the object with its encodings: the event is one of them with
// a few bytes around it.
func (o *object) encode(id runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer) error {
	if strings.HasPrefix(string(id), watchMark) {
		return encode(o, w)
	}
	if sent, ok := o.sentAs(id); ok {
		_, err := w.Write(sent.whole())
		return err
	}
	decoded, err := o.decode()
	if err != nil {
		return err
	}
	own := reflect.New(reflect.TypeOf(decoded).Elem())
	own.Elem().Set(reflect.ValueOf(decoded).Elem())
	return encode(own.Interface().(runtime.Object), w)
}

// GetObject implements runtime.CacheableObject. What cannot be decoded shows as
// the reason: there is no other way to say it here.
func (o *object) GetObject() runtime.Object {
	obj, err := o.copy()
	if err != nil {
		return statusOf(err)
	}
	return obj
}

// GetObjectMeta implements metav1.ObjectMetaAccessor, without decoding more than that
// where it can. It is shared, too.
func (o *object) GetObjectMeta() metav1.Object {
	if meta, ok := o.metadata(); ok {
		return meta
	}
	if decoded, err := o.decode(); err == nil {
		if accessor, ok := decoded.(metav1.ObjectMetaAccessor); ok {
			return accessor.GetObjectMeta()
		}
	}
	return nil
}

// GetObjectKind implements runtime.Object. What registries work on does not say its kind.
func (o *object) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object.
func (o *object) DeepCopyObject() runtime.Object { return o.GetObject() }
