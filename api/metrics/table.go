package metrics

import (
	"context"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kontiki/cluster"
	"kontiki/watch"
)

// emit gives a value to a scrape, with the values of its labels.
type emit func(value float64, labels ...string)

// family is a metric that is read when somebody asks.
type family struct {
	name, help string
	labels     []string
	kind       prometheus.ValueType
	read       func(m *Metrics, to emit)
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// nodeFamilies are those that need a node.
func nodeFamilies() []family {
	return []family{
		{"kontiki_raft_state", "1 for the state that raft is in on this node, 0 for the others.", []string{"state"}, gauge, readState},
		{"kontiki_raft_leader_known", "1 if this node knows a leader: without one, writes wait and then fail.", nil, gauge, ofStatus(func(s cluster.Status) float64 { return flag(s.Leader != "") })},
		{"kontiki_raft_term", "Raft's term. Each election makes a new one.", nil, counter, ofStatus(func(s cluster.Status) float64 { return float64(s.Term) })},
		{"kontiki_raft_last_log_index", "Index of the newest entry in this node's log.", nil, gauge, ofStatus(func(s cluster.Status) float64 { return float64(s.LastIndex) })},
		{"kontiki_raft_commit_index", "Index up to which this node knows entries to be committed.", nil, gauge, ofStatus(func(s cluster.Status) float64 { return float64(s.CommitIndex) })},
		{"kontiki_raft_applied_index", "Index up to which readers on this node see writes: the newest resourceVersion. Compare it with that of other nodes, not with the commit index: a restore moves it ahead.", nil, gauge, ofStatus(func(s cluster.Status) float64 { return float64(s.AppliedIndex) })},
		{"kontiki_raft_last_contact_seconds", "Time since this node heard the leader; 0 on the leader, -1 for never.", nil, gauge, ofStatus(func(s cluster.Status) float64 { return max(s.LastContact.Seconds(), -1) })},
		{"kontiki_raft_snapshot_index", "Index of the newest snapshot, 0 if there is none.", nil, gauge, ofStorage(func(s cluster.Storage) float64 { return float64(s.SnapshotIndex) })},
		{"kontiki_raft_first_log_index", "Index of the oldest entry in this node's log; less than that a follower must get as a snapshot.", nil, gauge, ofStorage(func(s cluster.Storage) float64 { return float64(s.FirstIndex) })},
		{"kontiki_snapshot_bytes", "Bytes of the snapshots on disk.", nil, gauge, ofStorage(func(s cluster.Storage) float64 { return float64(s.SnapshotBytes) })},
		{"kontiki_log_bytes", "Bytes of the log's file. It shrinks only at a start, when it is mostly free.", nil, gauge, ofStorage(func(s cluster.Storage) float64 { return float64(s.LogBytes) })},
		{"kontiki_member_alive", "1 for a member that gossip can reach from this node, 0 for one that it cannot.", []string{"member", "role"}, gauge, readMembers},
		{"kontiki_follower_lag_entries", "On the leader: how many entries a follower has not applied yet of those that the leader has; missing if it does not answer.", []string{"member"}, gauge, readLag},
		{"kontiki_backup_failed", "On the leader, if it makes scheduled backups: 1 if the newest attempt failed, 0 if not.", nil, gauge, ofBacked(func(b cluster.Backed) (float64, bool) { return flag(b.Error != ""), true })},
		{"kontiki_backup_last_success_timestamp_seconds", "On the leader, if it has made scheduled backups: when the newest was whole, in seconds since 1970.", nil, gauge, ofBacked(func(b cluster.Backed) (float64, bool) { return float64(b.Last.UnixMilli()) / 1e3, !b.Last.IsZero() })},
		{"kontiki_disk_free_bytes", "Bytes free on the file system of the data directory.", nil, gauge, ofDisk(func(d cluster.Disk) float64 { return float64(d.Free) })},
		{"kontiki_disk_total_bytes", "Bytes of that file system.", nil, gauge, ofDisk(func(d cluster.Disk) float64 { return float64(d.Total) })},
		{"kontiki_disk_reserve_bytes", "Free bytes below which writes are refused, the largest first (--disk-reserve).", nil, gauge, ofDisk(func(d cluster.Disk) float64 { return float64(d.Reserve) })},
		{"kontiki_disk_level", "What the disk still takes: 0 everything, 1 no large writes, 2 deletes and small updates, 3 only deletes.", nil, gauge, ofDisk(func(d cluster.Disk) float64 { return float64(d.Level) })},
	}
}

// otherFamilies are those that do without one.
func otherFamilies() []family {
	return []family{
		{"apiserver_storage_objects", "Objects of a resource.", []string{"resource"}, gauge, func(m *Metrics, to emit) {
			for _, o := range m.objects() {
				to(float64(o.Count), o.Name())
			}
		}},
		{"apiserver_resource_objects", "Objects of a resource, as newer dashboards want it.", []string{"group", "resource"}, gauge, func(m *Metrics, to emit) {
			for _, o := range m.objects() {
				to(float64(o.Count), o.Group, o.Resource)
			}
		}},
		{"kontiki_object_bytes", "Bytes of the objects of a resource as stored; may be a little old on large clusters.", []string{"resource"}, gauge, func(m *Metrics, to emit) {
			for _, o := range m.objects() {
				to(float64(o.Bytes), o.Name())
			}
		}},
		{"kontiki_watchers", "Watches of a resource that read from this node's window.", []string{"resource"}, gauge, readWindow(func(w watch.TopicStats) float64 { return float64(w.Cursors) })},
		{"kontiki_watch_window_events", "Events that watches of a resource can resume from.", []string{"resource"}, gauge, readWindow(func(w watch.TopicStats) float64 { return float64(w.Events) })},
		{"kontiki_watch_window_bytes", "Bytes of the values in these events.", []string{"resource"}, gauge, readWindow(func(w watch.TopicStats) float64 { return float64(w.Bytes) })},
		{"kontiki_certificate_expiry_timestamp_seconds", "Until when a certificate of this node is good, in seconds since 1970.", []string{"certificate"}, gauge, readCertificates},
		{"kontiki_api_connections", "Open connections to the API.", nil, gauge, func(m *Metrics, to emit) { to(float64(m.conns.open.Load())) }},
		{"kontiki_start_time_seconds", "When this server started, in seconds since 1970.", nil, gauge, func(m *Metrics, to emit) { to(float64(m.started.UnixMilli()) / 1e3) }},
		{"kontiki_build_info", "1, with the versions as labels.", []string{"version", "kubernetes", "go"}, gauge, func(m *Metrics, to emit) {
			to(1, m.sources.Build, m.sources.Kubernetes, runtime.Version())
		}},
	}
}

// timing is a histogram that package cluster keeps.
type timing struct {
	name, help string
	of         func(*cluster.Timings) *cluster.Histogram
}

func timings() []timing {
	return []timing{
		{"kontiki_propose_duration_seconds", "A write through raft: from the proposal on this node until it is applied here.", func(t *cluster.Timings) *cluster.Histogram { return &t.Propose }},
		{"kontiki_forward_duration_seconds", "A follower's question to the leader (a write or a read index), until its answer.", func(t *cluster.Timings) *cluster.Histogram { return &t.Forward }},
		{"kontiki_read_index_duration_seconds", "Until a read knew which index it has to see.", func(t *cluster.Timings) *cluster.Histogram { return &t.ReadIndex }},
		{"kontiki_apply_duration_seconds", "A batch of entries, applied to the state.", func(t *cluster.Timings) *cluster.Histogram { return &t.Apply }},
		{"kontiki_log_store_duration_seconds", "A batch of entries, written to the log and fsynced.", func(t *cluster.Timings) *cluster.Histogram { return &t.LogStore }},
		{"kontiki_snapshot_duration_seconds", "A snapshot, written to disk.", func(t *cluster.Timings) *cluster.Histogram { return &t.Snapshot }},
	}
}

// lagTimeout bounds what a scrape waits for followers that do not answer.
const lagTimeout = 500 * time.Millisecond

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

func ofStatus(f func(cluster.Status) float64) func(*Metrics, emit) {
	return func(m *Metrics, to emit) { to(f(m.sources.Node.Status())) }
}

func ofStorage(f func(cluster.Storage) float64) func(*Metrics, emit) {
	return func(m *Metrics, to emit) { to(f(m.sources.Node.Storage())) }
}

func ofDisk(f func(cluster.Disk) float64) func(*Metrics, emit) {
	return func(m *Metrics, to emit) { to(f(m.sources.Node.Disk())) }
}

// ofBacked gives no value where there are no scheduled backups.
func ofBacked(f func(cluster.Backed) (value float64, known bool)) func(*Metrics, emit) {
	return func(m *Metrics, to emit) {
		backed := m.sources.Node.Backed()
		if backed == nil {
			return
		}
		if value, known := f(*backed); known {
			to(value)
		}
	}
}

func readState(m *Metrics, to emit) {
	now := strings.ToLower(m.sources.Node.Status().State)
	for _, state := range []string{"follower", "candidate", "leader", "shutdown"} {
		to(flag(state == now), state)
	}
}

func readMembers(m *Metrics, to emit) {
	for _, member := range m.sources.Node.Members() {
		to(flag(member.Alive), member.Name, string(member.Role))
	}
}

func readLag(m *Metrics, to emit) {
	if status := m.sources.Node.Status(); status.Leader != status.Name {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lagTimeout)
	defer cancel()
	applied := m.sources.Node.Applied(ctx)
	last := m.sources.Node.Status().AppliedIndex // CommitIndex counts otherwise, after a restore
	for name, index := range applied {
		to(float64(last-min(index, last)), name)
	}
}

func readWindow(f func(watch.TopicStats) float64) func(*Metrics, emit) {
	return func(m *Metrics, to emit) {
		if m.sources.Window == nil {
			return
		}
		for _, t := range m.sources.Window().Topics {
			to(f(t), resourceOf(t.Topic).Name())
		}
	}
}

func readCertificates(m *Metrics, to emit) {
	if m.sources.Certificates == nil {
		return
	}
	for _, c := range m.sources.Certificates() {
		to(float64(c.NotAfter.Unix()), c.Name)
	}
}
