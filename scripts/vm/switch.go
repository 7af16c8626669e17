package vm

import (
	"io"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// queueLength bounds what waits on one delayed link; more is dropped, as routers do.
	queueLength = 4096

	// packetMax is the largest IPv4 packet.
	packetMax = 1 << 16
)

// Switch passes IPv4 packets between devices, after rules for each ordered pair of
// addresses. Devices hand it one packet a Read and take one a Write.
type Switch struct {
	ports  atomic.Pointer[map[netip.Addr]io.ReadWriteCloser]
	layers atomic.Pointer[map[*Layer]map[pair][]Rule]
	base   *Layer // what Set and Heal of the switch are about

	mu     sync.Mutex // for changes, for links and luck
	links  map[pair]*link
	luck   *rand.Rand
	closed chan struct{}
	once   sync.Once
	work   sync.WaitGroup
}

type pair struct{ from, to netip.Addr }

// Layer is one thing that is wrong with the network. Several do not know of each other: a
// packet passes through all of them.
type Layer struct{ s *Switch }

// link is one direction of a pair while it has packets that wait.
type link struct {
	queue chan held
	due   time.Time // of the packet that entered last
}

type held struct {
	due   time.Time
	bytes []byte
}

// NewSwitch makes a switch without devices that passes everything.
func NewSwitch(seed uint64) *Switch {
	s := &Switch{
		links:  make(map[pair]*link),
		luck:   rand.New(rand.NewPCG(seed, 0)),
		closed: make(chan struct{}),
	}
	s.ports.Store(&map[netip.Addr]io.ReadWriteCloser{})
	s.layers.Store(&map[*Layer]map[pair][]Rule{})
	s.base = s.Layer()
	return s
}

// Layer makes one without rules.
func (s *Switch) Layer() *Layer { return &Layer{s} }

// Attach connects a device that owns addr, until it is closed.
func (s *Switch) Attach(addr netip.Addr, device io.ReadWriteCloser) {
	s.mu.Lock()
	ports := maps.Clone(*s.ports.Load())
	ports[addr] = device
	s.ports.Store(&ports)
	s.mu.Unlock()
	s.work.Go(func() { s.carry(addr, device) })
}

// Detach closes addr's device; what is sent to it is dropped from now on.
func (s *Switch) Detach(addr netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ports := maps.Clone(*s.ports.Load())
	if device, ok := ports[addr]; ok {
		device.Close()
		delete(ports, addr)
		s.ports.Store(&ports)
	}
}

// Set replaces the layer's rules for packets from one address to another; none pass everything.
func (l *Layer) Set(from, to netip.Addr, rules ...Rule) {
	l.change(func(mine map[pair][]Rule) {
		if mine[pair{from, to}] = slices.Clone(rules); len(rules) == 0 {
			delete(mine, pair{from, to})
		}
	})
}

// Heal removes the layer's rules.
func (l *Layer) Heal() { l.change(func(mine map[pair][]Rule) { clear(mine) }) }

// change replaces the layer's rules by a changed copy: packets find either.
func (l *Layer) change(how func(map[pair][]Rule)) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	all := maps.Clone(*l.s.layers.Load())
	mine := maps.Clone(all[l])
	if mine == nil {
		mine = make(map[pair][]Rule)
	}
	how(mine)
	if all[l] = mine; len(mine) == 0 {
		delete(all, l)
	}
	l.s.layers.Store(&all)
}

// Set and Heal are those of a layer that is always there; Heal removes the others' rules too.
func (s *Switch) Set(from, to netip.Addr, rules ...Rule) { s.base.Set(from, to, rules...) }

// Heal removes all rules.
func (s *Switch) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.layers.Store(&map[*Layer]map[pair][]Rule{})
}

// Close closes all devices and waits until nothing is on its way.
func (s *Switch) Close() {
	s.once.Do(func() {
		close(s.closed)
		for addr := range *s.ports.Load() {
			s.Detach(addr)
		}
	})
	s.work.Wait()
}

// carry passes on what a device sends until it is closed.
func (s *Switch) carry(addr netip.Addr, device io.Reader) {
	buffer := make([]byte, packetMax)
	for {
		n, err := device.Read(buffer)
		if err != nil {
			return
		}
		if p, ok := parse(buffer[:n]); ok && p.from == addr {
			s.route(p)
		}
	}
}

func (s *Switch) route(p packet) {
	between := pair{p.from, p.to}
	switch rule := s.verdict(between, p); {
	case rule.Drop:
	case rule.Reset:
		back, on := resets(p)
		s.deliver(p.from, back)
		s.deliver(p.to, on)
	case rule.Loss > 0 || rule.Delay > 0:
		s.hold(between, rule, p.bytes)
	default:
		s.deliver(p.to, p.bytes)
	}
}

// verdict is what all layers together make of a packet.
func (s *Switch) verdict(between pair, p packet) (all Rule) {
	for _, rules := range *s.layers.Load() {
		for _, rule := range rules[between] {
			if rule.matches(p) {
				all = all.and(rule)
				break
			}
		}
	}
	return all
}

// deliver drops what has no device: the network does not tell senders either.
func (s *Switch) deliver(to netip.Addr, bytes []byte) {
	if device := (*s.ports.Load())[to]; device != nil && len(bytes) > 0 {
		_, _ = device.Write(bytes)
	}
}

// hold loses a packet, or delivers a copy of it later.
func (s *Switch) hold(between pair, rule Rule, bytes []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.luck.Float64() < rule.Loss {
		return
	}
	l := s.links[between]
	if l == nil {
		l = &link{queue: make(chan held, queueLength)}
		s.links[between] = l
		s.work.Go(func() { s.release(between.to, l.queue) })
	}
	delay := rule.Delay + time.Duration((2*s.luck.Float64()-1)*float64(rule.Jitter))
	if due := time.Now().Add(delay); due.After(l.due) {
		l.due = due
	}
	select {
	case l.queue <- held{l.due, slices.Clone(bytes)}:
	default: // full
	}
}

// release delivers what waits on a link, each packet when it is due.
func (s *Switch) release(to netip.Addr, queue <-chan held) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var next held
		select {
		case next = <-queue:
		case <-s.closed:
			return
		}
		timer.Reset(time.Until(next.due))
		select {
		case <-timer.C:
			s.deliver(to, next.bytes)
		case <-s.closed:
			return
		}
	}
}
