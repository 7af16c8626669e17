package storage_test

import (
	"bytes"
	"context"
	"io"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	upstream "k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"

	"kontiki/api/storage"
)

// Upstream's stores pass values through a transformer, for encryption at rest,
// and some cases of its suite inject failures there. Kontiki has none, but its
// codec sits at the same place: transforming is a codec with a transformer
// around it.
type transforming struct {
	runtime.Codec
	transformer value.Transformer
}

// Encode implements runtime.Encoder. A stale value is one that should be written
// anew although it says the same; to a store that compares bytes, that is one
// whose bytes would be other ones now.
func (c *transforming) Encode(obj runtime.Object, w io.Writer) error {
	var plain bytes.Buffer
	if err := c.Codec.Encode(obj, &plain); err != nil {
		return err
	}
	if t, ok := c.transformer.(*storagetesting.PrefixTransformer); ok && isStale(t) {
		plain.WriteByte(' ')
	}
	data, err := c.transformer.TransformToStorage(context.Background(), plain.Bytes(), value.DefaultContext(nil))
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

func isStale(t *storagetesting.PrefixTransformer) bool {
	probe, _ := t.TransformToStorage(context.Background(), []byte("?"), value.DefaultContext(nil))
	_, stale, _ := t.TransformFromStorage(context.Background(), probe, value.DefaultContext(nil))
	return stale
}

// Decode implements runtime.Decoder.
func (c *transforming) Decode(data []byte, gvk *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	plain, _, err := c.transformer.TransformFromStorage(context.Background(), data, value.DefaultContext(nil))
	if err != nil {
		return nil, nil, err
	}
	return c.Codec.Decode(plain, gvk, into)
}

// transformed is a store whose transformer the suite changes. A node decodes an
// object once, so that a change of transformer would show on what nobody has
// read yet only; therefore each transformer gets a store on a replica that
// nobody has read from.
type transformed struct {
	upstream.Interface
	t    *testing.T
	node *node
	root string

	mu      sync.Mutex
	current *storagetesting.PrefixTransformer // guarded by mu
}

func newTransformed(t *testing.T, n *node, root string) *transformed {
	s := &transformed{t: t, node: n, root: root, current: storagetesting.NewPrefixTransformer([]byte("test!"), false)}
	s.Interface = s.storeWith(n.backend(), s.current)
	return s
}

func (s *transformed) storeWith(backend storage.Backend, transformer value.Transformer) upstream.Interface {
	return podStore(s.t, backend, s.root, &transforming{codec, transformer})
}

// UpdatePrefixTransformer implements storagetesting.InterfaceWithPrefixTransformer.
func (s *transformed) UpdatePrefixTransformer(modify storagetesting.PrefixTransformerModifier) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, changed := s.Interface, *s.current
	machine, hub := s.node.history.replica()
	s.Interface = s.storeWith(storage.Backend{Proposer: s.node.cluster, State: machine, Feed: hub}, modify(&changed))
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.Interface = before
	}
}

// blind is a transformed store whose Create does not look at what it wrote.
// Upstream's stores answer a create without transforming the value back; the
// transformer of RunTestListResourceVersionMatch creates an object whenever one
// is transformed back, and would never end.
type blind struct{ *transformed }

func (s blind) Create(ctx context.Context, key string, obj, _ runtime.Object, ttl uint64) error {
	return s.transformed.Create(ctx, key, obj, nil, ttl)
}
