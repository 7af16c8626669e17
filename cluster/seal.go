package cluster

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime"

	"github.com/hashicorp/raft"
	"github.com/klauspost/compress/s2"

	"kontiki/fsm"
)

// A bit that flips on the disk makes another command of an entry, and this node another state
// than the others have: neither raft nor bbolt looks. So each entry is stored with a checksum.
// And bbolt writes whole pages of 4 KiB, of which a pod takes one or two for itself: so a larger
// command is stored compressed, and shares its page with others.
//
// What is added stands in the field that raft leaves to whom stands between it and its store:
//
//	checksum of index, term, type and command u32 | method u8, if it is compressed
//
// It does not leave this node. Another one stores its own.
const (
	checksumBytes = 4
	methodS2      = 1 // the command is a block of S2

	// compressFrom is the size from which on a command is compressed. There are several smaller ones
	// to a page anyway.
	compressFrom = 1 << 10
	// sealBytes is how much memory for compressed commands is kept between writes.
	sealBytes = 256 << 10
	// maxEntry is more than any command is long, encoded: what claims more was not stored.
	maxEntry = fsm.MaxValue + frameSlack
)

// A sealer makes what is stored of entries. It belongs to the writing goroutine.
type sealer struct {
	space []byte // of the compressed commands of one write, the newest at its end
}

// seal returns copies of entries as they are stored, good until the next call.
func (s *sealer) seal(logs []*raft.Log) []*raft.Log {
	if s.space = s.space[:0]; cap(s.space) > sealBytes {
		s.space = nil
	}
	copies, all := make([]raft.Log, len(logs)), make([]*raft.Log, len(logs))
	for i, log := range logs {
		copies[i] = *log
		copies[i].Extensions = checksum(log)
		if small := s.compress(log.Data); small != nil {
			copies[i].Data, copies[i].Extensions = small, append(copies[i].Extensions, methodS2)
		}
		all[i] = &copies[i]
	}
	return all
}

// compress returns nil if data is to be stored as it is.
func (s *sealer) compress(data []byte) []byte {
	if len(data) < compressFrom || len(data) > maxEntry {
		return nil
	}
	most := s2.MaxEncodedLen(len(data))
	if cap(s.space)-len(s.space) < most {
		s.space = make([]byte, 0, max(most, sealBytes)) // what was handed out keeps the old one alive
	}
	begin := len(s.space)
	small := s2.Encode(s.space[begin:begin:begin+most], data)
	if len(small) >= len(data) {
		return nil
	}
	s.space = s.space[:begin+len(small)]
	return small
}

// unseal makes of what was stored the entry that it was, and checks it. An entry without a checksum
// is from before there were any.
func unseal(log *raft.Log) error {
	extra := log.Extensions
	log.Extensions = nil
	if len(extra) == checksumBytes+1 && extra[checksumBytes] == methodS2 {
		size, err := s2.DecodedLen(log.Data)
		if err != nil || size > maxEntry {
			return fmt.Errorf("a compressed command of %d bytes: %w", size, s2.ErrCorrupt)
		}
		if log.Data, err = s2.Decode(nil, log.Data); err != nil {
			return err
		}
		extra = extra[:checksumBytes]
	}
	if len(extra) > 0 && !bytes.Equal(extra, checksum(log)) {
		return errors.New("its checksum does not match")
	}
	return nil
}

func checksum(log *raft.Log) []byte {
	head := binary.BigEndian.AppendUint64(nil, log.Index)
	head = append(binary.BigEndian.AppendUint64(head, log.Term), byte(log.Type))
	sum := crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, log.Data)
	return binary.BigEndian.AppendUint32(nil, sum)
}

// read gets an entry as it was before it was stored, or ErrCorrupt.
func (s *logStore) read(index uint64, log *raft.Log) error {
	if err := s.BoltStore.GetLog(index, log); err != nil {
		return err
	}
	if err := unseal(log); err != nil {
		return fmt.Errorf("%w: entry %d of the log is not what was stored: %w", ErrCorrupt, index, err)
	}
	if log.Index != index {
		return fmt.Errorf("%w: entry %d of the log is entry %d", ErrCorrupt, index, log.Index)
	}
	return nil
}

// GetLog implements raft.LogStore. Raft panics over an entry that it cannot read: as with Set,
// the goroutine ends instead, and the process by Node.Fatal. Its next start says what to do.
func (s *logStore) GetLog(index uint64, log *raft.Log) error {
	err := s.read(index, log)
	if errors.Is(err, ErrCorrupt) {
		_ = s.poison(err)
		runtime.Goexit()
	}
	return err
}
