package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"kontiki/api"
	"kontiki/api/storage"
	"kontiki/cluster"
)

// TestDiskFull: what a client is told when the disk runs full, what goes on meanwhile, and
// that nothing need be done once there is space again.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	var free atomic.Uint64
	free.Store(500 << 20)
	c := newCluster(t, 1, func(_ int, cfg *Config) {
		cfg.DiskReserve = "10%"
		cfg.DiskSpace = func(string) (uint64, uint64, error) { return free.Load(), 1000 << 20, nil }
	})
	client := c.http(0)
	set := func(mib uint64) {
		free.Store(mib << 20)
		until(t, func() error {
			if got := c.nodes[0].Node.Disk().Free; got != mib<<20 {
				return fmt.Errorf("the node sees %d MiB", got>>20)
			}
			return nil
		})
	}
	const pods, leases = "/api/v1/namespaces/default/pods", "/apis/coordination.k8s.io/v1/namespaces/default/leases"
	large := strings.Replace(pod("large"), `"metadata":{`, `"metadata":{"annotations":{"a":"`+strings.Repeat("x", 20<<10)+`"},`, 1)
	lease := `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"l","resourceVersion":%q},"spec":{"holderIdentity":%q}}`
	renew := func(holder string) string {
		var now struct {
			Metadata struct{ ResourceVersion string }
		}
		if err := fromJSON(client.get(leases+"/l").body, &now); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(lease, now.Metadata.ResourceVersion, holder)
	}
	expect := func(when, method, path, body string, want int) {
		t.Helper()
		a := client.with("Content-Type", "application/json").do(method, path, []byte(body))
		if a.code != want {
			t.Errorf("%s: %s %s: answer %d, want %d: %.300s", when, method, path, a.code, want, a.body)
		}
		if want != http.StatusServiceUnavailable {
			return
		}
		status := a.status(t)
		if status.Details == nil || len(status.Details.Causes) != 1 || status.Details.Causes[0].Type != storage.CauseDiskFull ||
			!strings.Contains(status.Message, "did not happen") || a.header.Get("Retry-After") != "" {
			t.Errorf("%s: %+v, header %v", when, status, a.header)
		}
	}
	expect("plenty", "POST", leases, fmt.Sprintf(lease, "", "a"), 201)
	expect("plenty", "POST", pods, pod("small"), 201)
	expect("plenty", "POST", "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"gone"}}`, 201)
	set(90)
	expect("low", "POST", pods, large, 503)
	expect("low", "POST", pods, pod("other"), 201)
	set(40)
	expect("scant", "POST", pods, pod("third"), 503)
	expect("scant", "PUT", leases+"/l", renew("b"), 200)
	status, err := c.statusOf(0)
	if err != nil || len(status.Warnings) != 1 || !strings.Contains(status.Warnings[0], "the disk is scant") {
		t.Errorf("the status warns of %q, %v", status.Warnings, err)
	}
	set(5)
	expect("full", "PUT", leases+"/l", renew("c"), 503)
	expect("full", "DELETE", pods+"/small?gracePeriodSeconds=0", "", 200)
	expect("full", "DELETE", "/api/v1/namespaces/gone", "", 200)
	until(t, func() error { // two finalizers and a controller later
		if a := client.get("/api/v1/namespaces/gone"); a.code != 404 {
			return fmt.Errorf("the namespace is still there: %s", a.body)
		}
		return nil
	})
	expect("full", "GET", pods+"/other", "", 200)
	set(500)
	expect("healed", "POST", pods, large, 201)
	expect("healed", "PUT", leases+"/l", renew("c"), 200)
	backup := string(client.get(api.SnapshotPath).body)
	expect("healed", "DELETE", pods+"/large?gracePeriodSeconds=0", "", 200)
	set(90)
	expect("low", "POST", api.SnapshotPath, backup, 503)
	expect("low", "GET", pods+"/large", "", 404)
	set(500)
	expect("healed", "POST", api.SnapshotPath, backup, 200)
	expect("healed", "GET", pods+"/large", "", 200)
}

// TestDiskReserveFlag: its values.
func TestDiskReserveFlag(t *testing.T) {
	defaults := cluster.DefaultConfig().DiskReserve
	for text, want := range map[string]cluster.DiskReserve{
		DefaultConfig().DiskReserve: defaults,
		"2.5%":                      {Percent: 2.5, Least: defaults.Least, Most: defaults.Most},
		"2Gi":                       {Least: 2 << 30},
		"0":                         {},
	} {
		if got, err := parseReserve(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "%", "100%", "-1%", "-2Gi", "some"} {
		if got, err := parseReserve(text); err == nil || !strings.Contains(err.Error(), "--disk-reserve") {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}
