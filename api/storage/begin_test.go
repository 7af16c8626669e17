package storage_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "k8s.io/apiserver/pkg/storage"
)

// TestNoDataYet: a node that has just been started and has applied nothing does
// not answer that there is nothing. It waits a little, and then says why not.
func TestNoDataYet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leader, late := newReplicas(1)
		mustCreate(t, leader.store(t), labelled("a", "1"))
		store := late[0].store(t)
		ask := func() map[string]error {
			_, got := get(store, "a", "0")
			_, listed := list(store, upstream.ListOptions{ResourceVersion: "0"})
			return map[string]error{"get": got, "list": listed}
		}
		for verb, err := range ask() {
			checkError(t, verb, err, http.StatusServiceUnavailable, 1, metav1.StatusReasonServiceUnavailable)
		}
		time.AfterFunc(time.Second, late[0].catchUp)
		for verb, err := range ask() {
			if err != nil {
				t.Errorf("%s, with the data a second late: %v", verb, err)
			}
		}
	})
}
