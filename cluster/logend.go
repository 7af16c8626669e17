package cluster

import (
	"encoding/binary"
	"strconv"
)

// logEnd is the last entry that this node has, committed or not.
func (n *Node) logEnd() LogEnd {
	stats := n.raft.Stats()
	number := func(key string) uint64 {
		v, _ := strconv.ParseUint(stats[key], 10, 64)
		return v
	}
	return LogEnd{Term: number("last_log_term"), Index: number("last_log_index")}
}

func (e LogEnd) append(dst []byte) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, e.Term), e.Index)
}

func decodeLogEnd(b []byte) (LogEnd, error) {
	if len(b) != 16 {
		return LogEnd{}, errMessage
	}
	return LogEnd{Term: binary.BigEndian.Uint64(b), Index: binary.BigEndian.Uint64(b[8:])}, nil
}
