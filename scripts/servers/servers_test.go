package servers

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestProgramsLiveAndDie(t *testing.T) {
	dir := t.TempDir()
	var all Programs
	defer all.Stop()
	for _, name := range []string{"a", "b"} {
		if _, err := all.Start(dir, name, "/bin/sh", "-c", "echo $$; exec sleep 600"); err != nil {
			t.Fatal(err)
		}
	}
	a, first := all.All[0], all.All[0].Pid()
	a.Kill()
	if a.Pid() != 0 || !slices.Equal(all.Pids(), []int{all.All[1].Pid()}) {
		t.Errorf("a is dead, and alive are %v", all.Pids())
	}
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	if pids := all.Pids(); len(pids) != 2 || slices.Contains(pids, first) {
		t.Errorf("started again: %v, at first %d", pids, first)
	}
	all.Stop()
	if pids := all.Pids(); len(pids) != 0 {
		t.Errorf("stopped, and alive are %v", pids)
	}
	if _, err := os.Stat(filepath.Join(dir, "a.log")); err != nil {
		t.Error(err)
	}
	if _, err := all.Start(dir, "c", filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("no advice in: %v", err)
	}
}

func TestEtcdLeader(t *testing.T) {
	member := func(id string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"header":{"member_id":%q},"leader":"22"}`, id)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	down := httptest.NewServer(nil)
	down.Close()
	for want, clients := range [][]string{{member("22")}, {down.URL, member("22")}, {member("11"), down.URL, member("22")}} {
		if got, err := etcdLeader(context.Background(), clients); err != nil || got != want {
			t.Errorf("%d, %v, not %d", got, err, want)
		}
	}
	if got, err := etcdLeader(context.Background(), []string{member("11"), down.URL}); err == nil {
		t.Errorf("nobody leads, but %d", got)
	}
}

// TestFlags: founders expect each other, a node that comes later only joins, and a single node joins nobody.
func TestFlags(t *testing.T) {
	has := func(k *Kontiki, i int, flag string) bool {
		return slices.ContainsFunc(k.flags(i), func(f string) bool { return strings.HasPrefix(f, flag) })
	}
	k := &Kontiki{Nodes: 3, ports: make([]int, 12)}
	if !has(k, 0, "--bootstrap-expect=3") || !has(k, 2, "--peers=") || has(k, 3, "--bootstrap-expect") || !has(k, 3, "--peers=") {
		t.Errorf("founder %v, later %v", k.flags(0), k.flags(3))
	}
	if one := (&Kontiki{Nodes: 1, ports: make([]int, 3)}); has(one, 0, "--peers") {
		t.Errorf("single: %v", one.flags(0))
	}
}

func TestWithout(t *testing.T) {
	g := Group{Endpoints: []Endpoint{{Name: "a"}, {Name: "b"}}, serving: true}
	if stay := g.Without(0); len(stay) != 1 || stay[0].Name != "b" {
		t.Errorf("%v", stay)
	}
	g.serving = false
	if stay := g.Without(0); len(stay) != 2 {
		t.Errorf("%v", stay)
	}
}
