package cluster

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// lane separates what must be quick from what may be large: a read index does not wait
// behind a megabyte.
type lane uint8

const (
	laneControl lane = iota
	lanePropose
)

// redialPause is the least time between two attempts to reach a peer.
const redialPause = 100 * time.Millisecond

// peers keeps one connection per peer, address and lane, dialed when first needed.
type peers struct {
	dial  func(name, addr string, timeout time.Duration) (net.Conn, error)
	limit int // of a response's payload
	wait  time.Duration

	mu     sync.Mutex
	closed bool              // guarded by mu
	links  map[linkKey]*link // guarded by mu
	wg     sync.WaitGroup
}

type linkKey struct {
	name, addr string
	lane       lane
}

// link is a connection that is being dialed or in use. Dialed is closed when either conn or err is set.
type link struct {
	dialed chan struct{}
	conn   *peerConn
	err    error
	failed time.Time // when err was set
}

// get returns a live connection. After an error, nothing was sent.
func (p *peers) get(ctx context.Context, key linkKey) (*peerConn, error) {
	l, err := p.link(key)
	if err != nil {
		return nil, err
	}
	select {
	case <-l.dialed:
		return l.conn, l.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// tell sends f if that is possible at once. It does not wait, not even for a connection.
func (p *peers) tell(key linkKey, f frame) {
	l, err := p.link(key)
	if err != nil {
		return
	}
	select {
	case <-l.dialed:
	default:
		return
	}
	if l.err != nil {
		return
	}
	select {
	case l.conn.out <- f:
	default:
	}
}

func (p *peers) link(key linkKey) (*link, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	if l := p.links[key]; l != nil && l.usable() {
		return l, nil
	}
	p.dropStaleLocked(key)
	l := &link{dialed: make(chan struct{})}
	p.links[key] = l
	p.wg.Go(func() { p.connect(l, key) })
	return l, nil
}

// dropStaleLocked forgets connections to an address that the peer has left.
func (p *peers) dropStaleLocked(key linkKey) {
	for old, l := range p.links {
		if old.name == key.name && old.lane == key.lane {
			l.close()
			delete(p.links, old)
		}
	}
}

func (p *peers) connect(l *link, key linkKey) {
	conn, err := p.dial(key.name, key.addr, p.wait)
	if err != nil {
		l.err, l.failed = err, time.Now()
		close(l.dialed)
		return
	}
	l.conn = newPeerConn(conn, p.limit)
	p.wg.Go(l.conn.writeLoop)
	p.wg.Go(l.conn.readLoop)
	close(l.dialed)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.links[key] != l {
		l.conn.close()
	}
}

// usable also keeps a failure for a moment: with a node down, every read index and every
// commit would dial it.
func (l *link) usable() bool {
	select {
	case <-l.dialed:
	default:
		return true // being dialed
	}
	if l.err != nil {
		return time.Since(l.failed) < redialPause
	}
	select {
	case <-l.conn.dead:
		return false
	default:
		return true
	}
}

func (l *link) close() {
	select {
	case <-l.dialed:
		if l.conn != nil {
			l.conn.close()
		}
	default: // connect will see that it is not wanted
	}
}

func (p *peers) close() {
	p.mu.Lock()
	p.closed = true
	for _, l := range p.links {
		l.close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

// peerConn is the asking side of a connection: many questions at once, answers by id.
type peerConn struct {
	*wire
	limit int

	mu    sync.Mutex
	last  uint64                // guarded by mu
	calls map[uint64]chan frame // guarded by mu
}

func newPeerConn(conn net.Conn, limit int) *peerConn {
	return &peerConn{wire: newWire(conn), limit: limit, calls: make(map[uint64]chan frame)}
}

// call is one question in flight.
type call struct {
	conn  *peerConn
	id    uint64
	reply chan frame
}

// ask sends a question. After an error it was surely not sent.
func (c *peerConn) ask(ctx context.Context, what kind, payload []byte) (*call, error) {
	q := &call{conn: c, reply: make(chan frame, 1)}
	c.mu.Lock()
	c.last++
	q.id = c.last
	c.calls[q.id] = q.reply
	c.mu.Unlock()
	if err := c.send(ctx, frame{id: q.id, kind: what, payload: payload}); err != nil {
		q.forget()
		return nil, err
	}
	return q, nil
}

// forget gives up waiting; a reply that still comes is dropped.
func (q *call) forget() {
	q.conn.mu.Lock()
	defer q.conn.mu.Unlock()
	delete(q.conn.calls, q.id)
}

// wait returns the reply. Without one, whether the question was heard is not known.
func (q *call) wait(ctx context.Context) (frame, error) {
	select {
	case reply := <-q.reply:
		return reply, nil
	case <-q.conn.dead:
		return frame{}, errWireClosed
	case <-ctx.Done():
		q.forget()
		return frame{}, ctx.Err()
	}
}

func (c *peerConn) readLoop() {
	defer c.close()
	reader := bufio.NewReaderSize(c.conn, wireBuffer)
	for {
		f, err := readFrame(reader, c.limit)
		if err != nil {
			return
		}
		c.mu.Lock()
		reply := c.calls[f.id]
		delete(c.calls, f.id)
		c.mu.Unlock()
		if reply != nil {
			reply <- f
		}
	}
}

// exchange asks one question on the control lane, for callers with no interest in why it failed.
func (n *Node) exchange(ctx context.Context, name, addr string, what kind, payload []byte) (frame, error) {
	conn, err := n.peers.get(ctx, linkKey{name: name, addr: addr, lane: laneControl})
	if err != nil {
		return frame{}, err
	}
	q, err := conn.ask(ctx, what, payload)
	if err != nil {
		return frame{}, err
	}
	reply, err := q.wait(ctx)
	if err == nil && reply.kind != replyOK {
		err = fmt.Errorf("node %s refused, code %d", name, reply.kind)
	}
	return reply, err
}
