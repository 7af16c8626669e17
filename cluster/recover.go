package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/raft"

	"kontiki/fsm"
)

// Recovery is a stopped node whose cluster has lost its majority, about to go on alone.
type Recovery struct {
	Name    string
	Last    LogEnd        // what this node has
	Servers []raft.Server // of the last configuration that it knows
	Peers   []PeerLog     // what the others of them say, in order of name

	cfg      Config
	storage  *storage
	nodeFile *nodeFile
}

// LogEnd is the last entry of a log. Of two, the one with the later term is newer, then the
// one with the higher index.
type LogEnd struct{ Term, Index uint64 }

func (e LogEnd) newerThan(other LogEnd) bool {
	return e.Term > other.Term || e.Term == other.Term && e.Index > other.Index
}

// PeerLog is what a peer said.
type PeerLog struct {
	Name, Addr string
	Voter      bool
	Last       LogEnd
	Err        error // it did not answer
}

// OpenRecovery opens the data of a stopped node, as a start of it would, and asks its peers
// what they have.
func OpenRecovery(ctx context.Context, cfg Config) (*Recovery, error) {
	if _, err := os.Stat(filepath.Join(cfg.DataDir, "raft", logFile)); err != nil {
		return nil, fmt.Errorf("nothing to recover: %w", err)
	}
	if err := checkFormat(cfg.DataDir); err != nil {
		return nil, err
	}
	s, err := openStorage(filepath.Join(cfg.DataDir, "raft"), &cfg, func(error) {})
	if err != nil {
		return nil, err
	}
	r := &Recovery{Name: cfg.Name, cfg: cfg, storage: s}
	if r.nodeFile, err = openNodeFile(cfg.DataDir, cfg.Identity.ClusterID(), cfg.Name); err == nil {
		err = r.nodeFile.complete(true, cfg.NonVoter)
	}
	if err == nil {
		r.Servers, r.Last, err = s.lastKnown()
	}
	if err == nil && !slices.ContainsFunc(r.Servers, func(server raft.Server) bool { return string(server.ID) == cfg.Name }) {
		err = fmt.Errorf("this node is not in the last configuration that it knows: recover another one")
	}
	if err == nil && len(r.Servers) > 1 {
		err = r.nodeFile.cancelRecovery() // one that was interrupted before it changed anything
	}
	if err == nil {
		err = r.askPeers(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return r, nil
}

// lastKnown reads the newest configuration and the end of the log.
func (s *storage) lastKnown() (servers []raft.Server, end LogEnd, err error) {
	snapshots, err := s.snapshots.List()
	if err != nil {
		return nil, end, err
	}
	if len(snapshots) > 0 {
		servers, end = snapshots[0].Configuration.Servers, LogEnd{snapshots[0].Term, snapshots[0].Index}
	}
	last, err := s.logs.LastIndex()
	for index := end.Index + 1; err == nil && index <= last; index++ {
		var entry raft.Log
		if err = s.logs.GetLog(index, &entry); err == nil && entry.Type == raft.LogConfiguration {
			servers = raft.DecodeConfiguration(entry.Data).Servers
		}
		end = LogEnd{entry.Term, entry.Index}
	}
	return servers, end, err
}

// askPeers asks all other servers of the configuration for the end of their log.
func (r *Recovery) askPeers(ctx context.Context) error {
	l := &listener{identity: r.cfg.Identity, logger: r.cfg.Logger, life: ctx}
	l.conns, l.founding = make(map[net.Conn]string), r.nodeFile.foundings(r.cfg.Identity.ClusterID())
	p := &peers{limit: r.cfg.MaxCommandBytes + frameSlack, wait: r.cfg.DialTimeout, links: make(map[linkKey]*link)}
	p.dial = func(name, addr string, timeout time.Duration) (net.Conn, error) {
		return l.dial(name, addr, protoPeer, timeout)
	}
	defer p.close()
	asking := &Node{peers: p}
	for _, server := range r.Servers {
		if string(server.ID) == r.Name {
			continue
		}
		peer := PeerLog{Name: string(server.ID), Addr: string(server.Address), Voter: server.Suffrage == raft.Voter}
		askCtx, cancel := context.WithTimeout(ctx, 2*r.cfg.VerifyTimeout)
		reply, err := asking.exchange(askCtx, peer.Name, peer.Addr, askLogEnd, nil)
		cancel()
		if peer.Err = err; err == nil {
			peer.Last, peer.Err = decodeLogEnd(reply.payload)
		}
		r.Peers = append(r.Peers, peer)
	}
	slices.SortFunc(r.Peers, func(a, b PeerLog) int { return strings.Compare(a.Name, b.Name) })
	return ctx.Err()
}

// Refusal says why this node should not be the one that goes on, nil if it may.
func (r *Recovery) Refusal() error {
	voters, alive := 0, 0
	for _, server := range r.Servers {
		if server.Suffrage == raft.Voter {
			voters++
			if string(server.ID) == r.Name {
				alive++
			}
		}
	}
	for _, peer := range r.Peers {
		if peer.Err != nil {
			continue
		}
		if peer.Voter {
			alive++
		}
		if peer.Last.newerThan(r.Last) {
			return fmt.Errorf("node %s at %s answers and has newer data (term %d, index %d; here term %d, index %d): stop it and recover there", peer.Name, peer.Addr, peer.Last.Term, peer.Last.Index, r.Last.Term, r.Last.Index)
		}
	}
	if alive > voters/2 && !r.nodeFile.recovering() {
		return fmt.Errorf("%d of %d voters are well, this node included: no majority is lost, start kontiki server here", alive, voters)
	}
	return nil
}

// Run makes this node the only member of its cluster, with all that is in its log. It is a
// founding of its own from then on, so that members of before cannot go on beside it. The
// files of before stay as a copy, whose path it returns. It can be run again if it fails; in
// between, a server does not start on this data.
func (r *Recovery) Run() (saved string, err error) {
	if saved, err = r.save(); err != nil {
		return "", err
	}
	if err := r.nodeFile.startRecovery(); err != nil {
		return saved, err
	}
	var self raft.Server
	for _, server := range r.Servers {
		if string(server.ID) == r.Name {
			self = server
		}
	}
	self.Suffrage = raft.Voter
	_, transport := raft.NewInmemTransport(self.Address)
	node := &Node{cfg: r.cfg, self: self.ID}
	err = raft.RecoverCluster(node.raftConfig(), renewing{fsm.New()}, r.storage.cache, r.storage.logs, r.storage.snapshots, transport,
		raft.Configuration{Servers: []raft.Server{self}})
	if err != nil {
		return saved, fmt.Errorf("cannot recover, the old files are in %s: %w", saved, err)
	}
	return saved, r.nodeFile.endRecovery()
}

// save copies the log and the snapshots, for their owner's eyes only.
func (r *Recovery) save() (dir string, err error) {
	from := filepath.Join(r.cfg.DataDir, "raft")
	dir, err = os.MkdirTemp(r.cfg.DataDir, "raft.before-recover-"+time.Now().UTC().Format(backupTime)+"-*")
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		return "", errors.Join(fmt.Errorf("cannot keep a copy of %s, nothing was changed: %w", from, err), os.RemoveAll(dir))
	}
	syscall.Sync()
	return dir, nil
}

// Close lets go of the data directory.
func (r *Recovery) Close() error { return r.storage.close() }

// renewing gives the recovered state indexes that nobody has seen: what the lost nodes had
// beyond this log was seen by clients, and its indexes must not come again.
type renewing struct{ *fsm.FSM }

// Snapshot implements raft.FSM.
func (r renewing) Snapshot() (raft.FSMSnapshot, error) {
	r.Renew()
	return r.FSM.Snapshot()
}
