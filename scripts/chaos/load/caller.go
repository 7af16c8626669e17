package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"kontiki/scripts/chaos/history"
)

// moves is the node of a caller that is not pinned to one.
const moves = -1

const (
	probePause = 500 * time.Millisecond
	renewPause = 200 * time.Millisecond
	// patienceFactor makes the timeout of a call that waits for the server's own end: a node without a
	// leader gives up after 10 s.
	patienceFactor = 10
)

// caller is one client: it makes one call at a time. What it knows of objects is what it was told, as
// with any controller.
type caller struct {
	l     *Load
	name  string
	node  int // index, or moves
	rng   *rand.Rand
	known map[string]sight
}

// sight is an object as a caller saw it last.
type sight struct {
	version, uid string // empty: not there
}

func (l *Load) newCaller(name string, node int) *caller {
	return &caller{l: l, name: name, node: node, rng: l.random(name), known: make(map[string]sight)}
}

// pick is the client of this caller's node, or of any.
func (c *caller) pick() *Client {
	if c.node == moves {
		return c.l.clients[c.rng.IntN(len(c.l.clients))]
	}
	return c.l.clients[c.node]
}

// work is a client that does everything.
func (c *caller) work(ctx context.Context) {
	for !c.l.rec.Full() && sleep(ctx, c.pause()) {
		r := resources[c.rng.IntN(len(resources))]
		switch n := c.rng.IntN(100); {
		case n < 50:
			c.write(ctx, r, c.key(r))
		case n < 80:
			c.get(ctx, r, c.key(r), c.version())
		case n < 92:
			c.list(ctx, r)
		default:
			c.pages(ctx, r)
		}
	}
}

func (c *caller) pause() time.Duration {
	return time.Duration(c.rng.Int64N(int64(2 * c.l.cfg.Pause)))
}

// key is the name of a hot object mostly. Hot ones are new ones after each epoch.
func (c *caller) key(r *resource) string {
	if c.rng.IntN(10) < 7 {
		epoch := time.Duration(c.l.rec.Now()) / c.l.cfg.Epoch
		return fmt.Sprintf("hot-%d-%d", epoch, c.rng.IntN(c.l.cfg.Hot))
	}
	return fmt.Sprintf("cold-%d", c.rng.IntN(c.l.cfg.Cold))
}

// version is one to read at: unset, any, or one that was there or will be soon.
func (c *caller) version() string {
	switch c.rng.IntN(4) {
	case 0:
		return ""
	case 1:
		return "0"
	default:
		return c.near()
	}
}

// near is a version close to the latest, in the past mostly.
func (c *caller) near() string {
	return strconv.FormatInt(max(1, int64(c.l.latest.Load())+c.rng.Int64N(30)-25), 10)
}

