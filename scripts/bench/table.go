package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// print writes the record as JSON or as tables.
func (r *record) print(w io.Writer, format string) error {
	switch format {
	case "json":
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	case "markdown":
		fmt.Fprintf(w, "`%s`, commit %s, %s, %s\n\n", r.Command, r.Commit, r.Time.Format(time.DateOnly), r.Machine)
		for _, t := range r.tables() {
			t.markdown(w)
		}
		return nil
	case "":
		fmt.Fprintf(w, "\n%s\ncommit %s, %s\n", r.Machine, r.Commit, r.Time.Format("2006-01-02 15:04"))
		for _, t := range r.tables() {
			if err := t.text(w); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("-o %s: want json or markdown", format)
}

// A table has its head in the first row.
type table [][]string

func (t table) text(w io.Writer) error {
	fmt.Fprintln(w)
	tabs := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	for i, row := range t {
		line := strings.Join(row, "\t")
		if i == 0 {
			line = strings.ToUpper(line)
		}
		fmt.Fprintln(tabs, line)
	}
	return tabs.Flush()
}

func (t table) markdown(w io.Writer) {
	for i, row := range t {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintln(w, "|"+strings.Repeat("---|", len(row)))
		}
	}
	fmt.Fprintln(w)
}

// tables are one of what is measured per operation, and one of the rest.
func (r *record) tables() []table {
	operations := table{{"per operation", "kontiki", "p50 ms", "p99 ms", "CPU ms", "kube-apiserver", "p50 ms", "p99 ms", "CPU ms", "less CPU", "goal", "floor"}}
	others := table{{"at once", "kontiki", "kube-apiserver", "ratio", "goal"}}
	for _, p := range phases() {
		ours, theirs := r.median(p.name, "kontiki"), r.median(p.name, "kube-apiserver")
		switch {
		case ours.Operations == 0:
		case p.unit == cpuUnit:
			row := append([]string{p.title}, ours.cells()...)
			row = append(row, theirs.cells()...)
			row = append(row, ratio(theirs.CPU, ours.CPU), p.met(ours.CPU))
			operations = append(operations, append(row, r.median(p.name, floorName).cells()[cpuCell]))
		default:
			others = append(others, []string{p.title, ours.cell(), theirs.cell(),
				ratio(theirs.Seconds+theirs.Resident, ours.Seconds+ours.Resident), p.met(ours.Seconds + ours.Resident)})
		}
	}
	return slices.DeleteFunc([]table{operations, others, r.growth(), r.Crowd.table()}, func(t table) bool { return len(t) <= 1 })
}

// cpuCell is which of the cells of a result is its CPU.
const cpuCell = 3

func (r result) cells() []string {
	if r.Operations == 0 {
		return []string{"", "", "", ""}
	}
	return []string{fmt.Sprintf("%.0f/s", r.PerSecond), fmt.Sprintf("%.1f", r.P50), fmt.Sprintf("%.1f", r.P99), significant(r.CPU)}
}

func (r result) cell() string {
	switch {
	case r.Operations == 0:
		return ""
	case r.Seconds > 0:
		return fmt.Sprintf("%.2f s (most of %d: %.2f)", r.Seconds, r.Operations, r.Most)
	case r.Core > 0:
		return fmt.Sprintf("%.0f MiB (anonymous %.0f) in %d, %.1f %% of a core each", r.Resident, r.Anonymous, r.Operations, r.Core)
	}
	return fmt.Sprintf("%.0f MiB (anonymous %.0f) in %d", r.Resident, r.Anonymous, r.Operations)
}

// significant shows small numbers with as many digits as mean something.
func significant(v float64) string {
	switch {
	case v >= 10:
		return fmt.Sprintf("%.0f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

func ratio(theirs, ours float64) string {
	if theirs == 0 || ours <= 0 {
		return ""
	}
	return fmt.Sprintf("%.1f×", theirs/ours)
}

// met shows the goal, and whether the value is below it.
func (p phase) met(value float64) string {
	if value <= p.goal {
		return fmt.Sprintf("≤ %g met", p.goal)
	}
	return fmt.Sprintf("≤ %g missed", p.goal)
}

// median is, number by number, that of all rounds.
func (r *record) median(phase, server string) (m result) {
	var rounds []result
	for _, one := range r.Results {
		if one.Phase == phase && one.Server == server {
			rounds = append(rounds, one)
		}
	}
	of := func(number func(result) float64) float64 {
		var values []float64
		for _, one := range rounds {
			values = append(values, number(one))
		}
		return median(values)
	}
	for _, one := range rounds {
		m.Operations = one.Operations
	}
	m.PerSecond = of(func(r result) float64 { return r.PerSecond })
	m.P50, m.P99 = of(func(r result) float64 { return r.P50 }), of(func(r result) float64 { return r.P99 })
	m.CPU = of(func(r result) float64 { return r.CPU })
	m.Seconds, m.Most = of(func(r result) float64 { return r.Seconds }), of(func(r result) float64 { return r.Most })
	m.Resident, m.Anonymous = of(func(r result) float64 { return r.Resident }), of(func(r result) float64 { return r.Anonymous })
	m.Core = of(func(r result) float64 { return r.Core })
	return m
}
