package cluster

import (
	"slices"

	"github.com/hashicorp/raft"
)

// fit makes an append one that raft can take, without changing what it says.
//
// What is committed is only what this append vouches for: entries of this node after those sent
// may be another leader's, and never be committed. That is rule 5 of AppendEntries in the Raft
// paper; raft takes its own last entry for the bound, which is right only for a leader that has
// found out by refused appends where the logs part, and not after an answerInstall.
//
// Raft also refuses an append unless it has the entry before the first one sent, to compare the
// terms. After an install it has none at all, only a snapshot, which may be newer than that of the
// leader: the leader then sends its own snapshot, which answerInstall keeps from raft, goes on
// after that, is refused, and so for ever. But what this node has applied is committed, and is in
// the log of every leader from then on (Leader Completeness): nothing is left to compare. So the
// append begins after what is applied, and at raft's index 0, before which there is nothing.
func (t *transport) fit(request *raft.AppendEntriesRequest) {
	request.LeaderCommitIndex = min(request.LeaderCommitIndex, request.PrevLogEntry+uint64(len(request.Entries)))
	previous := request.PrevLogEntry
	if previous == 0 || previous >= t.raft.LastIndex() || t.has(previous) {
		return
	}
	applied := t.raft.AppliedIndex()
	if previous > applied {
		return
	}
	request.PrevLogEntry, request.PrevLogTerm = 0, 0
	request.Entries = slices.DeleteFunc(request.Entries, func(entry *raft.Log) bool { return entry.Index <= applied })
}

// has says whether the log holds an entry.
func (t *transport) has(index uint64) bool {
	var entry raft.Log
	return t.logs.GetLog(index, &entry) == nil
}
