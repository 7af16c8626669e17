package api

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"kontiki/api/auth"
	"kontiki/api/duties"
	"kontiki/api/registry"
	"kontiki/api/storage"
	"kontiki/cluster"
	"kontiki/fsm"
	"kontiki/watch"
)

// patience bounds what a test waits for; nothing here takes a second.
const patience = 20 * time.Second

// TestMain silences klog: upstream logs every refused request's errors, and the
// fuzz tests make nothing else.
func TestMain(m *testing.M) {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	flags.Set("logtostderr", "false")
	flags.Set("stderrthreshold", "FATAL")
	klog.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// instantLog is a raft of one, without a disk: a command is applied at once.
type instantLog struct {
	machine *fsm.FSM
	mu      sync.Mutex // held while a command is applied
}

func (l *instantLog) Propose(_ context.Context, cmd fsm.Command) (fsm.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	index := l.machine.Index() + 1
	binary.BigEndian.PutUint64(cmd.ID[:], index)
	cmd.Base = l.machine.Index()
	if err := cmd.Validate(); err != nil {
		return fsm.Result{}, fmt.Errorf("%w: %w", cluster.ErrInvalid, err)
	}
	data := cmd.Append(nil)
	if len(data) > cluster.DefaultConfig().MaxCommandBytes {
		return fsm.Result{}, cluster.ErrTooLarge
	}
	entry := &raft.Log{Index: index, Type: raft.LogCommand, Data: data}
	return l.machine.Apply(entry).(fsm.Result), nil
}

func (l *instantLog) ReadIndex(context.Context) (uint64, error) { return l.machine.Index(), nil }

// impatient is a state that reaches nothing by waiting: it has all there is.
// A fuzz test could not afford the three seconds that a future version costs.
type impatient struct{ *fsm.FSM }

func (s impatient) WaitIndex(_ context.Context, index uint64) error {
	if s.Index() < index {
		return context.DeadlineExceeded
	}
	return nil
}

// alone is the node of a cluster of one.
type alone struct{}

func (alone) Ready(context.Context) error    { return nil }
func (alone) Leader() (string, string, bool) { return "test", "localhost:6443", true }
func (alone) Members() []cluster.Member {
	return []cluster.Member{{Name: "test", Alive: true, GossipAddr: "10.0.0.1:7302"}}
}
func (alone) Status() cluster.Status {
	return cluster.Status{Name: "test", State: "Leader", Leader: "test", Term: 1}
}
func (alone) Survey(context.Context) []cluster.Member {
	return []cluster.Member{{Name: "test"}}
}

// No test of this package changes the membership.
func (alone) Remove(context.Context, string) (string, error)  { return "", cluster.ErrNoLeader }
func (alone) Promote(context.Context, string) (string, error) { return "", cluster.ErrNoLeader }
func (alone) Demote(context.Context, string) (string, error)  { return "", cluster.ErrNoLeader }
func (alone) TransferLeadership(context.Context, string) (string, error) {
	return "", cluster.ErrNoLeader
}

func (alone) Backup() cluster.Backup { return cluster.Backup{} }
func (alone) Restore(context.Context, io.Reader) (cluster.Restored, error) {
	return cluster.Restored{}, cluster.ErrBadBackup
}

// harness is a server without a socket, on a state of its own.
type harness struct {
	*Server
	t       testing.TB
	log     *instantLog
	handler http.Handler
}

// tokens are of a master and of a user who has no rights.
const tokens = "token-of-root,root,1,\"system:masters\"\ntoken-of-ada,ada,2\n"

// newHarness starts a server with the system namespaces in it.
func newHarness(t testing.TB) *harness {
	t.Helper()
	hub := watch.NewHub(watch.Config{})
	machine := fsm.New(hub)
	file := filepath.Join(t.TempDir(), "tokens.csv")
	if err := os.WriteFile(file, []byte(tokens), 0o600); err != nil {
		t.Fatal(err)
	}
	authenticator, err := auth.NewAuthenticator(x509.NewCertPool(), file)
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{t: t, log: &instantLog{machine: machine}}
	h.Server, err = New(Config{
		Ranges: registry.DefaultRanges(),
		Name:   "test", Build: "test", Address: "localhost:6443", Authenticator: authenticator,
		Root: mustRoot(t), Certificates: &oneCertificate{},
		EventTTL: time.Hour, Node: alone{}, Logger: hclog.NewNullLogger(),
		Backend: storage.Backend{Proposer: h.log, State: impatient{machine}, Feed: hub},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	h.handler = h.http.Handler
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	duties.EnsureNamespaces(ctx, h.Client().CoreV1(), hclog.NewNullLogger())
	if err := ctx.Err(); err != nil {
		t.Fatalf("the system namespaces could not be made: %v", err)
	}
	return h
}

// answer is what a request got.
type answer struct {
	*httptest.ResponseRecorder
	panicked string // with its stack
}

// masters is a request of a master; header is pairs of name and value.
func masters(method, target, body string, header ...string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer token-of-root")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// serve answers a request. What panics is an answer too, so that the fuzz tests
// can say which request it was.
func (h *harness) serve(r *http.Request) answer {
	recorder := httptest.NewRecorder()
	return answer{recorder, h.serveTo(recorder, r)}
}

func (h *harness) serveTo(w http.ResponseWriter, r *http.Request) (panicked string) {
	defer func() {
		if p := recover(); p != nil {
			panicked = fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
	}()
	h.handler.ServeHTTP(w, r)
	return ""
}

func (h *harness) do(method, target, body string, header ...string) answer {
	h.t.Helper()
	a := h.serve(masters(method, target, body, header...))
	if a.panicked != "" {
		h.t.Fatalf("%s %.200s: panic: %s", method, target, a.panicked)
	}
	return a
}

// must is do that has to succeed.
func (h *harness) must(method, target, body string, header ...string) answer {
	h.t.Helper()
	a := h.do(method, target, body, header...)
	if a.Code >= 300 {
		h.t.Fatalf("%s %.200s: %d %.500s", method, target, a.Code, a.Body)
	}
	return a
}

// statusOf decodes the body of a refusal.
func statusOf(a answer) (status metav1.Status, err error) {
	decoder := json.NewDecoder(bytes.NewReader(a.Body.Bytes()))
	if err := decoder.Decode(&status); err != nil {
		return status, err
	}
	if status.Kind != "Status" || status.Status != metav1.StatusFailure || int(status.Code) != a.Code || status.Message == "" {
		return status, fmt.Errorf("not the Status of a %d", a.Code)
	}
	return status, nil
}

// meta is what tests look at in most objects.
func meta(t testing.TB, a answer) (obj metav1.PartialObjectMetadata) {
	t.Helper()
	if err := json.Unmarshal(a.Body.Bytes(), &obj); err != nil {
		t.Fatalf("%v in %.300s", err, a.Body)
	}
	return obj
}
