package storage

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/fsm"
)

// What is stored of an object is what clients get of it in protobuf, but for the
// resourceVersion, which is not stored. So nothing is decoded to answer them: the
// version is put where it belongs.
//
// That holds for what this release of Kubernetes has stored. What another one has
// may lack fields that this one fills in while it decodes, or have them in another
// order. So a stored object ends with a mark of the release, in a field that the
// envelope does not have and every decoder passes over.

// Fields of the envelope and of metadata, as they are tagged.
const (
	markTag     = 15<<3 | 5 // four bytes
	metadataTag = 1<<3 | 2
	versionTag  = 6<<3 | 2
	markSize    = 1 + 4
)

// markOf is what objects of a release end with; "" has none.
func markOf(release string) []byte {
	if release == "" {
		return nil
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(release))
	return binary.LittleEndian.AppendUint32([]byte{markTag}, hash.Sum32())
}

// asSent says whether an entry holds what clients get.
func (s *Store) asSent(entry *fsm.Entry) bool {
	return len(s.mark) > 0 && bytes.HasSuffix(entry.Value, s.mark)
}

// sent is an object in protobuf: pieces of what is stored, and its version between.
type sent struct {
	before  []byte // the beginning of the envelope
	lead    []byte // of the message, in an envelope or in a list, and of metadata
	first   []byte // metadata before its version
	version []byte
	rest    []byte // of metadata and of the message
	after   []byte // the end of the envelope
}

// sentAs returns what a client gets who asks for the encoding id, if it is what is stored.
func (o *object) sentAs(id runtime.Identifier) (sent, bool) {
	if id != o.store.StoredAs {
		return sent{}, false
	}
	return o.store.sentOf(o.entry, o.index)
}

// sentOf is an entry's object at a version.
func (s *Store) sentOf(entry *fsm.Entry, index uint64) (sent, bool) {
	if !s.asSent(entry) {
		return sent{}, false
	}
	whole, ok := parseEnvelope(entry.Value)
	if !ok {
		return sent{}, false
	}
	metadata, start, ok := firstField(whole.message, metadataTag)
	if !ok {
		return sent{}, false
	}
	at, ok := emptyVersion(metadata)
	if !ok {
		return sent{}, false
	}
	small := make([]byte, 0, 48) // enough for what is not taken from the value
	small = append(small, versionTag, 0)
	small = strconv.AppendUint(small, index, 10)
	small[1] = byte(len(small) - 2) // a uint64 has at most 20 digits
	version := small
	size := len(metadata) - 2 + len(version)
	lead := small[len(small):]
	lead = binary.AppendUvarint(append(lead, messageTag), uint64(fieldSize(size)+len(whole.message)-start-len(metadata)))
	lead = binary.AppendUvarint(append(lead, metadataTag), uint64(size))
	return sent{
		before: whole.before, lead: lead, first: metadata[:at], version: version,
		rest: whole.message[start+at+2:], after: whole.after[:len(whole.after)-markSize],
	}, true
}

// fieldSize is how long a field is that holds so many bytes, with its tag and its length.
func fieldSize(size int) int {
	n := 1 + 1 + size
	for left := size; left >= 1<<7; left >>= 7 {
		n++
	}
	return n
}

// firstField returns what a message's first field holds, and where that starts.
func firstField(message []byte, tag byte) (field []byte, start int, ok bool) {
	if len(message) == 0 || message[0] != tag {
		return nil, 0, false
	}
	start, end, ok := fieldAt(message, 0)
	return message[start:end], start, ok
}

// emptyVersion finds the resourceVersion in metadata as it is stored: with nothing in it. Its
// fields are in order, and those before hold strings.
func emptyVersion(metadata []byte) (at int, ok bool) {
	for at < len(metadata) && metadata[at] < versionTag {
		_, end, ok := fieldAt(metadata, at)
		if !ok || metadata[at]&7 != 2 {
			return 0, false
		}
		at = end
	}
	return at, at+1 < len(metadata) && metadata[at] == versionTag && metadata[at+1] == 0
}

// size is how long the message is with what leads it, which is what stands in a list.
func (s *sent) size() int { return len(s.lead) + len(s.first) + len(s.version) + len(s.rest) }

// appendTo appends the message with what leads it.
func (s *sent) appendTo(to []byte) []byte {
	return append(append(append(append(to, s.lead...), s.first...), s.version...), s.rest...)
}

// whole is the object on its own.
func (s *sent) whole() []byte {
	to := make([]byte, 0, len(s.before)+s.size()+len(s.after))
	return append(s.appendTo(append(to, s.before...)), s.after...)
}

// metadata is the object's metadata, decoded alone.
func (o *object) metadata() (*metav1.ObjectMeta, bool) {
	if !o.store.asSent(o.entry) {
		return nil, false
	}
	whole, _ := parseEnvelope(o.entry.Value)
	field, _, ok := firstField(whole.message, metadataTag)
	if !ok {
		return nil, false
	}
	metadata := new(metav1.ObjectMeta)
	if metadata.Unmarshal(field) != nil {
		return nil, false
	}
	metadata.ResourceVersion = strconv.FormatUint(o.index, 10)
	return metadata, true
}
