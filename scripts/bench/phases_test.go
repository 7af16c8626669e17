package main

import (
	"testing"
)

func TestChoose(t *testing.T) {
	if all, err := choose(nil); err != nil || len(all) != len(phases()) {
		t.Errorf("%d of %d: %v", len(all), len(phases()), err)
	}
	some, err := choose([]string{"delete", "create"})
	if err != nil || len(some) != 2 || some[0].name != "create" {
		t.Errorf("not in the order in which they run: %v, %v", some, err)
	}
	if _, err := choose([]string{"creat"}); err == nil {
		t.Error("no error for an unknown phase")
	}
}

// TestPods: the load is what the documentation says, and a pod's encoding can be sent.
func TestPods(t *testing.T) {
	body, err := encode(newPod(149_999))
	if err != nil {
		t.Fatal(err)
	}
	if len(body) < 1200 || len(body) > 3000 {
		t.Errorf("a pod is sent as %d bytes; stored, with managedFields, it is to have about 3000", len(body))
	}
	if name := newPod(149_999).Spec.NodeName; name != "node-1363" {
		t.Errorf("the last pod is on %s", name)
	}
}
