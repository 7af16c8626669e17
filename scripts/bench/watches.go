package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	watchers   = 100
	eventLimit = 1 << 20 // bytes of an event, against a broken stream
	// catchUp is how long watchers may take for the last event.
	catchUp = time.Minute
	// sentMark stands in an annotation before the time at which the change was sent.
	sentMark = "bench-sent="
)

// watchPaced changes pods at a pace that both servers keep up with, so latency is not that of a queue.
func watchPaced(b *bench, ctx context.Context, p phase, t *target) (result, error) {
	return b.watched(ctx, p, t, load{count: 500, every: 20 * time.Millisecond, do: t.touch})
}

// watchBurst changes pods as fast as the servers can, and so shows what they gain from batches.
func watchBurst(b *bench, ctx context.Context, p phase, t *target) (result, error) {
	return b.watched(ctx, p, t, load{count: min(2000, b.Pods), do: t.touch})
}

// touch changes a pod, and says in it when.
func (t *target) touch(ctx context.Context, w, i int) error {
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{"sent":"%s%d"}}}`, sentMark, time.Now().UnixNano())
	return t.clients[w].Patch(types.MergePatchType).AbsPath(podPath(i)).Body(body).Do(ctx).Error()
}

// watched measures the same changes without watchers and with them: the difference is what delivery takes.
// Latency is from before the change is sent until a watcher has the event, of watchers on followers only.
func (b *bench) watched(ctx context.Context, p phase, t *target, changes load) (result, error) {
	changes.count = min(changes.count, b.Pods)
	alone, err := b.onPods(ctx, p, t, b.Workers, changes)
	if err != nil {
		return result{}, err
	}
	leader, err := t.group.Leader(ctx)
	if err != nil {
		return result{}, err
	}
	crowd, err := t.watch(ctx, watching{count: watchers, events: watchers * changes.count, gzip: b.Gzip})
	if err != nil {
		return result{}, err
	}
	defer crowd.close()
	begin := time.Now()
	deliver := changes
	deliver.do = func(ctx context.Context, w, i int) error {
		err := changes.do(ctx, w, i)
		if err == nil && i == changes.count-1 {
			err = crowd.await(ctx)
		}
		return err
	}
	r, err := b.measured(ctx, p, t, deliver, b.Workers)
	if err != nil {
		return r, err
	}
	followers := crowd.delays(leader, len(t.group.Endpoints))
	delivered := changes.count * watchers
	return result{
		Resumed:    crowd.resumed(),
		Operations: delivered,
		PerSecond:  float64(delivered) / time.Since(begin).Seconds(),
		P50:        milliseconds(percentile(followers, 50)),
		P99:        milliseconds(percentile(followers, 99)),
		CPU:        (r.CPU - alone.CPU) * float64(changes.count) / float64(delivered),
	}, nil
}

// A watcher is one watch on a connection of its own.
type watcher struct {
	endpoint int // index of the group's
	client   *client
	fields   string // selector
	delays   []time.Duration
	again    int // how often the server ended the watch
}

// A crowd is watchers that read.
type crowd struct {
	all     []*watcher
	left    atomic.Int64  // events that are still to come
	done    chan struct{} // closed when none is left
	cancel  context.CancelFunc
	reading sync.WaitGroup
}

// watching says what to watch.
type watching struct {
	count  int                       // of watches
	events int                       // of all watches together
	fields func(i int) (name string) // a field selector; nil: all pods
	gzip   bool
}

// watch opens watches, spread over the nodes.
func (t *target) watch(ctx context.Context, what watching) (*crowd, error) {
	version, err := t.newestVersion(ctx)
	if err != nil {
		return nil, err
	}
	c := &crowd{done: make(chan struct{})}
	ctx, c.cancel = context.WithCancel(ctx)
	c.left.Store(int64(what.events))
	for i := range what.count {
		w := &watcher{endpoint: i % len(t.group.Endpoints)}
		if what.fields != nil {
			w.fields = what.fields(i)
		}
		w.client, err = newClient(t.group.Endpoints[w.endpoint], what.gzip)
		var stream io.ReadCloser
		if err == nil {
			stream, err = w.open(ctx, version)
		}
		if err != nil {
			c.close()
			return nil, fmt.Errorf("open watch %d: %w", i+1, err)
		}
		c.all = append(c.all, w)
		c.reading.Go(func() { w.follow(ctx, c, stream, version) })
	}
	return c, nil
}

func (w *watcher) open(ctx context.Context, version string) (io.ReadCloser, error) {
	return w.client.Get().AbsPath(podsPath).Param("watch", "1").Param("resourceVersion", version).
		Param("fieldSelector", w.fields).SetHeader("Accept", protobufMedia+";stream=watch").Stream(ctx)
}

// follow reads the watch, and resumes it where it was when the server ends it, as kube-apiserver does with
// watchers that lag behind.
func (w *watcher) follow(ctx context.Context, c *crowd, stream io.ReadCloser, version string) {
	for {
		last := w.read(c, stream)
		stream.Close()
		if seen, err := versionOf(last); err == nil {
			version = seen
		}
		var err error
		if stream, err = w.open(ctx, version); err != nil {
			return // the crowd was closed, or await misses events
		}
		w.again++
	}
}

// versionOf decodes an event's object for its version.
func versionOf(frame []byte) (string, error) {
	var event metav1.WatchEvent
	if err := event.Unmarshal(frame); err != nil {
		return "", err
	}
	object, _, err := wire.Decode(event.Object.Raw, nil, nil)
	if err != nil {
		return "", err
	}
	return meta.NewAccessor().ResourceVersion(object)
}

func (t *target) newestVersion(ctx context.Context) (string, error) {
	body, err := t.clients[0].Get().AbsPath(podsPath).Param("limit", "1").Do(ctx).Raw()
	if err != nil {
		return "", err
	}
	meta, err := listMeta(body)
	return meta.ResourceVersion, err
}

// read takes events until the stream ends, and returns the last one.
func (w *watcher) read(c *crowd, stream io.Reader) (last []byte) {
	in := bufio.NewReader(stream)
	var space []byte
	for {
		frame, err := readFrame(in, space)
		if err != nil {
			return last
		}
		space, last = last, frame // the last one stays while the next is read
		if sent, ok := sentAt(frame); ok {
			w.delays = append(w.delays, time.Since(sent))
			if c.left.Add(-1) == 0 {
				close(c.done)
			}
		}
	}
}

// readFrame reads one event of a watch in protobuf, its length in four bytes and then itself, into space
// if it fits.
func readFrame(in *bufio.Reader, space []byte) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > eventLimit {
		return nil, fmt.Errorf("an event of %d bytes", n)
	}
	frame := slices.Grow(space[:0], int(n))[:n]
	_, err := io.ReadFull(in, frame)
	return frame, err
}

// sentAt finds when the change was sent without decoding the event, which would be the client's CPU. An event of
// the floor's is the object and then the change; the object may say when an earlier one was sent.
func sentAt(frame []byte) (time.Time, bool) {
	i := bytes.LastIndex(frame, []byte(sentMark))
	if i < 0 {
		return time.Time{}, false
	}
	digits := frame[i+len(sentMark):]
	if end := bytes.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		digits = digits[:end]
	}
	n, err := strconv.ParseInt(string(digits), 10, 64)
	return time.Unix(0, n), err == nil
}

// await returns once all watchers have had all their events.
func (c *crowd) await(ctx context.Context) error {
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(catchUp):
		return fmt.Errorf("%d events did not come within %s", c.left.Load(), catchUp)
	}
}

// close ends all watches and returns once nobody reads any more.
func (c *crowd) close() {
	c.cancel()
	for _, w := range c.all {
		w.client.transport.CloseIdleConnections()
	}
	c.reading.Wait()
}

// resumed is how often servers ended a watch before its time.
func (c *crowd) resumed() (all int) {
	for _, w := range c.all {
		all += w.again
	}
	return all
}

// delays are those of watchers that are not on the leader; of all if there is only one endpoint.
func (c *crowd) delays(leader, endpoints int) (all []time.Duration) {
	c.close()
	for _, w := range c.all {
		if endpoints == 1 || w.endpoint != leader {
			all = append(all, w.delays...)
		}
	}
	slices.Sort(all)
	return all
}
