package vm

import (
	"encoding/binary"
	"net/netip"
)

const (
	ipHeader   = 20
	tcpHeader  = 20
	flagFIN    = 0x01
	flagSYN    = 0x02
	flagRST    = 0x04
	flagACK    = 0x10
	timeToLive = 64
)

// packet is what rules look at in an IPv4 packet. Ports are 0 where it has none: in other
// protocols and in all but the first fragment.
type packet struct {
	from, to               netip.Addr
	protocol               Protocol
	sourcePort, targetPort uint16
	bytes, payload         []byte
}

// parse reports false for what this switch does not carry: IPv6 and what is cut short.
func parse(bytes []byte) (packet, bool) {
	if len(bytes) < ipHeader || bytes[0]>>4 != 4 {
		return packet{}, false
	}
	header := int(bytes[0]&0x0f) * 4
	if header < ipHeader || len(bytes) < header {
		return packet{}, false
	}
	p := packet{
		from:     netip.AddrFrom4([4]byte(bytes[12:16])),
		to:       netip.AddrFrom4([4]byte(bytes[16:20])),
		protocol: Protocol(bytes[9]),
		bytes:    bytes,
		payload:  bytes[header:],
	}
	fragment := binary.BigEndian.Uint16(bytes[6:]) & 0x1fff
	if (p.protocol == TCP || p.protocol == UDP) && fragment == 0 && len(p.payload) >= 4 {
		p.sourcePort = binary.BigEndian.Uint16(p.payload)
		p.targetPort = binary.BigEndian.Uint16(p.payload[2:])
	}
	return p, true
}

// resets returns the two packets that end p's connection, one as if from each end to the
// other: back to the sender, and on to the receiver. It returns nil for what is not TCP,
// and for resets, which need no answer.
func resets(p packet) (back, on []byte) {
	if p.protocol != TCP || p.sourcePort == 0 || len(p.payload) < tcpHeader || p.payload[13]&flagRST != 0 {
		return nil, nil
	}
	sequence := binary.BigEndian.Uint32(p.payload[4:])
	acknowledged := binary.BigEndian.Uint32(p.payload[8:])
	length := uint32(len(p.payload) - int(p.payload[12]>>4)*4)
	if p.payload[13]&(flagSYN|flagFIN) != 0 {
		length++
	}
	if p.payload[13]&flagACK == 0 { // a first SYN: the receiver knows of no connection yet
		return reset(p.to, p.from, p.targetPort, p.sourcePort, 0, sequence+length), nil
	}
	return reset(p.to, p.from, p.targetPort, p.sourcePort, acknowledged, sequence+length),
		reset(p.from, p.to, p.sourcePort, p.targetPort, sequence, acknowledged)
}

func reset(from, to netip.Addr, sourcePort, targetPort uint16, sequence, acknowledged uint32) []byte {
	b := make([]byte, ipHeader+tcpHeader)
	b[0] = 0x45
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	b[8], b[9] = timeToLive, byte(TCP)
	source, target := from.As4(), to.As4()
	copy(b[12:], source[:])
	copy(b[16:], target[:])
	binary.BigEndian.PutUint16(b[10:], checksum(0, b[:ipHeader]))
	t := b[ipHeader:]
	binary.BigEndian.PutUint16(t, sourcePort)
	binary.BigEndian.PutUint16(t[2:], targetPort)
	binary.BigEndian.PutUint32(t[4:], sequence)
	binary.BigEndian.PutUint32(t[8:], acknowledged)
	t[12], t[13] = tcpHeader/4<<4, flagRST|flagACK
	pseudo := uint32(TCP) + tcpHeader // and the addresses
	binary.BigEndian.PutUint16(t[16:], checksum(pseudo+sum(b[12:20]), t))
	return b
}

func sum(b []byte) (total uint32) {
	for ; len(b) >= 2; b = b[2:] {
		total += uint32(b[0])<<8 | uint32(b[1])
	}
	if len(b) == 1 {
		total += uint32(b[0]) << 8
	}
	return total
}

// checksum is the Internet's, over b, begun with start.
func checksum(start uint32, b []byte) uint16 {
	total := start + sum(b)
	for total > 0xffff {
		total = total>>16 + total&0xffff
	}
	return ^uint16(total)
}