// begin starts the record of a call. Now and then one has the time to see the server give up.
func (c *caller) begin(ctx context.Context, client *Client, r *resource, kind history.Kind) (history.Op, context.Context, context.CancelFunc) {
	timeout := c.l.cfg.Timeout
	if c.rng.IntN(5) == 0 {
		timeout *= patienceFactor
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	return history.Op{
		ID: c.l.rec.NextID(), Client: c.name, Node: client.Node, Kind: kind, Resource: r.name, Call: c.l.rec.Now(),
	}, ctx, cancel
}

// end completes the record.
func (c *caller) end(op *history.Op, a answer, err error) document {
	op.Return = c.l.rec.Now()
	doc := fill(op, a, err)
	if op.Outcome == history.OK && doc.Kind != "Status" {
		op.RV = doc.version()
		c.l.saw(op.RV)
	}
	if op.Writes() && op.Outcome == history.OK {
		raise(c.l.acked[op.Resource], op.RV)
	}
	return doc
}

// get reads an object.
func (c *caller) get(ctx context.Context, r *resource, name, version string) {
	client := c.pick()
	op, ctx, cancel := c.begin(ctx, client, r, history.Get)
	defer cancel()
	op.Key, op.Asked = r.key(name), version
	path := r.path(c.l.cfg.Namespace, name)
	if version != "" {
		path += "?resourceVersion=" + version
	}
	a, err := client.do(ctx, http.MethodGet, path, "", jsonType)
	doc := c.end(&op, a, err)
	op.Value = doc.value()
	c.l.rec.Add(op)
	c.learn(&op, doc)
}

// learn keeps what an answer says about an object.
func (c *caller) learn(op *history.Op, doc document) {
	switch {
	case op.Outcome == history.OK && op.Kind != history.Delete:
		c.known[op.Key] = sight{doc.Metadata.ResourceVersion, doc.Metadata.UID}
	case op.Outcome == history.OK, op.Code == http.StatusNotFound, op.Code == http.StatusConflict:
		delete(c.known, op.Key)
	}
}

// write does what fits what is known of the object; another client may have been faster.
func (c *caller) write(ctx context.Context, r *resource, name string) {
	seen, known := c.known[r.key(name)]
	switch n := c.rng.IntN(20); {
	case !known && n < 8:
		c.get(ctx, r, name, "")
	case !known:
		c.change(ctx, r, name, history.Create, sight{})
	case n < 12:
		c.change(ctx, r, name, history.Update, seen)
	case n < 15 || r.lasting && n >= 16:
		c.change(ctx, r, name, history.Set, sight{})
	case n < 16:
		c.change(ctx, r, name, history.Create, sight{})
	case n < 18:
		c.remove(ctx, r, name, seen)
	default:
		c.remove(ctx, r, name, sight{})
	}
}

// change creates or updates an object. The value is the call's own.
func (c *caller) change(ctx context.Context, r *resource, name string, kind history.Kind, seen sight) {
	client := c.pick()
	op, ctx, cancel := c.begin(ctx, client, r, kind)
	defer cancel()
	op.Key, op.Asked, op.Value = r.key(name), seen.version, fmt.Sprintf("w%d", op.ID)
	method, path, media := http.MethodPut, r.path(c.l.cfg.Namespace, name), jsonType
	body := fmt.Sprintf(r.body, metadata(name, op.Value, seen.version, seen.uid))
	switch {
	case kind == history.Create:
		method, path = http.MethodPost, r.path(c.l.cfg.Namespace, "")
	case kind == history.Set || r.patched:
		method, media = http.MethodPatch, mergeType
		body = fmt.Sprintf(`{"metadata":%s}`, metadata(name, op.Value, seen.version, ""))
	}
	a, err := client.do(ctx, method, path, body, media)
	doc := c.end(&op, a, err)
	c.l.rec.Add(op)
	c.learn(&op, doc)
}

// remove deletes an object, at a version if one is given.
func (c *caller) remove(ctx context.Context, r *resource, name string, seen sight) {
	client := c.pick()
	op, ctx, cancel := c.begin(ctx, client, r, history.Delete)
	defer cancel()
	op.Key, op.Asked = r.key(name), seen.version
	preconditions := ""
	if seen.version != "" {
		preconditions = fmt.Sprintf(`,"preconditions":{"resourceVersion":%q}`, seen.version)
	}
	body := fmt.Sprintf(`{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0%s}`, preconditions)
	a, err := client.do(ctx, http.MethodDelete, r.path(c.l.cfg.Namespace, name), body, jsonType)
	doc := c.end(&op, a, err)
	c.l.rec.Add(op)
	c.learn(&op, doc)
}

// renew is a lease's holder: it reads once and then writes on top of what it wrote, on any node.
func (c *caller) renew(ctx context.Context) {
	r := resources[leases]
	for n := 0; !c.l.rec.Full() && sleep(ctx, renewPause); n++ {
		name := fmt.Sprintf("%s-%d", c.name, time.Duration(c.l.rec.Now())/(6*c.l.cfg.Epoch))
		if seen, known := c.known[r.key(name)]; known {
			c.change(ctx, r, name, history.Update, seen)
		} else if n%2 == 0 {
			c.change(ctx, r, name, history.Create, sight{})
		} else {
			c.get(ctx, r, name, "")
		}
	}
}

// probe asks a node for its digest, its term and who leads.
func (c *caller) probe(ctx context.Context) {
	for !c.l.rec.Full() && sleep(ctx, probePause) {
		ask, cancel := context.WithTimeout(ctx, c.l.cfg.Timeout)
		d := history.Digest{}
		client := c.pick()
		if err := client.Get(ask, digestPath, &d); err == nil {
			d.At, d.Node = c.l.rec.Now(), client.Node
			c.l.rec.Digest(d)
		}
		cancel()
	}
}

const digestPath = "/kontiki/v1/digest"
