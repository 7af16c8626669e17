package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"kontiki/scripts/chaos/faults"
)

// actsMax bounds a round: its history has to be searched for an order.
const actsMax = 6

// deck is what is still to be done.
type deck struct {
	acts  []act
	pairs []faults.Fault // for what comes after
	luck  *rand.Rand
}

func newDeck(o options) (*deck, error) {
	d := &deck{luck: rand.New(rand.NewPCG(o.seed, 1))}
	all := slices.DeleteFunc(faults.All(), func(f faults.Fault) bool { return f.Network && o.loopback })
	for _, names := range o.list {
		var a act
		for name := range strings.SplitSeq(names, "+") {
			i := slices.IndexFunc(all, func(f faults.Fault) bool { return f.Name == name })
			if i < 0 {
				return nil, fmt.Errorf("there is no fault %q here: --list names them", name)
			}
			a = append(a, all[i])
		}
		d.acts = append(d.acts, a)
	}
	if len(o.list) == 0 {
		for _, i := range d.luck.Perm(len(all)) {
			d.acts = append(d.acts, act{all[i]})
		}
	}
	d.pairs = slices.DeleteFunc(slices.Clone(all), func(f faults.Fault) bool { return f.Alone })
	return d, nil
}

// deal returns the acts of the next round; none is the end. When the deck is empty, pairs
// go on for as long as there is more time.
func (d *deck) deal(more bool) (hand []act) {
	for len(hand) < actsMax {
		if len(d.acts) == 0 {
			if len(hand) > 0 || !more {
				return hand
			}
			for range actsMax {
				i, j := d.luck.IntN(len(d.pairs)), d.luck.IntN(len(d.pairs))
				d.acts = append(d.acts, act{d.pairs[i], d.pairs[j]})
			}
		}
		next := d.acts[0]
		d.acts = d.acts[1:]
		hand = append(hand, next)
		if len(next) == 1 && next[0].Alone {
			return hand
		}
	}
	return hand
}
