package load

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"kontiki/scripts/chaos/history"
)

// TestOutcome: only what certainly did not happen is refused.
func TestOutcome(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	reset := &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	for _, c := range []struct {
		name string
		code int
		body string
		err  error
		want history.Outcome
	}{
		{"yes", 200, "{}", nil, history.OK},
		{"created", 201, "{}", nil, history.OK},
		{"not found", 404, "{}", nil, history.Refused},
		{"conflict", 409, "{}", nil, history.Refused},
		{"too many", 429, "{}", nil, history.Refused},
		{"no leader", 503, "{}", nil, history.Refused},
		{"disk full", 503, `{"details":{"causes":[{"reason":"DiskFull"}]}}`, nil, history.Refused},
		{"outcome unknown", 504, "{}", nil, history.Unknown},
		{"internal error", 500, "{}", nil, history.Unknown},
		{"never sent", 0, "", refused, history.Refused},
		{"cut", 0, "", reset, history.Unknown},
		{"timeout", 0, "", context.DeadlineExceeded, history.Unknown},
		{"yes, cut in the body", 200, `{"metadata":`, io.ErrUnexpectedEOF, history.Unknown},
		{"yes, a body that is no JSON", 200, `{"metadata":`, nil, history.Unknown},
	} {
		op := history.Op{Kind: history.Update}
		a := answer{c.code, http.Header{"Retry-After": {"1"}}, []byte(c.body)}
		fill(&op, a, c.err)
		if op.Outcome != c.want {
			t.Errorf("%s: %s, want %s", c.name, op.Outcome, c.want)
		}
		if want := strings.Contains(c.body, "DiskFull"); want != (op.Cause == "DiskFull") {
			t.Errorf("%s: cause %q", c.name, op.Cause)
		}
		if c.err != nil && op.Code != 0 {
			t.Errorf("%s: code %d of an answer that did not arrive", c.name, op.Code)
		}
	}
}
