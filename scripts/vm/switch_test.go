package vm

import (
	"encoding/binary"
	"io"
	"net/netip"
	"testing"
	"time"
)

// wire is a device in memory: what the switch writes to it arrives in received.
type wire struct {
	sent, received chan []byte
	closed         chan struct{}
}

func newWire() *wire {
	return &wire{make(chan []byte), make(chan []byte, 100), make(chan struct{})}
}

func (w *wire) Read(b []byte) (int, error) {
	select {
	case p := <-w.sent:
		return copy(b, p), nil
	case <-w.closed:
		return 0, io.EOF
	}
}

func (w *wire) Write(b []byte) (int, error) {
	w.received <- append([]byte(nil), b...)
	return len(b), nil
}

func (w *wire) Close() error { close(w.closed); return nil }

// segment is a packet with ports, and n as what tells it from others.
func segment(from, to netip.Addr, protocol Protocol, source, target uint16, n uint32) []byte {
	b := reset(from, to, source, target, n, 7)
	b[9], b[ipHeader+13] = byte(protocol), flagACK
	return b
}

type rig struct {
	*Switch
	t     *testing.T
	addrs []netip.Addr
	wires []*wire
}

func newRig(t *testing.T) *rig {
	r := &rig{Switch: NewSwitch(1), t: t}
	for i := range 3 {
		addr := netip.AddrFrom4([4]byte{198, 51, 100, byte(i + 1)})
		w := newWire()
		r.addrs, r.wires = append(r.addrs, addr), append(r.wires, w)
		r.Attach(addr, w)
	}
	t.Cleanup(r.Close)
	return r
}

func (r *rig) send(from, to int, protocol Protocol, port uint16, n uint32) {
	r.wires[from].sent <- segment(r.addrs[from], r.addrs[to], protocol, 999, port, n)
}

// next returns what arrives at a machine, or nil if a packet sent afterwards, from another
// port, overtakes it.
func (r *rig) next(at int) packet {
	r.t.Helper()
	select {
	case b := <-r.wires[at].received:
		p, ok := parse(b)
		if !ok {
			r.t.Fatalf("not a packet: %x", b)
		}
		return p
	case <-time.After(5 * time.Second):
		r.t.Fatal("nothing arrives after 5s")
		return packet{}
	}
}

func (r *rig) wantNumber(at int, want uint32) {
	r.t.Helper()
	if have := binary.BigEndian.Uint32(r.next(at).payload[4:]); have != want {
		r.t.Errorf("packet %d arrives, want %d", have, want)
	}
}

func TestRulesAreForOneDirectionAndPort(t *testing.T) {
	r := newRig(t)
	r.Set(r.addrs[0], r.addrs[1], Rule{Protocol: TCP, Port: 7301, Drop: true})
	r.send(0, 1, TCP, 7301, 1) // dropped
	r.send(0, 1, UDP, 7301, 2)
	r.send(0, 1, TCP, 7302, 3)
	r.send(1, 0, TCP, 7301, 4)
	r.send(0, 2, TCP, 7301, 5)
	r.wantNumber(1, 2)
	r.wantNumber(1, 3)
	r.wantNumber(0, 4)
	r.wantNumber(2, 5)
	r.Heal()
	r.send(0, 1, TCP, 7301, 6)
	r.wantNumber(1, 6)
}

// TestLayersAddUp: what one fault sets and heals, another one does not undo.
func TestLayersAddUp(t *testing.T) {
	r := newRig(t)
	one, other := r.Layer(), r.Layer()
	one.Set(r.addrs[0], r.addrs[1], Rule{Port: 1, Drop: true})
	other.Set(r.addrs[0], r.addrs[1], Rule{Port: 2, Drop: true})
	r.send(0, 1, TCP, 1, 1) // dropped
	r.send(0, 1, TCP, 2, 2) // dropped
	r.send(0, 1, TCP, 3, 3)
	r.wantNumber(1, 3)
	other.Heal()
	r.send(0, 1, TCP, 1, 4) // dropped
	r.send(0, 1, TCP, 2, 5)
	r.wantNumber(1, 5)
	one.Heal()
	r.send(0, 1, TCP, 1, 6)
	r.wantNumber(1, 6)
}

func TestFirstRuleDecides(t *testing.T) {
	r := newRig(t)
	r.Set(r.addrs[0], r.addrs[1], Rule{Port: 6443}, Rule{Drop: true})
	r.send(0, 1, TCP, 7301, 1)
	r.send(0, 1, TCP, 6443, 2)
	r.wantNumber(1, 2)
	r.Set(r.addrs[0], r.addrs[1])
	r.send(0, 1, TCP, 7301, 3)
	r.wantNumber(1, 3)
}

func TestDelayKeepsOrder(t *testing.T) {
	r := newRig(t)
	delay := 30 * time.Millisecond
	r.Set(r.addrs[0], r.addrs[1], Rule{Delay: delay, Jitter: delay / 2})
	began := time.Now()
	for n := range uint32(50) {
		r.send(0, 1, UDP, 1, n)
	}
	for n := range uint32(50) {
		r.wantNumber(1, n)
		if took := time.Since(began); n == 0 && took < delay/2 {
			t.Errorf("the first packet arrives after %s", took)
		}
	}
}

func TestLoss(t *testing.T) {
	r := newRig(t)
	r.Set(r.addrs[0], r.addrs[1], Rule{Protocol: UDP, Loss: 0.5})
	const sent = 80
	for n := range uint32(sent) {
		r.send(0, 1, UDP, 1, n)
	}
	r.Heal()
	arrived := 0
	for done := false; !done; {
		select {
		case <-r.wires[1].received:
			arrived++
		case <-time.After(100 * time.Millisecond):
			done = true
		}
	}
	if arrived < sent/4 || arrived > sent*3/4 {
		t.Errorf("%d of %d packets arrive at a loss of 50%%", arrived, sent)
	}
}

func TestResetReachesBothEnds(t *testing.T) {
	r := newRig(t)
	r.Set(r.addrs[0], r.addrs[1], Rule{Reset: true})
	r.send(0, 1, TCP, 6443, 1000)
	for at, want := range map[int]struct{ source, target uint16 }{0: {6443, 999}, 1: {999, 6443}} {
		p := r.next(at)
		if p.payload[13]&flagRST == 0 || p.sourcePort != want.source || p.targetPort != want.target || p.to != r.addrs[at] {
			t.Errorf("at %d: no reset for it: %+v", at, p)
		}
		header, tcp := checksum(0, p.bytes[:ipHeader]), checksum(uint32(TCP)+tcpHeader+sum(p.bytes[12:20]), p.payload)
		if header != 0 || tcp != 0 {
			t.Errorf("at %d: checksums are off by %x and %x", at, header, tcp)
		}
	}
}

func TestForgedSourceIsDropped(t *testing.T) {
	r := newRig(t)
	r.wires[0].sent <- segment(r.addrs[2], r.addrs[1], UDP, 1, 1, 1)
	r.wires[0].sent <- []byte{0x60, 0, 0}
	r.send(0, 1, UDP, 1, 2)
	r.wantNumber(1, 2)
}

func TestDetachedIsUnreachable(t *testing.T) {
	r := newRig(t)
	r.Detach(r.addrs[1])
	r.send(0, 1, UDP, 1, 1)
	r.send(0, 2, UDP, 1, 2)
	r.wantNumber(2, 2)
	if len(r.wires[1].received) > 0 {
		t.Error("a detached device is written to")
	}
}
