package storage

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/fsm"
)

// compressFrom is upstream's: longer answers are compressed, if the client likes.
// Parts of writeSize are written at a time.
const (
	compressFrom = 128 << 10
	writeSize    = 64 << 10
)

// sharedList is a list that is sent as the encodings that its items have already.
// In compact JSON and in protobuf, which programs ask for, it is byte for byte
// what upstream's encoder makes; other encodings are made by that.
type sharedList struct {
	store    *Store
	list     runtime.Object // without its items
	entries  []*fsm.Entry
	compress http.Header // of the answer, if it may be compressed
}

var _ runtime.CacheableObject = (*sharedList)(nil)

// Compress lets an answer that is a list be compressed, and says so in header
// when it is. The items are compressed one by one, and each only once: together
// they are longer than as a whole, and cost a fraction of the time.
func (a *Answer) Compress(header http.Header) {
	for _, one := range a.shared {
		if list, ok := one.shared.(*sharedList); ok {
			list.compress = header
		}
	}
}

// CacheEncode implements runtime.CacheableObject.
func (l *sharedList) CacheEncode(id runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer) error {
	var empty bytes.Buffer
	if err := encode(l.list, &empty); err != nil {
		return err
	}
	frame, ok := frameOf(empty.Bytes())
	if !ok {
		return l.encodeWhole(encode, w)
	}
	if size, ok := l.sentSize(id); ok && !l.compresses(size) {
		return l.writeSent(w, frame, size)
	}
	parts := make([]part, len(l.entries))
	total := 0
	for i, entry := range l.entries {
		item := l.store.objectOf(entry)
		p := part{encoding: item.encodingOf(id, encode), of: item, id: id}
		if p.err != nil {
			return p.err
		}
		if p.lead, p.body, ok = frame.item(p.bytes); !ok {
			return fmt.Errorf("encode a list: an item begins with %.40q", p.bytes)
		}
		total += len(p.lead) + len(p.body)
		parts[i] = p
	}
	head, tail := frame.around(total)
	if len(parts) > 0 {
		parts[0].lead = parts[0].lead[frame.comma:]
	}
	if l.compresses(len(head) + total + len(tail)) {
		l.sayCompressed()
		return writeCompressed(w, head, parts, tail)
	}
	return writeParts(w, head, parts, tail)
}

func (l *sharedList) compresses(size int) bool { return l.compress != nil && size > compressFrom }

// sentSize is how long the items are, if what is stored of them is what is sent.
func (l *sharedList) sentSize(id runtime.Identifier) (size int, ok bool) {
	if id != l.store.StoredAs {
		return 0, false
	}
	for _, entry := range l.entries {
		item, ok := l.store.sentOf(entry, entry.ModIndex)
		if !ok {
			return 0, false
		}
		size += item.size()
	}
	return size, true
}

// writeSent writes items as they are stored. They are looked at twice, which is cheaper than
// to remember what was seen.
func (l *sharedList) writeSent(w io.Writer, frame frame, size int) error {
	head, tail := frame.around(size)
	buf := append(make([]byte, 0, min(len(head)+size+len(tail), 2*writeSize)), head...)
	for _, entry := range l.entries {
		item, _ := l.store.sentOf(entry, entry.ModIndex)
		if len(buf) > 0 && len(buf)+item.size() > cap(buf) {
			if _, err := w.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
		buf = item.appendTo(buf)
	}
	_, err := w.Write(append(buf, tail...))
	return err
}

// encodeWhole is for encodings that are not assembled.
func (l *sharedList) encodeWhole(encode func(runtime.Object, io.Writer) error, w io.Writer) error {
	list, err := l.whole()
	if err != nil {
		return err
	}
	if l.compress == nil {
		return encode(list, w)
	}
	var whole bytes.Buffer
	if err := encode(list, &whole); err != nil {
		return err
	}
	if whole.Len() <= compressFrom {
		_, err := whole.WriteTo(w)
		return err
	}
	l.sayCompressed()
	compressor, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err == nil {
		_, err = whole.WriteTo(compressor)
	}
	if err != nil {
		return err
	}
	return compressor.Close()
}

func (l *sharedList) sayCompressed() {
	l.compress.Set("Content-Encoding", "gzip")
	l.compress.Add("Vary", "Accept-Encoding")
}

// GetObject implements runtime.CacheableObject: the list with its items, or why there is none.
func (l *sharedList) GetObject() runtime.Object {
	full, err := l.whole()
	if err != nil {
		return statusOf(err)
	}
	return full
}

func (l *sharedList) whole() (runtime.Object, error) {
	full := l.list.DeepCopyObject()
	items, err := itemsOf(full)
	if err == nil {
		err = l.store.assignItems(items, l.entries)
	}
	return full, err
}

// GetObjectKind implements runtime.Object.
func (l *sharedList) GetObjectKind() schema.ObjectKind { return l.list.GetObjectKind() }

// DeepCopyObject implements runtime.Object.
func (l *sharedList) DeepCopyObject() runtime.Object { return l.GetObject().DeepCopyObject() }
