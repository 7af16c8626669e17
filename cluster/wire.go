package cluster

import (
	"bufio"
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

const (
	// wireQueue is how many frames may wait for the writer of a connection.
	wireQueue = 256

	// wireBuffer is what one write to TLS carries at most: several of its 16 KB records.
	wireBuffer = 64 << 10

	// wireTimeout bounds one write. A peer that reads nothing for so long is gone.
	wireTimeout = 10 * time.Second
)

var errWireClosed = errors.New("connection closed")

// wire is one peer connection with one goroutine that writes. Frames that arrive while it
// writes go out together with the next flush, so that many small proposals share a packet.
type wire struct {
	conn net.Conn
	out  chan frame
	dead chan struct{} // closed when the connection is of no use any more
	once sync.Once
}

func newWire(conn net.Conn) *wire {
	return &wire{conn: conn, out: make(chan frame, wireQueue), dead: make(chan struct{})}
}

func (w *wire) close() {
	w.once.Do(func() {
		close(w.dead)
		w.conn.Close()
	})
}

// send queues a frame. After an error it was surely not sent.
func (w *wire) send(ctx context.Context, f frame) error {
	select {
	case <-w.dead:
		return errWireClosed
	default:
	}
	select {
	case w.out <- f:
		return nil
	case <-w.dead:
		return errWireClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// writeLoop writes until the connection dies.
func (w *wire) writeLoop() {
	defer w.close()
	buffer := bufio.NewWriterSize(w.conn, wireBuffer)
	for {
		select {
		case f := <-w.out:
			if w.writeBatch(buffer, f) != nil {
				return
			}
		case <-w.dead:
			return
		}
	}
}

// writeBatch writes f and all that is queued behind it, then flushes once.
func (w *wire) writeBatch(buffer *bufio.Writer, f frame) error {
	if err := w.conn.SetWriteDeadline(time.Now().Add(wireTimeout)); err != nil {
		return err
	}
	for {
		if err := writeFrame(buffer, f); err != nil {
			return err
		}
		select {
		case f = <-w.out:
		default:
			return buffer.Flush()
		}
	}
}
