package storage

import (
	"bytes"
	"compress/flate"
	"io"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/runtime"
)

// DefaultEncodingBytes bounds a node's Encodings: enough for some 5,000 pods in
// the two usual content types.
const DefaultEncodingBytes = 64 << 20

// Encodings bounds the memory that a node's stores spend on encodings of their
// objects. The oldest goes first, and is made again when somebody asks for it.
type Encodings struct {
	limit int64

	mu    sync.Mutex
	bytes int64    // guarded by mu
	queue []queued // guarded by mu; oldest first
}

// queued is weak: an object that nobody has any more goes at once, with its
// encodings, though they count until their turn comes.
type queued struct {
	object weak.Pointer[object]
	id     runtime.Identifier
	bytes  int64
}

// NewEncodings makes a bound for the stores of one node.
func NewEncodings(limit int64) *Encodings { return &Encodings{limit: limit} }

// add counts an encoding that object has under id, and drops old ones.
func (e *Encodings) add(o *object, id runtime.Identifier, size int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.bytes += int64(size)
	e.queue = append(e.queue, queued{weak.Make(o), id, int64(size)})
	for e.bytes > e.limit {
		oldest := e.queue[0]
		e.queue[0] = queued{}
		e.queue = e.queue[1:]
		e.bytes -= oldest.bytes
		if o := oldest.object.Value(); o != nil {
			o.encodings.Delete(oldest.id)
		}
	}
}

// encoding is an object in one encoding, made once.
type encoding struct {
	once  sync.Once
	bytes []byte
	err   error

	deflating sync.Once
	deflated  []byte // the part of bytes that stands in a list
}

// encodingOf returns the object's encoding under id.
func (o *object) encodingOf(id runtime.Identifier, encode func(runtime.Object, io.Writer) error) *encoding {
	slot, ok := o.encodings.Load(id)
	if !ok {
		slot, _ = o.encodings.LoadOrStore(id, &encoding{})
	}
	enc := slot.(*encoding)
	enc.once.Do(func() {
		var buf bytes.Buffer
		if enc.err = o.encode(id, encode, &buf); enc.err != nil {
			return
		}
		enc.bytes = bytes.Clone(buf.Bytes()) // without the room that the buffer has left
		o.store.Encodings.add(o, id, len(enc.bytes)+len(id))
	})
	return enc
}

// deflaters are costly to make and good to use again.
var deflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

// deflate compresses data to whole bytes that may stand anywhere in a stream of
// their kind but at its end: the stream is no shorter for what came before.
func deflate(data []byte) []byte {
	var buf bytes.Buffer
	w := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(w)
	w.Reset(&buf)
	// A bytes.Buffer takes everything.
	_, _ = w.Write(data)
	_ = w.Flush()
	return bytes.Clone(buf.Bytes())
}
