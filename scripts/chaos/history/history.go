// Package history records what the clients of a chaos run did and saw: every call, every watch event,
// every fault, on one monotonic clock. The checkers read it when the run is over; a file keeps it for
// people when the run has failed, and so that it can be checked again.
package history

// Kind is what a call does.
type Kind string

// The kinds of call. Update is a compare-and-swap on the version in Asked, Set is an update whatever the
// version is.
const (
	Create Kind = "create"
	Update Kind = "update"
	Set    Kind = "set"
	Delete Kind = "delete"
	Get    Kind = "get"
	List   Kind = "list"
)

// Outcome is what a client may conclude from an answer, or from the want of one.
type Outcome string

// The outcomes. Refused is definite: it did not happen and never will.
const (
	OK      Outcome = "ok"
	Refused Outcome = "refused"
	Unknown Outcome = "unknown"
)

// Op is one call. Times are nanoseconds since the recorder was made.
type Op struct {
	ID       uint64  `json:"id"`
	Client   string  `json:"client"`
	Node     string  `json:"node"`
	Kind     Kind    `json:"kind"`
	Resource string  `json:"resource"`
	Key      string  `json:"key,omitempty"` // resource/name; empty for lists
	Call     int64   `json:"call"`
	Return   int64   `json:"return"`
	Asked    string  `json:"asked,omitempty"` // version: of a read, or the precondition of a write
	Exact    bool    `json:"exact,omitempty"` // resourceVersionMatch of a list
	Value    string  `json:"value,omitempty"` // unique: what a write writes, what a get reads
	Outcome  Outcome `json:"outcome"`
	Code     int     `json:"code,omitempty"` // HTTP, 0 for no answer
	RV       uint64  `json:"rv,omitempty"`   // of the object or the list that was returned
	Items    []Item  `json:"items,omitempty"`
	Limit    int     `json:"limit,omitempty"` // of a page
	Pages    uint64  `json:"pages,omitempty"` // of which list this is a page: the first page's ID
	More     bool    `json:"more,omitempty"`  // there are pages after this one
	Warning  string  `json:"warning,omitempty"`
	RetryIn  string  `json:"retryIn,omitempty"` // the Retry-After header
	Cause    string  `json:"cause,omitempty"`   // the first that a refusal names, as DiskFull
	Error    string  `json:"error,omitempty"`
}

// Item is an object as a list shows it.
type Item struct {
	Key   string `json:"key"`
	RV    uint64 `json:"rv"`
	Value string `json:"value"`
}

// Writes tells whether the call is one that changes an object.
func (o *Op) Writes() bool { return o.Kind != Get && o.Kind != List }

// Watch is one watch request and what came of it.
type Watch struct {
	ID       uint64  `json:"id"`
	Client   string  `json:"client"`
	Node     string  `json:"node"`
	Resource string  `json:"resource"`
	Key      string  `json:"key,omitempty"` // empty: all of the resource
	Call     int64   `json:"call"`
	From     uint64  `json:"from,omitempty"`
	Initial  bool    `json:"initial,omitempty"` // sendInitialEvents
	Resumes  uint64  `json:"resumes,omitempty"` // the ID of the watch it goes on after
	Events   []Event `json:"-"`
	End      int64   `json:"end,omitempty"`
	Code     int     `json:"code,omitempty"` // of the answer, or of the Status that ended it; 0 for a cut
	Error    string  `json:"error,omitempty"`
	// Owed is the version up to which this watch was left open and in peace until it should have shown it.
	Owed uint64 `json:"owed,omitempty"`
}

// Event is one event of a watch.
type Event struct {
	At    int64  `json:"at"`
	Type  string `json:"type"`
	Key   string `json:"key,omitempty"`
	RV    uint64 `json:"rv,omitempty"`
	Value string `json:"value,omitempty"`
	Last  bool   `json:"last,omitempty"` // the bookmark that ends the initial events
}

// Digest is a node's word about its state, see /kontiki/v1/digest.
type Digest struct {
	At     int64  `json:"at"`
	Node   string `json:"node"`
	Index  uint64 `json:"index"`
	Digest string `json:"digest"`
	Term   uint64 `json:"term"`
	State  string `json:"state"`
	Leader string `json:"leader"`
}

// Note marks a moment: a fault, its end, or the start of a node's process.
type Note struct {
	At   int64  `json:"at"`
	Text string `json:"text"`
}

// History is what was recorded, in the order in which it ended.
type History struct {
	Ops     []Op
	Watches []Watch
	Digests []Digest
	Notes   []Note
	// Cut says that the recorder was full: the history is true, and not whole.
	Cut bool
}
