package cluster

import (
	"context"
	"net"
	"time"
)

// Close stops the node in good order: it hands leadership over, so that others need not
// wait for an election, says goodbye, and stops. Ctx bounds the handing over. Close may be
// called again, also after Abort, and returns the same.
func (n *Node) Close(ctx context.Context) error {
	n.close.Do(func() {
		n.handOver(ctx)
		n.closed = n.stop(true)
	})
	return n.closed
}

// Abort stops the node at once, with no word to anybody: what a crash looks like to others.
func (n *Node) Abort() error {
	n.close.Do(func() { n.closed = n.stop(false) })
	return n.closed
}

// stop ends everything that was started, the network before raft and raft before its
// stores. It works on a node that Open gave up half-way.
func (n *Node) stop(polite bool) error {
	n.cancel()
	n.changed.Broadcast()
	n.stopGossip(polite)
	var errs []error
	if n.transport != nil {
		n.transport.NetworkTransport.Close() // before the listener, or it logs that it is closed
	}
	if n.listener != nil {
		errs = append(errs, n.listener.Close())
		n.peers.close()
	}
	if n.raft != nil {
		errs = append(errs, n.raft.Shutdown().Error())
	}
	if n.transport != nil {
		errs = append(errs, n.transport.Close())
	}
	n.wg.Wait()
	if n.listener != nil {
		n.listener.wait()
	}
	if n.storage != nil {
		errs = append(errs, n.storage.close())
	}
	return closeError(errs...)
}

func (n *Node) dialPeer(name, addr string, timeout time.Duration) (net.Conn, error) {
	return n.listener.dial(name, addr, protoPeer, timeout)
}
