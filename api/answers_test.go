package api

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/api/registry"
)

const podTemplate = `{"metadata":{"name":"p%04d","labels":{"app":"a"},"annotations":{"k":"%s","html":"a<b&c"}},
	"spec":{"containers":[{"name":"c","image":"nginx","env":[{"name":"E","value":"\"é\""}]}]}}`

// podHarness has as many pods of 2 kB.
func podHarness(t testing.TB, count int) *harness {
	h := newHarness(t)
	for i := range count {
		h.must("POST", pods, fmt.Sprintf(podTemplate, i, strings.Repeat("x", 1000)), "Content-Type", "application/json")
	}
	return h
}

// again encodes what an answer says with upstream's own encoder of its type.
func again(t testing.TB, mediaType string, body []byte) (runtime.Object, []byte) {
	t.Helper()
	serializer := registry.NewSerializer()
	info, ok := runtime.SerializerInfoForMediaType(serializer.SupportedMediaTypes(), mediaType)
	if !ok {
		t.Fatalf("no serializer for %s", mediaType)
	}
	v1 := schema.GroupVersion{Version: "v1"}
	obj, _, err := info.Serializer.Decode(body, nil, nil)
	if err != nil {
		t.Fatalf("%v in %.300q", err, body)
	}
	out, err := runtime.Encode(serializer.EncoderForVersion(info.Serializer, v1), obj)
	if err != nil {
		t.Fatal(err)
	}
	return obj, out
}

// TestAnswersFromEncodings reads one, none, some and many objects in every
// encoding, twice, so that the second answer is made of kept encodings. Both are
// byte for byte what upstream's encoder makes of them, compressed or not.
func TestAnswersFromEncodings(t *testing.T) {
	const count = 150 // more than is sent uncompressed
	h := podHarness(t, count)
	for _, mediaType := range []string{"application/json", "application/vnd.kubernetes.protobuf", "application/yaml"} {
		for path, items := range map[string]int{
			pods + "/p0007": -1, pods: count, pods + "?limit=7": 7, pods + "?limit=1&resourceVersion=": 1, "/api/v1/pods?resourceVersion=0": count,
			pods + "?labelSelector=none": 0, pods + "?fieldSelector=metadata.name%3Dp0003": 1,
		} {
			for round := range 2 {
				what := fmt.Sprintf("%s in %s, round %d", path, mediaType, round)
				plain := h.must("GET", path, "", "Accept", mediaType)
				body := plain.Body.Bytes()
				obj, want := again(t, mediaType, body)
				if !bytes.Equal(body, want) {
					t.Fatalf("%s:\n%.600q, want\n%.600q", what, body, want)
				}
				checkItems(t, what, obj, items)
				packed := h.must("GET", path, "", "Accept", mediaType, "Accept-Encoding", "gzip")
				if got := unpack(t, packed, len(body) > 128<<10); !bytes.Equal(got, body) {
					t.Fatalf("%s: compressed it is\n%.600q, plain\n%.600q", what, got, body)
				}
			}
		}
	}
}

// checkItems wants so many items; -1 is one object.
func checkItems(t *testing.T, what string, obj runtime.Object, want int) {
	t.Helper()
	list, ok := obj.(*corev1.PodList)
	switch {
	case !ok && want >= 0 || ok && len(list.Items) != want:
		t.Fatalf("%s: got %T, want a list of %d", what, obj, want)
	case !ok && obj.(*corev1.Pod).ResourceVersion == "":
		t.Fatalf("%s: no version", what)
	}
}

func unpack(t *testing.T, a answer, compressed bool) []byte {
	t.Helper()
	if got := a.Header().Get("Content-Encoding") == "gzip"; got != compressed {
		t.Fatalf("compressed: %v, want %v", got, compressed)
	}
	if !compressed {
		return a.Body.Bytes()
	}
	if vary := a.Header().Get("Vary"); vary != "Accept-Encoding" {
		t.Errorf("Vary: %q", vary)
	}
	reader, err := gzip.NewReader(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	reader.Multistream(false)
	plain, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// TestAnswersAreNew changes an object between reads: no answer is an old one.
func TestAnswersAreNew(t *testing.T) {
	h := podHarness(t, 2)
	for i := range 3 {
		label := fmt.Sprintf("v%d", i)
		h.must("PATCH", pods+"/p0000", fmt.Sprintf(`{"metadata":{"labels":{"round":%q}}}`, label), "Content-Type", "application/merge-patch+json")
		for _, path := range []string{pods, pods + "/p0000"} {
			if body := h.must("GET", path, "").Body.String(); !strings.Contains(body, `"round":"`+label+`"`) {
				t.Errorf("%s does not say %s: %s", path, label, body)
			}
		}
	}
	h.must("DELETE", pods+"/p0000?gracePeriodSeconds=0", "")
	if body := h.must("GET", pods, "").Body.String(); strings.Contains(body, `"name":"p0000"`) {
		t.Errorf("a deleted pod is listed: %s", body)
	}
}

// discard is a response that nobody reads.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) WriteHeader(int)             {}
func (d discard) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkRead reads a pod, and lists 1,000, below HTTP.
func BenchmarkRead(b *testing.B) {
	h := podHarness(b, 1000)
	for _, mediaType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		for name, path := range map[string]string{"get": pods + "/p0007?resourceVersion=0", "list": pods + "?resourceVersion=0"} {
			for _, encoding := range []string{"identity", "gzip"} {
				b.Run(name+"/"+strings.TrimPrefix(mediaType, "application/")+"/"+encoding, func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						h.handler.ServeHTTP(discard{http.Header{}}, masters("GET", path, "", "Accept", mediaType, "Accept-Encoding", encoding))
					}
				})
			}
		}
	}
}
