package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kontiki/api/metrics"
	"kontiki/cluster"
)

// StatusPath answers how the cluster is.
const StatusPath = ownPrefix + "/status"

const (
	// expirySoon is how long before a certificate ends it is worth a warning.
	expirySoon = 30 * 24 * time.Hour

	// lagWorth is by how many entries a member may be behind without one: about
	// what two seconds of a storm make.
	lagWorth = 4096
)

// Status is the cluster as one node sees it, with what each member says of
// itself.
type Status struct {
	Name     string            `json:"name"`   // of the node that answers
	Leader   string            `json:"leader"` // empty: none known
	Time     time.Time         `json:"time"`
	Members  []MemberStatus    `json:"members"`
	Objects  []metrics.Objects `json:"objects"` // on the node that answers
	Warnings []string          `json:"warnings"`
}

// MemberStatus is one member.
type MemberStatus struct {
	Name    string       `json:"name"`
	Role    cluster.Role `json:"role"`
	Leader  bool         `json:"leader"`
	Alive   bool         `json:"alive"` // as gossip sees it
	APIAddr string       `json:"apiAddr"`
	Version string       `json:"version"`
	// Error says why the member did not report; then there is no Report.
	Error  string          `json:"error,omitempty"`
	Report *metrics.Report `json:"report,omitempty"`
	Lag    uint64          `json:"lag"` // entries committed and not applied there
}

// Reporter is the node, as far as the status of all members needs it.
type Reporter interface {
	metrics.Node
	Reports(ctx context.Context) map[string]cluster.Reported
	OnReport(f func() []byte)
}

func (s *Server) readStatus(_ http.ResponseWriter, r *http.Request) (any, error) {
	if s.Reporter == nil {
		return nil, apierrors.NewServiceUnavailable("this server has no node to ask")
	}
	reports := s.Reporter.Reports(r.Context())
	own := s.Reporter.Status()
	status := Status{Name: s.Name, Leader: own.Leader, Time: time.Now().UTC(), Objects: s.metrics.Objects(), Members: []MemberStatus{}, Warnings: []string{}}
	var newest uint64
	for _, member := range s.Reporter.Members() {
		m := memberStatus(member, reports[member.Name])
		if m.Report != nil {
			newest = max(newest, m.Report.AppliedIndex) // CommitIndex counts otherwise, after a restore
		}
		status.Members = append(status.Members, m)
	}
	for i := range status.Members {
		if m := &status.Members[i]; m.Report != nil {
			m.Lag = newest - m.Report.AppliedIndex
		}
	}
	status.Warnings = append(status.Warnings, status.warnings()...)
	return status, nil
}

func memberStatus(member cluster.Member, reported cluster.Reported) MemberStatus {
	m := MemberStatus{
		Name: member.Name, Role: member.Role, Leader: member.Leader, Alive: member.Alive,
		APIAddr: member.APIAddr, Version: member.Version,
	}
	var report metrics.Report
	switch {
	case reported.Err != nil:
		m.Error = "no answer: " + reported.Err.Error()
	case len(reported.Report) == 0:
		m.Error = "no report"
	default:
		if err := json.Unmarshal(reported.Report, &report); err != nil {
			m.Error = "unreadable report: " + err.Error()
			return m
		}
		m.Report = &report
	}
	return m
}

// warnings is what an operator should know, the worst first.
func (s *Status) warnings() (all []string) {
	if s.Leader == "" {
		all = append(all, "there is no leader: writes and consistent reads fail")
	}
	voters, up := 0, 0
	for _, m := range s.Members {
		if m.Role != cluster.RoleVoter {
			continue
		}
		voters++
		if m.Error == "" {
			up++
		}
	}
	switch need := voters/2 + 1; {
	case voters == 0:
		all = append(all, fmt.Sprintf("%s is in no cluster yet: it waits for others to form one (--bootstrap-expect), or for a member to let it in", s.Name))
	case up < need:
		all = append(all, fmt.Sprintf("%d of %d voters answer, and %d are needed", up, voters, need))
	case up == need && voters > 1:
		all = append(all, fmt.Sprintf("%d of %d voters answer: one more lost, and writes fail", up, voters))
	}
	versions := map[string]bool{}
	for _, m := range s.Members {
		versions[m.Version] = true
		all = append(all, m.warnings(s.Time)...)
	}
	if len(versions) > 1 {
		all = append(all, "members run different versions")
	}
	return all
}

func (m MemberStatus) warnings(now time.Time) (all []string) {
	if m.Report == nil {
		return []string{fmt.Sprintf("%s: %s", m.Name, m.Error)}
	}
	if m.Report.Disk.Level != cluster.DiskOK.String() {
		all = append(all, fmt.Sprintf("%s: the disk is %s: %d MiB free of a reserve of %d MiB; delete objects or make room",
			m.Name, m.Report.Disk.Level, m.Report.Disk.Free>>20, m.Report.Disk.Reserve>>20))
	}
	if m.Report.BackupError != "" {
		all = append(all, fmt.Sprintf("%s: the scheduled backup failed: %s", m.Name, m.Report.BackupError))
	}
	if m.Lag > lagWorth {
		all = append(all, fmt.Sprintf("%s: %d entries behind", m.Name, m.Lag))
	}
	certificates := slices.SortedFunc(slices.Values(m.Report.Certificates), func(a, b metrics.Certificate) int {
		return cmp.Or(a.NotAfter.Compare(b.NotAfter), cmp.Compare(a.Name, b.Name))
	})
	for _, c := range certificates {
		switch left := c.NotAfter.Sub(now); {
		case left <= 0:
			all = append(all, fmt.Sprintf("%s: certificate %s expired on %s", m.Name, c.Name, c.NotAfter.Format(time.DateOnly)))
		case left < expirySoon:
			all = append(all, fmt.Sprintf("%s: certificate %s expires on %s", m.Name, c.Name, c.NotAfter.Format(time.DateOnly)))
		}
	}
	return all
}
