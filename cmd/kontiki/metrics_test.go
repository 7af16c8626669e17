package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// metricsDoc is the table for operators.
const metricsDoc = "../../api/metrics/METRICS.md"

var (
	docRow   = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (\\w+) \\| (.*) \\|$")
	helpLine = regexp.MustCompile(`(?m)^# HELP (\S+) (.*)\n# TYPE \S+ (\w+)$`)
)

// TestMetricsTable: the table has what the leader of a cluster in use serves, with the
// same words, and nothing else.
func TestMetricsTable(t *testing.T) {
	t.Parallel()
	backups := t.TempDir()
	c := newCluster(t, 3, func(_ int, cfg *Config) { cfg.Backups.Dir = backups })
	client := c.http(c.leader())
	client.do("POST", "/api/v1/namespaces/default/pods", []byte(pod("a")))
	client.get("/api/v1/namespaces/default/pods/a")
	doc, err := os.ReadFile(metricsDoc)
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range docRow.FindAllStringSubmatch(string(doc), -1) {
		documented[row[1]] = row[0]
	}
	until(t, func() error {
		served := map[string]bool{}
		for _, family := range helpLine.FindAllStringSubmatch(string(client.get("/metrics").body), -1) {
			name := family[1]
			if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
				continue
			}
			served[name] = true
			if row := fmt.Sprintf("| `%s` | %s | %s |", name, family[3], family[2]); documented[name] != row {
				return fmt.Errorf("%s needs the row\n%s\nit has\n%s", metricsDoc, row, documented[name])
			}
		}
		for name := range documented {
			if !served[name] {
				return fmt.Errorf("%s has %s, which is not served", metricsDoc, name)
			}
		}
		return nil
	})
}

func pod(name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q},"spec":{"containers":[{"name":"c","image":"i"}]}}`, name)
}

// value returns a sample of a node's metrics.
func (c *rawClient) value(series string) string {
	c.t.Helper()
	lines := strings.Split(string(c.get("/metrics").body), "\n")
	i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, series+" ") })
	if i < 0 {
		return ""
	}
	return lines[i][len(series)+1:]
}

// TestMetricsSay: what the numbers are, after known requests.
func TestMetricsSay(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	leader, follower := c.leader(), c.followers()[0]
	for i := range 5 {
		if a := c.http(follower).do("POST", "/api/v1/namespaces/default/pods", []byte(pod(fmt.Sprint("p", i)))); a.code != 201 {
			t.Fatalf("create: answer %d: %s", a.code, a.body)
		}
	}
	for node, want := range map[int]map[string]string{
		follower: {
			`apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="POST",version="v1"}`: "5",
			`kontiki_propose_duration_seconds_count`:     "5",
			`kontiki_raft_state{state="leader"}`:         "0",
			`apiserver_storage_objects{resource="pods"}`: "5",
		},
		leader: {
			`kontiki_raft_state{state="leader"}`: "1",
			`kontiki_raft_leader_known`:          "1",
			fmt.Sprintf(`kontiki_follower_lag_entries{member=%q}`, c.nodes[follower].cfg.Name): "0",
			`apiserver_resource_objects{group="",resource="pods"}`:                             "5",
			`kontiki_disk_level`: "0",
		},
	} {
		client := c.http(node)
		for series, number := range want {
			until(t, func() error {
				if got := client.value(series); got != number {
					return fmt.Errorf("%s is %q, want %s", series, got, number)
				}
				return nil
			})
		}
	}
	for _, series := range []string{"kontiki_apply_duration_seconds_count", "kontiki_log_store_duration_seconds_count", "kontiki_forward_duration_seconds_count"} {
		if got := c.http(follower).value(series); got == "" || got == "0" {
			t.Errorf("%s is %q", series, got)
		}
	}
	if got := c.http(leader).value(`kontiki_certificate_expiry_timestamp_seconds{certificate="node"}`); got == "" {
		t.Error("the node's certificate is missing")
	}
}
