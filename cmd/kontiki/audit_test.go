package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"kontiki/api/audit"
)

const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: ["system:apiserver"]
- level: RequestResponse
  resources: [{group: "", resources: [pods]}]
- level: Metadata
`

// TestAudit: who did what is in the log, by the policy, refused requests included; without
// the flags there is none.
func TestAudit(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "logs", "audit.log")
	c := newCluster(t, 1, func(_ int, cfg *Config) {
		cfg.Audit = audit.Options{Path: path, PolicyFile: file(t, auditPolicy)}
	})
	c.http(0).do("POST", "/api/v1/namespaces/default/pods", []byte(pod("watched")))
	c.http(0).get("/api/v1/namespaces")
	c.stranger(0, "wrong").get("/api/v1/nodes")
	c.http(0).get("/api/v1/namespaces/default/pods?watch=true&timeoutSeconds=1")
	want := map[string]auditv1.Level{
		"create /api/v1/namespaces/default/pods 201":                            auditv1.LevelRequestResponse,
		"list /api/v1/namespaces 200":                                           auditv1.LevelMetadata,
		"list /api/v1/nodes 401":                                                auditv1.LevelMetadata,
		"watch /api/v1/namespaces/default/pods?watch=true&timeoutSeconds=1 200": auditv1.LevelRequestResponse,
	}
	until(t, func() error {
		seen, err := readAudit(path)
		if err != nil {
			return err
		}
		for request, level := range want {
			event, ok := seen[request]
			if !ok || event.Level != level {
				return fmt.Errorf("no %q at level %s in %v", request, level, seen)
			}
		}
		created := seen["create /api/v1/namespaces/default/pods 201"]
		if created.User.Username != "kubernetes-admin" || created.RequestObject == nil || created.ResponseObject == nil || created.ObjectRef.Name != "watched" {
			return fmt.Errorf("the create is written as %+v", created)
		}
		for request, event := range seen {
			if event.User.Username == "system:apiserver" {
				return fmt.Errorf("%s is in the log, against the policy", request)
			}
		}
		return nil
	})
}

// readAudit returns the events that end a request.
func readAudit(path string) (map[string]auditv1.Event, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	seen := map[string]auditv1.Event{}
	for line := range strings.Lines(string(data)) {
		var event auditv1.Event
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			return nil, errors.Join(err, errors.New(line))
		}
		if event.ResponseStatus != nil {
			seen[fmt.Sprintf("%s %s %d", event.Verb, event.RequestURI, event.ResponseStatus.Code)] = event
		}
	}
	return seen, nil
}

// TestAuditFlags: what is wrong with them is said at the start.
func TestAuditFlags(t *testing.T) {
	dir := t.TempDir()
	for name, o := range map[string]audit.Options{
		"go together":         {Path: filepath.Join(dir, "log")},
		"--audit-policy-file": {Path: filepath.Join(dir, "log"), PolicyFile: filepath.Join(dir, "none")},
		"--audit-log-path":    {Path: dir, PolicyFile: file(t, auditPolicy)},
	} {
		if log, err := audit.Open(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: %v, want %q in it", o, err, name)
			log.Close()
		}
	}
	if log, err := audit.Open(audit.Options{}); log != nil || err != nil || log.Close() != nil {
		t.Errorf("no flags: %v, %v", log, err)
	}
}
