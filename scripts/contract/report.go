package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

const (
	examples = 2   // of a difference are printed in full
	margin   = 3   // lines around a changed one
	longest  = 400 // of a line
)

var digits = regexp.MustCompile(`[0-9]+`)

// A report counts and keeps what was found.
type report struct {
	sequences, requests int
	compared            int            // answers of Kontiki, each with the peer's
	outcomes            [][]outcome    // by sequence
	answers             map[string]int // of the peer, by status
	differences         []difference
	failure             error // to send a request at all
}

// add takes in the outcomes of one sequence.
func (r *report) add(q sequence, outcomes []outcome, found []difference) {
	r.sequences++
	r.requests += len(q.steps)
	r.differences = append(r.differences, found...)
	for _, o := range outcomes {
		r.compared += len(o.answers) - 1
		if status := httpStatus.FindStringSubmatch(o.answers[0]); status != nil {
			r.answers[status[1]]++
		}
	}
}

var httpStatus = regexp.MustCompile(`^HTTP/[0-9.]+ (\d+)`)

func (r *report) unmeant() (n int) {
	for _, d := range r.differences {
		if d.meant == nil {
			n++
		}
	}
	return n
}

// write prints the differences that are not meant, those alike together, then
// the counts, with the reasons of those that are meant.
func (r *report) write(w io.Writer) {
	groups := r.writeGroups(w)
	fmt.Fprintf(w, "\nthe peer's answers:")
	for _, status := range slices.Sorted(maps.Keys(r.answers)) {
		fmt.Fprintf(w, "  %s: %d", status, r.answers[status])
	}
	fmt.Fprintf(w, "\n%d sequences, %d requests, each to the peer, a leader and a follower; %d answers compared\n",
		r.sequences, r.requests, r.compared)
	meantCounts := map[string]int{}
	for _, d := range r.differences {
		if d.meant != nil {
			meantCounts[d.meant.reason]++
		}
	}
	fmt.Fprintf(w, "%d differences are meant:\n", len(r.differences)-r.unmeant())
	for _, m := range meantDifferences {
		fmt.Fprintf(w, "  %4d  %s\n", meantCounts[m.reason], m.reason)
	}
	fmt.Fprintf(w, "%d differences in %d groups are not meant\n", r.unmeant(), groups)
}

// writeGroups prints the differences that are not meant and counts the groups.
func (r *report) writeGroups(w io.Writer) int {
	groups := map[string][]difference{}
	for _, d := range r.differences {
		if d.meant == nil {
			groups[d.signature()] = append(groups[d.signature()], d)
		}
	}
	order := make([]string, 0, len(groups))
	for signature := range groups {
		order = append(order, signature)
	}
	slices.SortFunc(order, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(groups[b]), len(groups[a])), cmp.Compare(a, b))
	})
	for i, signature := range order {
		alike := groups[signature]
		fmt.Fprintf(w, "\n=== difference %d of %d, seen %d times\n", i+1, len(order), len(alike))
		for _, d := range alike[:min(len(alike), examples)] {
			d.write(w)
		}
	}
	return len(order)
}

func (d difference) write(w io.Writer) {
	fmt.Fprintf(w, "\n--- %q, step %d, through %s (- peer, + kontiki)\n    %s\n", d.sequence, d.number+1, d.node, d.asked)
	if d.asked.path != "" {
		fmt.Fprintf(w, "    %s\n", d.curl())
	}
	for _, line := range around(diff(d.peer, d.kontiki)) {
		if len(line) > longest {
			line = line[:longest] + " ..."
		}
		fmt.Fprintf(w, "    %s\n", line)
	}
}

// curl is the request for a shell.
func (d difference) curl() string {
	words := []string{"curl -k -X", d.asked.method, quote(d.url + d.asked.target())}
	if credential := credentials[d.asked.user]; credential != "" {
		words = append(words, "-H", quote("Authorization: "+credential))
	}
	for _, pair := range d.asked.header {
		words = append(words, "-H", quote(pair[0]+": "+pair[1]))
	}
	if d.asked.body != "" {
		body := d.asked.body
		if len(body) > longest*4 {
			body = body[:longest*4] + "..."
		}
		words = append(words, "-d", quote(body))
	}
	if d.asked.proto {
		words = append(words, "# the body went as protobuf")
	}
	return strings.Join(words, " ")
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// around leaves out lines that are far from any changed one.
func around(lines []string) (near []string) {
	keep := make([]bool, len(lines))
	for i, line := range lines {
		if line[0] == ' ' {
			continue
		}
		for j := max(0, i-margin); j < min(len(lines), i+margin+1); j++ {
			keep[j] = true
		}
	}
	keep[0] = true // the status
	for i, line := range lines {
		switch {
		case keep[i]:
			near = append(near, line)
		case keep[i-1]:
			near = append(near, " ...")
		}
	}
	return near
}
