package clustertest

import (
	"bytes"
	"os"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// maxLogs bounds what is kept; the end of a long test is what explains its failure.
const maxLogs = 1 << 20

// logs keeps what nodes log and shows it if the test fails. After the test it takes
// nothing: a goroutine that outlives its node must not panic in t.Log.
type logs struct {
	t testing.TB

	mu     sync.Mutex
	buffer bytes.Buffer // guarded by mu
	ended  bool         // guarded by mu
}

func newLogs(t testing.TB) *logs { return &logs{t: t} }

func (l *logs) logger(name string) hclog.Logger {
	level := hclog.Info
	if set := os.Getenv("KONTIKI_TEST_LOG"); set != "" {
		level = hclog.LevelFromString(set)
	}
	return hclog.New(&hclog.LoggerOptions{Name: name, Level: level, Output: l, TimeFormat: "15:04:05.000"})
}

// Write implements io.Writer.
func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return len(p), nil
	}
	if l.buffer.Len() > maxLogs {
		l.buffer.Next(maxLogs / 2)
	}
	return l.buffer.Write(p)
}

func (l *logs) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.t.Failed() || os.Getenv("KONTIKI_TEST_LOG") != "" {
		l.t.Logf("nodes' logs:\n%s", l.buffer.String())
	}
}
