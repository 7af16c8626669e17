package storage

import (
	"bytes"
	"encoding/binary"
)

// frame is how an encoding of a list follows from those of its items.
type frame struct {
	// around is what comes before and after items of so many bytes.
	around func(size int) (head, tail []byte)
	// item is an item, given its encoding as an object of its own.
	item func(whole []byte) (lead, body []byte, ok bool)
	// comma is how many bytes of its lead the first item lacks.
	comma int
}

// frameOf learns from the encoding of the empty list.
func frameOf(empty []byte) (frame, bool) {
	if list, ok := parseEnvelope(empty); ok {
		return protobufFrame(list), true
	}
	const end = "]}\n"
	head, ok := bytes.CutSuffix(empty, []byte(end))
	if !ok || !bytes.HasPrefix(head, []byte(kindStart)) || !bytes.HasSuffix(head, []byte(`,"items":[`)) {
		return frame{}, false
	}
	return frame{
		around: func(int) ([]byte, []byte) { return head, []byte(end) },
		item:   jsonItem,
		comma:  1,
	}, true
}

const kindStart = `{"kind":"`

// jsonItem is the object without kind and version, which items do not have, and
// without the end of line.
func jsonItem(whole []byte) (lead, body []byte, ok bool) {
	_, rest, found := bytes.Cut(whole, []byte(`","apiVersion":"`))
	_, rest, more := bytes.Cut(rest, []byte(`",`))
	rest, ends := bytes.CutSuffix(rest, []byte("\n"))
	return []byte(",{"), rest, found && more && ends && bytes.HasPrefix(whole, []byte(kindStart))
}

// The protobuf encoding of an object is a message, runtime.Unknown, that holds
// the object's own in a field; a list holds its items in a field of the same
// number. All fields are of the kind that begins with a length.
const (
	envelopeMagic = "k8s\x00"
	messageTag    = 2<<3 | 2
)

// envelope is the encoding of an object, with what is around its own message.
type envelope struct{ before, message, after []byte }

func parseEnvelope(encoded []byte) (envelope, bool) {
	if !bytes.HasPrefix(encoded, []byte(envelopeMagic)) {
		return envelope{}, false
	}
	for at := len(envelopeMagic); at < len(encoded); {
		start, end, ok := fieldAt(encoded, at)
		if !ok {
			return envelope{}, false
		}
		if encoded[at] == messageTag {
			return envelope{encoded[:at], encoded[start:end], encoded[end:]}, true
		}
		at = end
	}
	return envelope{}, false
}

// fieldAt returns where what a field holds begins and ends, given where its tag stands.
func fieldAt(message []byte, at int) (start, end int, ok bool) {
	size, n := binary.Uvarint(message[at+1:])
	if start = at + 1 + n; n <= 0 || size > uint64(len(message)-start) {
		return 0, 0, false
	}
	return start, start + int(size), true
}

func protobufFrame(list envelope) frame {
	field := func(size int) []byte { return binary.AppendUvarint([]byte{messageTag}, uint64(size)) }
	return frame{
		around: func(size int) (head, tail []byte) {
			head = append(bytes.Clone(list.before), field(len(list.message)+size)...)
			return append(head, list.message...), list.after
		},
		item: func(whole []byte) (lead, body []byte, ok bool) {
			object, ok := parseEnvelope(whole)
			return field(len(object.message)), object.message, ok
		},
	}
}
