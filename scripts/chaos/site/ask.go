package site

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// answerMax bounds what is read of an answer.
const answerMax = 64 << 20

// Do sends one request to one node, and reads the answer into out if it is not nil.
func (s *Site) Do(ctx context.Context, n *Node, method, path string, body, out any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	kind := "application/json"
	if method == http.MethodPatch {
		kind = "application/merge-patch+json"
	}
	text, err := s.Raw(ctx, n, method, path, kind, encoded)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(text, out)
}

// Raw sends what is no JSON, or is answered by none.
func (s *Site) Raw(ctx context.Context, n *Node, method, path, kind string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, n.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", kind)
	answer, err := s.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, answerMax))
	if err == nil && answer.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s %s%s: %s: %.300s", method, n.URL, path, answer.Status, text)
	}
	return text, err
}

// Get reads from one node.
func (s *Site) Get(ctx context.Context, n *Node, path string, out any) error {
	return s.Do(ctx, n, http.MethodGet, path, nil, out)
}

// Leader returns the node that most nodes take for the leader.
func (s *Site) Leader(ctx context.Context) (*Node, error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	votes := map[string]int{}
	for _, node := range s.Nodes {
		all.Go(func() {
			var members struct {
				Leader string `json:"leader"`
			}
			if s.Get(ctx, node, "/kontiki/v1/members", &members) == nil {
				mu.Lock()
				defer mu.Unlock()
				votes[members.Leader]++
			}
		})
	}
	all.Wait()
	var leader *Node
	for _, node := range s.Nodes {
		if votes[node.Name] > 0 && (leader == nil || votes[node.Name] > votes[leader.Name]) {
			leader = node
		}
	}
	if leader == nil {
		return nil, errors.New("no node knows a leader")
	}
	return leader, nil
}
