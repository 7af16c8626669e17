package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestListMeta(t *testing.T) {
	body, err := encode(&corev1.PodList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "17", Continue: "more"},
		Items:    []corev1.Pod{*newPod(1), *newPod(2)},
	})
	if err != nil {
		t.Fatal(err)
	}
	meta, err := listMeta(body)
	if err != nil || meta.ResourceVersion != "17" || meta.Continue != "more" {
		t.Errorf("%+v, %v", meta, err)
	}
	for n := range 60 { // inside the envelope and the metadata
		if _, err := listMeta(body[:n]); err == nil {
			t.Errorf("no error for the first %d bytes", n)
		}
	}
}

// TestFrames: events are found one after the other, and those of others are passed over.
func TestFrames(t *testing.T) {
	var stream bytes.Buffer
	for _, event := range []string{"\x01\x02" + sentMark + "1700000000000000001\x1a", "nothing", sentMark + "1700000000000000002"} {
		_ = binary.Write(&stream, binary.BigEndian, uint32(len(event)))
		stream.WriteString(event)
	}
	var got []int64
	in, frame, err := bufio.NewReader(&stream), []byte(nil), error(nil)
	for {
		if frame, err = readFrame(in, frame); err != nil {
			break
		}
		if at, ok := sentAt(frame); ok {
			got = append(got, at.Sub(time.Unix(1700000000, 0)).Nanoseconds())
		}
	}
	if len(got) != 2 || got[0] != 1 || got[1] != 2 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := readFrame(bufio.NewReader(bytes.NewReader([]byte{0xff, 0, 0, 0, 1})), nil); err == nil {
		t.Error("an event of 4 GB is none")
	}
}

// TestVersionOf: a watch resumes from the last event that was read.
func TestVersionOf(t *testing.T) {
	pod := newPod(1)
	pod.ResourceVersion = "4711"
	body, err := encode(pod)
	if err != nil {
		t.Fatal(err)
	}
	event := metav1.WatchEvent{Type: "MODIFIED", Object: runtime.RawExtension{Raw: body}}
	frame, err := event.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := versionOf(frame); err != nil || got != "4711" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := versionOf(frame[:len(frame)/2]); err == nil {
		t.Errorf("half an event has version %q", got)
	}
}
