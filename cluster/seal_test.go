package cluster

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/klauspost/compress/s2"
)

// sealable are entries of all sizes; every other one repeats its first bytes to the end.
func sealable(random *rand.Rand) (logs []*raft.Log) {
	for i, size := range []int{0, 1, compressFrom - 1, compressFrom, 5000, 5000, sealBytes, sealBytes * 3, 2000} {
		data := Noise(random.Uint64(), size)
		for at := 500; i%2 == 1 && at < size; {
			at += copy(data[at:], data[:at])
		}
		logs = append(logs, &raft.Log{Index: uint64(i + 1), Term: 3, Type: raft.LogCommand, Data: data, AppendedAt: time.Unix(int64(i), 0)})
	}
	return logs
}

// TestSeal: what is stored is what was given, however large, one write after the other, and takes less
// room if it can.
func TestSeal(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	s, _ := testStorage(t, t.TempDir(), nil)
	for range 3 {
		logs := sealable(random)
		if err := s.logs.StoreLogs(logs); err != nil {
			t.Fatal(err)
		}
		for _, log := range logs {
			var stored, got raft.Log
			if err := s.logs.BoltStore.GetLog(log.Index, &stored); err != nil {
				t.Fatal(err)
			}
			if small := len(stored.Data) < len(log.Data); small != (len(log.Data) >= compressFrom && log.Index%2 == 0) {
				t.Errorf("seed %d: entry %d of %d bytes is stored in %d", seed, log.Index, len(log.Data), len(stored.Data))
			}
			if err := s.logs.read(log.Index, &got); err != nil || got.Extensions != nil || !bytes.Equal(got.Data, log.Data) || !got.AppendedAt.Equal(log.AppendedAt) {
				t.Errorf("seed %d: entry %d came back as another one: %v", seed, log.Index, err)
			}
		}
		if cap(s.logs.sealer.space) > 4*sealBytes {
			t.Errorf("it keeps %d bytes", cap(s.logs.sealer.space))
		}
	}
	s.logs.sealer.seal(nil)
	if cap(s.logs.sealer.space) > sealBytes {
		t.Errorf("it keeps %d bytes", cap(s.logs.sealer.space))
	}
}

// TestUnsealDamaged: no byte of a stored entry can change and make another one of it, and none can ask
// for more memory than there are commands.
func TestUnsealDamaged(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	log := sealable(random)[5]
	stored := new(sealer).seal([]*raft.Log{log})[0]
	if len(stored.Extensions) != checksumBytes+1 {
		t.Fatal("it is not compressed")
	}
	for range 2000 {
		damaged := *stored
		damaged.Data, damaged.Extensions = bytes.Clone(stored.Data), bytes.Clone(stored.Extensions)
		part := damaged.Data
		if random.IntN(10) == 0 {
			part = damaged.Extensions
		}
		at := random.IntN(len(part))
		part[at] ^= byte(1 + random.IntN(255))
		if err := unseal(&damaged); err == nil && !bytes.Equal(damaged.Data, log.Data) {
			t.Fatalf("seed %d: byte %d of %d is another one, and nobody sees it", seed, at, len(part))
		}
	}
	huge := &raft.Log{Data: binary.AppendUvarint(nil, maxEntry+1), Extensions: []byte{0, 0, 0, 0, methodS2}}
	if err := unseal(huge); !errors.Is(err, s2.ErrCorrupt) {
		t.Errorf("a command of %d bytes: %v", maxEntry+1, err)
	}
}

// TestUnsealOlder: entries of earlier releases have a checksum, or nothing.
func TestUnsealOlder(t *testing.T) {
	log := &raft.Log{Index: 7, Term: 1, Data: bytes.Repeat([]byte("old "), 1000)}
	for _, extra := range [][]byte{nil, checksum(log)} {
		stored := *log
		if stored.Extensions = extra; unseal(&stored) != nil || !bytes.Equal(stored.Data, log.Data) {
			t.Errorf("with % x it is refused", extra)
		}
	}
}
