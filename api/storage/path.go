package storage

import "google.golang.org/protobuf/encoding/protowire"

// Path leads to a string in a message of protobuf: the numbers of the fields from the outer to
// the inner one.
type Path []protowire.Number

// In returns the string in an object as it is stored. It is not there if it has no encoding in
// protobuf, or if the field is left out.
func (p Path) In(stored []byte) (string, bool) {
	whole, ok := parseEnvelope(stored)
	if !ok || len(p) == 0 {
		return "", false
	}
	message := whole.message
	for _, number := range p {
		if message, ok = fieldOf(message, number); !ok {
			return "", false
		}
	}
	return string(message), true
}

// fieldOf returns what a field of a message holds, if the message has it, with a length.
func fieldOf(message []byte, number protowire.Number) ([]byte, bool) {
	for len(message) > 0 {
		found, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return nil, false
		}
		size := protowire.ConsumeFieldValue(found, kind, message[tag:])
		if size < 0 {
			return nil, false
		}
		if found == number {
			value, n := protowire.ConsumeBytes(message[tag:])
			return value, kind == protowire.BytesType && n == size
		}
		message = message[tag+size:]
	}
	return nil, false
}
