package storage

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"

	"kontiki/fsm"
	"kontiki/watch"
)

// Proposer is how a write gets into the log and how a read learns what "now"
// is. A cluster node is one.
type Proposer interface {
	// Propose returns once this node has applied the command.
	Propose(ctx context.Context, cmd fsm.Command) (fsm.Result, error)
	// ReadIndex returns an index that covers every write that had been
	// acknowledged, anywhere, when it was called.
	ReadIndex(ctx context.Context) (uint64, error)
}

// State is this node's copy of the data.
type State interface {
	View() *fsm.View
	// WaitIndex returns once the view has reached index.
	WaitIndex(ctx context.Context, index uint64) error
}

// Feed is the ordered stream of what changed.
type Feed interface {
	Subscribe(topic string, from uint64) (*watch.Cursor, error)
	Select(topic string, from uint64, value string, values func(fsm.Event) []string) (*watch.Selection, error)
	Since(topic string, after, upto uint64) ([]fsm.Event, error)
	Floor(topic string) uint64
}

// Backend is what a node offers to all of its stores.
type Backend struct {
	Proposer Proposer
	State    State
	Feed     Feed
	// Silence tells whether this node lacks a leader, and for how long, -1 for
	// ever. What it serves all the same is then marked, see freshness.go. Nil
	// is never.
	Silence func() (since time.Duration, silent bool)
	// CaughtUp is closed once this node has had all data at some time since its
	// start; before that it may be older than what it served in an earlier life.
	// Nil is closed.
	CaughtUp <-chan struct{}
	// Memos bounds what is kept decoded; nil keeps all.
	Memos *Memos
}

// Config says what one store holds.
type Config struct {
	Backend
	GroupResource schema.GroupResource
	// Codec encodes for the log and decodes to what registries work on.
	Codec       runtime.Codec
	NewFunc     func() runtime.Object
	NewListFunc func() runtime.Object
	// StoredAs identifies the encoder by which clients get what Codec stores, but for
	// the resourceVersion, and Release what it is that Codec stores: see sent.go. Both
	// may be empty.
	StoredAs runtime.Identifier
	Release  string
	// Encodings is shared by all stores of a node; nil is one for this store.
	Encodings *Encodings
	// Root comes before every key, "/core" for instance. Together with the
	// resource prefix, "/pods", it makes the topic of the feed.
	Root           string
	ResourcePrefix string
	// Triggers compute fields by which many watches select one value each, as
	// kubelets do: see select.go.
	Triggers storage.IndexerFuncs
	// TriggerPaths lead to what Triggers compute, in what is stored. Where one has no path,
	// the object is decoded.
	TriggerPaths map[string]Path
	// Uncached is set for what upstream serves without a watch cache. A list of
	// it at version 0 has a limit, and "too large resource version" comes
	// without a hint when to try again.
	Uncached bool
}

// Store is the storage of one resource.
type Store struct {
	Config
	versioner storage.APIObjectVersioner
	prefix    string // ResourcePrefix with its closing slash: "/pod" also begins "/podtemplates/x"
	topic     string
	mark      []byte       // at the end of what is stored
	clock     func() int64 // unix seconds, for expiry times
}

var _ storage.Interface = (*Store)(nil)

// New makes the store of one resource.
func New(cfg Config) (*Store, error) {
	if !oneSegment(cfg.Root) {
		return nil, fmt.Errorf("storage root %q: want one segment, like /core", cfg.Root)
	}
	if !oneSegment(cfg.ResourcePrefix) {
		return nil, fmt.Errorf("resource prefix %q: want one segment, like /pods", cfg.ResourcePrefix)
	}
	if cfg.Encodings == nil {
		cfg.Encodings = NewEncodings(DefaultEncodingBytes)
	}
	return &Store{
		Config: cfg,
		prefix: cfg.ResourcePrefix + "/",
		topic:  cfg.Root + cfg.ResourcePrefix + "/",
		mark:   markOf(cfg.Release),
		clock:  unixNow,
	}, nil
}

func oneSegment(path string) bool {
	return len(path) > 1 && path[0] == '/' && strings.Count(path, "/") == 1
}

// Versioner implements storage.Interface.
func (s *Store) Versioner() storage.Versioner { return s.versioner }

// Stats implements storage.Interface.
func (s *Store) Stats(context.Context) (storage.Stats, error) {
	return storage.Stats{ObjectCount: int64(s.State.View().Count(s.topic, ""))}, nil
}

// ReadinessCheck implements storage.Interface. A store is ready when its node
// is, and the node answers for that itself.
func (s *Store) ReadinessCheck() error { return nil }

// RequestWatchProgress implements storage.Interface. It exists for a cache on
// top of etcd; watches here make their own bookmarks.
func (s *Store) RequestWatchProgress(context.Context) error { return nil }

// EnableResourceSizeEstimation implements storage.Interface. The request cost
// estimator it feeds is not used.
func (s *Store) EnableResourceSizeEstimation(storage.KeysFunc) error { return nil }

// GetCurrentResourceVersion implements storage.Interface.
func (s *Store) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	view, err := s.latest(ctx)
	if err != nil {
		return 0, err
	}
	return view.Index(), nil
}

// CompactRevision implements storage.Interface: the newest version that this
// node can no longer go back to.
func (s *Store) CompactRevision() int64 { return int64(s.Feed.Floor(s.topic)) }

// prepareKey checks a registry's key and puts the root before it.
func (s *Store) prepareKey(key string, recursive bool) (string, error) {
	key, err := storage.PrepareKey(s.prefix, key, recursive)
	if err != nil {
		return "", err
	}
	return s.Root + key, nil
}
