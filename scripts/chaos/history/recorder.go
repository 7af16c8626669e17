package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// FileName is the history's file in the directory of a run.
const FileName = "history.jsonl"

// recordsMax bounds the memory of a run: each record is a few hundred bytes, a list's items included
// about one kilobyte.
const recordsMax = 3 << 20

// line is one line of the file; exactly one field is set, or Watch and Event: then it is an event of the
// watch of that ID.
type line struct {
	Op     *Op     `json:"op,omitempty"`
	Watch  *Watch  `json:"watch,omitempty"` // when it has ended
	Of     uint64  `json:"of,omitempty"`
	Event  *Event  `json:"event,omitempty"`
	Digest *Digest `json:"digest,omitempty"`
	Note   *Note   `json:"note,omitempty"`
}

// Recorder collects the history of a run. Its methods are safe for concurrent use.
type Recorder struct {
	began time.Time
	ids   atomic.Uint64

	mu      sync.Mutex
	history History           // guarded by mu; its watches have ended
	open    map[uint64]*Watch // guarded by mu
	records int               // guarded by mu
	limit   int
	file    *os.File
	out     *bufio.Writer // guarded by mu
	failure error         // guarded by mu; the first one of the file
}

// NewRecorder starts a recording, with its file in dir.
func NewRecorder(dir string) (*Recorder, error) {
	file, err := os.Create(filepath.Join(dir, FileName))
	if err != nil {
		return nil, fmt.Errorf("cannot keep the history: %w", err)
	}
	return &Recorder{
		began: time.Now(), open: make(map[uint64]*Watch), limit: recordsMax,
		file: file, out: bufio.NewWriterSize(file, 1<<16),
	}, nil
}

// Now is the time on the recorder's clock, which is monotonic.
func (r *Recorder) Now() int64 { return int64(time.Since(r.began)) }

// NextID numbers calls and watches, and makes written values unique.
func (r *Recorder) NextID() uint64 { return r.ids.Add(1) }

// Add records a call that has ended.
func (r *Recorder) Add(op Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.write(line{Op: &op}, 1+len(op.Items)/8) {
		r.history.Ops = append(r.history.Ops, op)
	}
}

// Calls returns how many calls have been recorded.
func (r *Recorder) Calls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.history.Ops)
}

// Open begins the record of a watch.
func (r *Recorder) Open(w Watch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[w.ID] = &w
}

// Saw records an event of an open watch, at the time in it.
func (r *Recorder) Saw(watch uint64, event Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.open[watch]; w != nil && r.write(line{Of: watch, Event: &event}, 1) {
		w.Events = append(w.Events, event)
	}
}

// Owe notes that an open watch has been given the time to come to a version.
func (r *Recorder) Owe(watch, version uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.open[watch]; w != nil {
		w.Owed = version
	}
}

// End ends the record of a watch. A code is the answer's, or that of the ERROR event; 0 is a stream that
// just ended.
func (r *Recorder) End(watch uint64, code int, err string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.open[watch]; w != nil {
		w.End, w.Code, w.Error = r.Now(), code, err
		r.close(w)
	}
}

func (r *Recorder) close(w *Watch) {
	delete(r.open, w.ID)
	r.write(line{Watch: w}, 1)
	r.history.Watches = append(r.history.Watches, *w)
}

// Digest records a node's word about its state.
func (r *Recorder) Digest(d Digest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.write(line{Digest: &d}, 1) {
		r.history.Digests = append(r.history.Digests, d)
	}
}

// Note marks a fault, its end, or the start of a process, at this moment.
func (r *Recorder) Note(fault string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := Note{At: r.Now(), Text: fault}
	r.history.Notes = append(r.history.Notes, n)
	r.write(line{Note: &n}, 0)
	r.failure = errors.Join(r.failure, r.out.Flush())
}

// Full tells that no more is recorded, so that clients may as well stop.
func (r *Recorder) Full() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.history.Cut
}

// write puts a line in the file. It returns false when the recorder is full.
func (r *Recorder) write(l line, records int) bool {
	if r.records += records; r.records > r.limit {
		r.history.Cut = true
		return false
	}
	data, err := json.Marshal(l)
	if err == nil {
		_, err = r.out.Write(append(data, '\n'))
	}
	if err != nil && r.failure == nil {
		r.failure = err
	}
	return true
}

// History is what has been recorded so far; watches that are still open are in it as they stand.
func (r *Recorder) History() *History {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := &History{
		Ops: slices.Clone(r.history.Ops), Watches: slices.Clone(r.history.Watches),
		Digests: slices.Clone(r.history.Digests), Notes: slices.Clone(r.history.Notes), Cut: r.history.Cut,
	}
	for _, w := range r.open {
		still := *w
		still.Events = slices.Clone(w.Events)
		h.Watches = append(h.Watches, still)
	}
	return h
}

// Close ends the recording and its file. It returns what went wrong with the file, if anything did.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.open {
		r.close(w)
	}
	return errors.Join(r.failure, r.out.Flush(), r.file.Close())
}

// Read reads a history back from its file. A last line that is torn is left out.
func Read(from io.Reader) (*History, error) {
	h, events := new(History), make(map[uint64][]Event)
	decoder := json.NewDecoder(from)
	for {
		var l line
		err := decoder.Decode(&l)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return h, nil
		}
		if err != nil {
			return nil, fmt.Errorf("history: %w", err)
		}
		switch {
		case l.Op != nil:
			h.Ops = append(h.Ops, *l.Op)
		case l.Event != nil:
			events[l.Of] = append(events[l.Of], *l.Event)
		case l.Watch != nil:
			l.Watch.Events = events[l.Watch.ID]
			h.Watches = append(h.Watches, *l.Watch)
		case l.Digest != nil:
			h.Digests = append(h.Digests, *l.Digest)
		case l.Note != nil:
			h.Notes = append(h.Notes, *l.Note)
		}
	}
}
