package metrics

import (
	"encoding/json"
	"runtime"
	"time"
)

// Report is what a node tells about itself: to other nodes, which show it. What
// another version adds is ignored by this one, and what it leaves out is zero.
type Report struct {
	State         string        `json:"state"`
	Leader        string        `json:"leader"` // as this node knows it
	Term          uint64        `json:"term"`
	CommitIndex   uint64        `json:"commitIndex"`
	AppliedIndex  uint64        `json:"appliedIndex"`
	SnapshotIndex uint64        `json:"snapshotIndex"`
	LogBytes      int64         `json:"logBytes"`
	SnapshotBytes int64         `json:"snapshotBytes"`
	Disk          Disk          `json:"disk"`
	Rates         Rates         `json:"ratesPerSecond"`
	Watchers      int           `json:"watchers"`
	Connections   int64         `json:"connections"`
	MemoryBytes   uint64        `json:"memoryBytes"` // taken from the system by Go
	Started       time.Time     `json:"started"`
	Certificates  []Certificate `json:"certificates"`
	BackupError   string        `json:"backupError,omitempty"` // why the newest scheduled backup failed
}

// Disk is the file system of the data directory.
type Disk struct {
	Free    uint64 `json:"free"` // bytes, as the others
	Total   uint64 `json:"total"`
	Reserve uint64 `json:"reserve"`
	Level   string `json:"level"` // ok, low, scant or full
}

// Report returns this node's own.
func (m *Metrics) Report() Report {
	status, storage, disk := m.sources.Node.Status(), m.sources.Node.Storage(), m.sources.Node.Disk()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	r := Report{
		State: status.State, Leader: status.Leader, Term: status.Term,
		CommitIndex: status.CommitIndex, AppliedIndex: status.AppliedIndex,
		SnapshotIndex: storage.SnapshotIndex, LogBytes: storage.LogBytes, SnapshotBytes: storage.SnapshotBytes,
		Disk:  Disk{disk.Free, disk.Total, disk.Reserve, disk.Level.String()},
		Rates: m.rates.now(), Connections: m.conns.open.Load(),
		MemoryBytes: memory.Sys - memory.HeapReleased, Started: m.started,
	}
	if m.sources.Window != nil {
		for _, t := range m.sources.Window().Topics {
			r.Watchers += t.Cursors
		}
	}
	if backed := m.sources.Node.Backed(); backed != nil {
		r.BackupError = backed.Error
	}
	if m.sources.Certificates != nil {
		r.Certificates = m.sources.Certificates()
	}
	return r
}

// Encoded is Report for the wire.
func (m *Metrics) Encoded() []byte {
	data, _ := json.Marshal(m.Report()) // of a struct without anything that could fail
	return data
}

// Objects returns what this node holds, by resource.
func (m *Metrics) Objects() []Objects { return m.objects() }
