package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"kontiki/api"
	"kontiki/api/metrics"
)

// printStatus writes the screen.
func printStatus(w io.Writer, s api.Status) error {
	leader := cmp.Or(s.Leader, "NONE")
	fmt.Fprintf(w, "Leader %s, as %s sees it at %s\n\n", leader, s.Name, s.Time.Local().Format(time.DateTime))
	if err := printMemberStatus(w, s); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := printObjects(w, s.Objects); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if len(s.Warnings) == 0 {
		_, err := fmt.Fprintln(w, "No warnings")
		return err
	}
	_, err := fmt.Fprintf(w, "Warnings\n  %s\n", strings.Join(s.Warnings, "\n  "))
	return err
}

func printMemberStatus(w io.Writer, s api.Status) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MEMBER\tROLE\tAPPLIED\tLAG\tREADS/S\tWRITES/S\tERRORS/S\tWATCHES\tDISK FREE\tLOG\tMEMORY\tCERTIFICATES\tUP\tVERSION")
	for _, m := range s.Members {
		role := string(m.Role)
		if m.Leader {
			role = "leader"
		}
		if m.Report == nil {
			fmt.Fprintf(table, "%s\t%s\t(no answer)\t\t\t\t\t\t\t\t\t\t\t%s\n", m.Name, role, m.Version)
			continue
		}
		r := m.Report
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%.1f\t%.1f\t%.1f\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n",
			m.Name, role, r.AppliedIndex, m.Lag, r.Rates.Reads, r.Rates.Writes, r.Rates.Failures, r.Watchers,
			freeOf(r.Disk), bytesText(r.LogBytes), bytesText(int64(r.MemoryBytes)),
			untilFirst(r.Certificates, s.Time), duration.HumanDuration(s.Time.Sub(r.Started)), m.Version)
	}
	return table.Flush()
}

func freeOf(d metrics.Disk) string {
	if d.Total == 0 {
		return "?"
	}
	return fmt.Sprintf("%s (%d%%)", bytesText(int64(d.Free)), 100*d.Free/d.Total)
}

// untilFirst is how long the first certificate to end is still good.
func untilFirst(certificates []metrics.Certificate, now time.Time) string {
	if len(certificates) == 0 {
		return "?"
	}
	first := slices.MinFunc(certificates, func(a, b metrics.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	if !first.NotAfter.After(now) {
		return "EXPIRED"
	}
	return duration.HumanDuration(first.NotAfter.Sub(now))
}

func printObjects(w io.Writer, objects []metrics.Objects) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RESOURCE\tOBJECTS\tSIZE")
	for _, o := range objects {
		fmt.Fprintf(table, "%s\t%d\t%s\n", o.Name(), o.Count, bytesText(o.Bytes))
	}
	return table.Flush()
}

// bytesText is a size for people.
func bytesText(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	value, unit := float64(n), 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	if unit == 0 || value >= 10 {
		return fmt.Sprintf("%.0f %s", value, units[unit])
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}
