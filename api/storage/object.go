package storage

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/fsm"
)

// object is what an entry means to Kubernetes, made once per entry and node and
// kept in the entry's memo while Memos allows. It is shared and must not be
// changed.
//
// It is also what watches send: as a runtime.CacheableObject it lets a thousand
// watchers of one event share one encoding.
type object struct {
	metav1.Object // reads of the decoded object; its setters must not be called
	decoded       runtime.Object
	encodings     sync.Map               // runtime.Identifier -> *encoding
	kept          *Encodings             // counts them
	last          atomic.Pointer[object] // see asOf
}

var _ runtime.CacheableObject = (*object)(nil)

// tableMark is in the identifier of every encoder that makes tables.
const tableMark = "Kind=Table"

// watchMark begins the identifier of every encoder of watch events.
const watchMark = `{"name":"watch","`

// objectOf returns the entry's object, decoding it on first use.
func (s *Store) objectOf(entry *fsm.Entry) (*object, error) {
	if memo, ok := entry.Memo().(*object); ok {
		return memo, nil
	}
	decoded, err := s.decode(entry.Value, entry.ModIndex)
	if err != nil {
		return nil, fmt.Errorf("%s at %d: %w", entry.Key, entry.ModIndex, err)
	}
	obj, err := newObject(decoded, s.Encodings)
	if err != nil {
		return nil, err
	}
	obj = entry.SetMemo(obj).(*object)
	if s.Memos != nil {
		s.Memos.add(len(entry.Value), s.State.View)
	}
	return obj, nil
}

func newObject(decoded runtime.Object, kept *Encodings) (*object, error) {
	accessor, err := meta.Accessor(decoded)
	if err != nil {
		return nil, err
	}
	return &object{Object: accessor, decoded: decoded, kept: kept}, nil
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
func (o *object) copy() runtime.Object { return o.decoded.DeepCopyObject() }

// asOf returns the object as its last event shows it: its content, at the
// version of the entry that deleted it or moved it out of a selector. An entry
// is followed by exactly one other, so there is one such version.
func (o *object) asOf(index uint64) (*object, error) {
	if last := o.last.Load(); last != nil {
		return last, nil
	}
	decoded := o.copy()
	last, err := newObject(decoded, o.kept)
	if err != nil {
		return nil, err
	}
	last.Object.SetResourceVersion(fmt.Sprint(index))
	o.last.CompareAndSwap(nil, last)
	return o.last.Load(), nil
}

// CacheEncode implements runtime.CacheableObject. An encoding lives as long as
// the entry, so a table row is not kept: it shows an age, and the encoder that
// makes it counts on being called to know that it has sent the column headers.
//
// Encoders convert what they get and do not change it, as with the lists of
// upstream's watch cache. That of a watch event gets the object with its
// encodings: the event is one of them with a few bytes around it.
func (o *object) CacheEncode(id runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer) error {
	if strings.Contains(string(id), tableMark) {
		return encode(o.copy(), w)
	}
	from := o.decoded
	if strings.HasPrefix(string(id), watchMark) {
		from = o
	}
	enc := o.encodingOf(id, func(w io.Writer) error { return encode(from, w) })
	if enc.err != nil {
		return enc.err
	}
	_, err := w.Write(enc.bytes)
	return err
}

// GetObject implements runtime.CacheableObject.
func (o *object) GetObject() runtime.Object { return o.copy() }

// GetObjectKind implements runtime.Object.
func (o *object) GetObjectKind() schema.ObjectKind { return o.decoded.GetObjectKind() }

// DeepCopyObject implements runtime.Object.
func (o *object) DeepCopyObject() runtime.Object { return o.copy() }
