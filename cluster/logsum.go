package cluster

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime"

	"github.com/hashicorp/raft"
)

// A bit that flips on the disk makes another command of an entry, and this node another state
// than the others have: neither raft nor bbolt looks. So each entry is stored with a checksum,
// in the field that raft leaves to whom stands between it and its store. It does not leave
// this node; another one computes its own.

// sealed returns copies of entries with their checksums.
func sealed(logs []*raft.Log) []*raft.Log {
	copies, all := make([]raft.Log, len(logs)), make([]*raft.Log, len(logs))
	for i, log := range logs {
		copies[i] = *log
		copies[i].Extensions = checksum(log)
		all[i] = &copies[i]
	}
	return all
}

func checksum(log *raft.Log) []byte {
	head := binary.BigEndian.AppendUint64(nil, log.Index)
	head = append(binary.BigEndian.AppendUint64(head, log.Term), byte(log.Type))
	sum := crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, log.Data)
	return binary.BigEndian.AppendUint32(nil, sum)
}

// read gets an entry as it was stored, or ErrCorrupt. One without a checksum is from before
// there were any.
func (s *logStore) read(index uint64, log *raft.Log) error {
	if err := s.BoltStore.GetLog(index, log); err != nil {
		return err
	}
	if len(log.Extensions) > 0 && !bytes.Equal(log.Extensions, checksum(log)) || log.Index != index {
		return fmt.Errorf("%w: entry %d of the log is not what was stored", ErrCorrupt, index)
	}
	log.Extensions = nil
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
