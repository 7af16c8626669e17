package metrics

import (
	"strings"
	"sync"
	"time"

	"kontiki/fsm"
	"kontiki/watch"
)

// sizeShare is how much of the time at most goes into adding up sizes: after a
// walk over all objects, none for a hundred times as long as it took.
const sizeShare = 100

// Objects is how many objects of a resource there are, and their bytes as
// stored.
type Objects struct {
	Group    string `json:"group"`
	Resource string `json:"resource"`
	Count    int    `json:"count"`
	Bytes    int64  `json:"bytes"`
}

// Name is the resource as upstream writes it: leases.coordination.k8s.io.
func (o Objects) Name() string { return strings.TrimSuffix(o.Resource+"."+o.Group, ".") }

// sizes are bytes by topic, as of a view that may be a little old.
type sizes struct {
	mu    sync.Mutex
	bytes map[string]int64 // guarded by mu
	index uint64           // guarded by mu; of the view they are from
	next  time.Time        // guarded by mu; when they may be added up again
}

// of adds up the sizes, or returns the last ones if that was a moment ago.
func (s *sizes) of(view *fsm.View) map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	start := time.Now()
	if s.bytes != nil && (s.index == view.Index() || start.Before(s.next)) {
		return s.bytes
	}
	s.bytes, s.index = make(map[string]int64), view.Index()
	var topic string
	var sum *int64
	view.Ascend("", "", func(e *fsm.Entry) bool {
		if sum == nil || !strings.HasPrefix(e.Key, topic) {
			if sum != nil {
				s.bytes[topic] += *sum
			}
			topic, sum = watch.TopicOf(e.Key), new(int64)
		}
		*sum += int64(len(e.Value))
		return true
	})
	if sum != nil {
		s.bytes[topic] += *sum
	}
	s.next = time.Now().Add(sizeShare * time.Since(start))
	return s.bytes
}

// objects counts what a view holds, without visiting it.
func (m *Metrics) objects() []Objects {
	if m.sources.View == nil {
		return nil
	}
	view := m.sources.View()
	bytes := m.sizes.of(view)
	var all []Objects
	for from := ""; ; {
		topic := ""
		view.Ascend("", from, func(e *fsm.Entry) bool {
			topic = watch.TopicOf(e.Key)
			return false
		})
		if topic == "" {
			return all
		}
		o := resourceOf(topic)
		o.Count, o.Bytes = view.Count(topic, ""), bytes[topic]
		all = append(all, o)
		from = strings.TrimSuffix(topic, "/") + "0" // the first key after those that begin with the topic
	}
}

// resourceOf is the inverse of how package storage makes topics.
func resourceOf(topic string) Objects {
	root, resource, _ := strings.Cut(strings.Trim(topic, "/"), "/")
	if root == "core" {
		root = ""
	}
	return Objects{Group: root, Resource: resource}
}
