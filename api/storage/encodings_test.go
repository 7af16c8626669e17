package storage

import (
	"fmt"
	"io"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/example"
)

// TestEncodingsAreBounded makes more encodings than there is room for: the oldest
// go, the newest stay, and one that went is made again.
func TestEncodingsAreBounded(t *testing.T) {
	const size, room = 1000, 10
	kept := NewEncodings(room*size + room*10)
	made := 0
	read := func(o *object) {
		if err := o.CacheEncode("id", func(_ runtime.Object, w io.Writer) error {
			made++
			_, err := w.Write(make([]byte, size))
			return err
		}, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	var objects []*object
	for i := range 3 * room {
		pod := &example.Pod{}
		pod.Name = fmt.Sprint(i)
		o := &object{store: &Store{Config: Config{Encodings: kept}}}
		o.decoding.Do(func() { o.decoded = pod })
		objects = append(objects, o)
		read(o)
		if kept.bytes > kept.limit {
			t.Fatalf("%d bytes are kept, want at most %d", kept.bytes, kept.limit)
		}
	}
	before := made
	read(objects[len(objects)-1])
	if made != before {
		t.Error("the newest encoding was not kept")
	}
	read(objects[0])
	if made != before+1 {
		t.Error("the oldest encoding was kept")
	}
}
