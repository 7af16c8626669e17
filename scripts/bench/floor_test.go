package main

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestFloor: the floor answers what it was given, by kind and content type, and tells watchers of changes
// in frames that the bench reads.
func TestFloor(t *testing.T) {
	c, err := newClient(newFloor(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.transport.CloseIdleConnections()
	ctx := t.Context()
	for _, answer := range []struct{ path, media, body string }{
		{podPath(0), protobufMedia, "a pod " + sentMark + "1 "}, {podsPath, protobufMedia, "pods"}, {podsPath, jsonMedia, `{"pods":1}`},
	} {
		if err := c.Put().AbsPath(answer.path).SetHeader("Content-Type", answer.media).Body([]byte(answer.body)).Do(ctx).Error(); err != nil {
			t.Fatal(err)
		}
		path := strings.Replace(answer.path, podPath(0), podPath(7), 1) // any pod
		got, err := c.Get().AbsPath(path).SetHeader("Accept", answer.media).Do(ctx).Raw()
		if err != nil || string(got) != answer.body {
			t.Errorf("%s as %s: %q, %v", path, answer.media, got, err)
		}
	}
	stream, err := c.Get().AbsPath(podsPath).Param("watch", "1").Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	in := bufio.NewReader(stream)
	for range 3 {
		before := time.Now()
		change := (&target{clients: []*client{c}}).touch
		if err := change(ctx, 0, 0); err != nil {
			t.Fatal(err)
		}
		frame, err := readFrame(in, nil)
		sent, ok := sentAt(frame)
		if err != nil || !ok || sent.Before(before) || !bytes.HasPrefix(frame, []byte("a pod")) {
			t.Fatalf("%q, %v", frame, err)
		}
	}
	if err := c.Patch(types.MergePatchType).AbsPath(podPath(0)).Body([]byte("{}")).Do(ctx).Error(); err != nil {
		t.Error(err)
	}
}
