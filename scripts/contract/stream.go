package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A frame is one event of a watch; object is decoded as any JSON is.
type frame struct {
	Type   string `json:"type"`
	Object any    `json:"object"`
}

// A stream reads frames in the background until it is stopped or ends.
type stream struct {
	stop  func()
	toEnd bool // it is expected to end by itself

	mu      sync.Mutex
	frames  []frame
	ended   bool
	garbage string // why reading ended, if not by a clean end
	last    time.Time
}

func follow(response *http.Response, stop context.CancelFunc) *stream {
	s := &stream{stop: stop, last: time.Now()}
	next := jsonFrames(response.Body)
	if strings.HasPrefix(response.Header.Get("Content-Type"), protobufMedia) {
		next = protobufFrames(response.Body)
	}
	go func() {
		defer response.Body.Close()
		for {
			f, err := next()
			s.mu.Lock()
			s.last = time.Now()
			switch {
			case err == nil:
				s.frames = append(s.frames, f)
			case err == io.EOF:
				s.ended = true
			default:
				s.ended, s.garbage = true, err.Error()
			}
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return s
}

// recall makes it as long as a stream that said text, with its end if it had one.
func (s *stream) recall(frames int, text string) {
	s.frames = make([]frame, frames)
	s.ended = strings.HasSuffix(text, "\nend of the stream") || strings.Contains(text, "\nbroken off: ")
}

// state is what has come so far, and since when nothing came.
func (s *stream) state() (frames []frame, ended bool, garbage string, last time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.frames, s.ended, s.garbage, s.last
}

func jsonFrames(body io.Reader) func() (frame, error) {
	decoder := json.NewDecoder(body)
	decoder.UseNumber()
	return func() (f frame, err error) {
		err = decoder.Decode(&f)
		return f, err
	}
}

// protobufFrames reads frames of four bytes length and a WatchEvent.
func protobufFrames(body io.Reader) func() (frame, error) {
	reader := bufio.NewReader(body)
	return func() (frame, error) {
		var size [4]byte
		if _, err := io.ReadFull(reader, size[:]); err != nil {
			return frame{}, err
		}
		data := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(reader, data); err != nil {
			return frame{}, err
		}
		var event metav1.WatchEvent
		if err := event.Unmarshal(data); err != nil {
			return frame{}, err
		}
		object, err := fromProtobuf(event.Object.Raw)
		return frame{Type: event.Type, Object: object}, err
	}
}
