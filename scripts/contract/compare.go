package main

import (
	"fmt"
	"strings"
)

// A difference is one step to which a Kontiki node said something else than the peer.
type difference struct {
	sequence string
	number   int // of the step
	step     step
	asked    step   // as the node got it
	node     string // leader, follower or both
	url      string
	peer     string
	kontiki  string
	meant    *meant // nil: it is not
}

// compare looks for differences in what servers said; the first one is the peer.
func compare(servers []*server, q sequence, outcomes []outcome) (found []difference) {
	for number, o := range outcomes {
		for i := 1; i < len(servers); i++ {
			if o.answers[i] == o.answers[0] {
				continue
			}
			if last := len(found) - 1; last >= 0 && found[last].number == number && found[last].kontiki == o.answers[i] {
				found[last].node = "leader and follower"
				continue
			}
			d := difference{
				sequence: q.name, number: number, step: o.step, asked: o.asked[i],
				node: servers[i].name, url: servers[i].url, peer: o.answers[0], kontiki: o.answers[i],
			}
			d.meant = whyMeant(d)
			found = append(found, d)
		}
	}
	return found
}

// signature is alike for differences that probably have one cause: the words
// that differ, without numbers.
func (d difference) signature() string {
	var lines []string
	for _, line := range diff(d.peer, d.kontiki) {
		if line[0] != ' ' {
			lines = append(lines, digits.ReplaceAllString(line, "#"))
		}
		if len(lines) == 6 {
			break
		}
	}
	return strings.Join(lines, "\n")
}

// diff compares two texts by line: "-" is only in a, "+" only in b.
func diff(a, b string) (lines []string) {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for len(x) > 0 && len(y) > 0 && x[0] == y[0] {
		lines = append(lines, " "+x[0])
		x, y = x[1:], y[1:]
	}
	var tail []string
	for len(x) > 0 && len(y) > 0 && x[len(x)-1] == y[len(y)-1] {
		tail = append([]string{" " + x[len(x)-1]}, tail...)
		x, y = x[:len(x)-1], y[:len(y)-1]
	}
	const tooMany = 4000
	if len(x) > tooMany || len(y) > tooMany {
		for _, side := range []struct {
			mark  string
			lines []string
		}{{"-", x}, {"+", y}} {
			lines = append(lines, fmt.Sprintf("%s%d lines, which begin with", side.mark, len(side.lines)))
			for _, line := range side.lines[:min(len(side.lines), margin)] {
				lines = append(lines, side.mark+line)
			}
		}
		return append(lines, tail...)
	}
	return append(append(lines, edits(x, y)...), tail...)
}

// edits is the classic longest common subsequence.
func edits(x, y []string) (lines []string) {
	common := make([][]int, len(x)+1) // common[i][j]: of x[i:] and y[j:]
	for i := range common {
		common[i] = make([]int, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(x) || j < len(y) {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			lines = append(lines, " "+x[i])
			i, j = i+1, j+1
		case j == len(y) || i < len(x) && common[i+1][j] >= common[i][j+1]:
			lines = append(lines, "-"+x[i])
			i++
		default:
			lines = append(lines, "+"+y[j])
			j++
		}
	}
	return lines
}
