package metrics

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	"kontiki/fsm"
)

func newMetrics(t testing.TB, sources Sources) *Metrics {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	m := New(ctx, sources)
	m.Know("", "v1", "pods")
	m.Know("", "v1", "pods/log")
	return m
}

// serve sends a request through the filter.
func serve(m *Metrics, handler http.HandlerFunc, method, url, body string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, url, strings.NewReader(body))
	factory := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := factory.NewRequestInfo(req)
	if err != nil {
		panic(err)
	}
	w := httptest.NewRecorder()
	m.Filter(handler, watches).ServeHTTP(w, req.WithContext(request.WithRequestInfo(req.Context(), info)))
	return w
}

func watches(_ *http.Request, info *request.RequestInfo) bool {
	return info.Verb == "watch" || info.Subresource == "log"
}

func answer(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		io.WriteString(w, body)
	}
}

func TestRequests(t *testing.T) {
	m := newMetrics(t, Sources{})
	const pods = "/api/v1/namespaces/default/pods"
	serve(m, answer(200, "0123456789"), "GET", pods+"/a", "")
	serve(m, answer(200, "0123456789"), "GET", pods+"/b", "")
	serve(m, answer(404, ""), "GET", pods+"/c", "")
	serve(m, answer(200, "[]"), "GET", pods, "")
	serve(m, answer(200, "[]"), "GET", "/api/v1/pods", "")
	serve(m, answer(201, ""), "POST", pods+"?dryRun=All", "body")
	serve(m, func(http.ResponseWriter, *http.Request) {}, "DELETE", pods+"/a", "")
	serve(m, func(w http.ResponseWriter, _ *http.Request) {
		if got := testutil.ToFloat64(m.requests.longRunning); got != 1 {
			t.Errorf("%g watches in progress", got)
		}
		w.(http.Flusher).Flush()
	}, "GET", pods+"?watch=true", "")
	for i := range 20 { // names that strangers make up
		serve(m, answer(404, ""), "GET", fmt.Sprintf("/api/v1/made-up-%d", i), "")
		serve(m, answer(404, ""), "GET", fmt.Sprintf("/made-up-%d", i), "")
		serve(m, answer(405, ""), fmt.Sprintf("VERB%d", i), "/healthz", "")
	}
	func() {
		defer func() { _ = recover() }()
		serve(m, func(http.ResponseWriter, *http.Request) { panic("handler") }, "PUT", pods+"/a", "")
	}()
	want := `
# HELP apiserver_request_total Requests that were answered, by what was asked and by status code.
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"} 1
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="namespace",subresource="",verb="LIST",version="v1"} 1
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="namespace",subresource="",verb="WATCH",version="v1"} 1
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="DELETE",version="v1"} 1
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="GET",version="v1"} 2
apiserver_request_total{code="201",component="apiserver",dry_run="All",group="",resource="pods",scope="resource",subresource="",verb="POST",version="v1"} 1
apiserver_request_total{code="404",component="apiserver",dry_run="",group="",resource="",scope="",subresource="",verb="GET",version=""} 20
apiserver_request_total{code="404",component="apiserver",dry_run="",group="",resource="",scope="",subresource="",verb="LIST",version=""} 20
apiserver_request_total{code="404",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="GET",version="v1"} 1
apiserver_request_total{code="405",component="apiserver",dry_run="",group="",resource="",scope="",subresource="",verb="OTHER",version=""} 20
apiserver_request_total{code="500",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="PUT",version="v1"} 1
`
	if err := testutil.GatherAndCompare(m.registry, strings.NewReader(want), "apiserver_request_total"); err != nil {
		t.Error(err)
	}
	if got := testutil.ToFloat64(m.requests.longRunning); got != 0 {
		t.Errorf("%g watches in progress at the end", got)
	}
	if a, b := testutil.ToFloat64(m.requests.reading), testutil.ToFloat64(m.requests.changing); a != 0 || b != 0 {
		t.Errorf("%g reads and %g writes in progress at the end", a, b)
	}
	if n := len(*m.requests.series.Load()); n != 10 {
		t.Errorf("%d series", n)
	}
}

// TestRates: the mean of the last minute, not of all time.
func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		counters := new(totals)
		r := newRates(counters)
		go r.run(ctx)
		counters.writes.Add(1000)
		time.Sleep(10 * time.Second)
		if got := r.now().Writes; got != 100 {
			t.Errorf("1000 writes in 10 s are %g a second", got)
		}
		time.Sleep(2 * time.Minute)
		counters.reads.Add(6500)
		if got := r.now(); got.Writes != 0 || got.Reads < 100 || got.Reads > 110 {
			t.Errorf("after two minutes: %+v", got)
		}
		cancel()
		synctest.Wait()
	})
}

func TestObjects(t *testing.T) {
	machine := fsm.New()
	for i, key := range []string{"/core/pods/a/x", "/core/pods/b/y", "/core/podtemplates/a/z", "/coordination.k8s.io/leases/a/x", "/odd"} {
		cmd := fsm.Command{Op: fsm.OpCreate, ID: fsm.ID{byte(i + 1)}, Key: key, Value: []byte("12345")}
		machine.Apply(&raft.Log{Index: uint64(i + 1), Type: raft.LogCommand, Data: cmd.Append(nil)})
	}
	m := newMetrics(t, Sources{View: machine.View})
	got := fmt.Sprint(m.Objects())
	if want := "[{coordination.k8s.io leases 1 5} { pods 2 10} { podtemplates 1 5} {odd  1 5}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// BenchmarkFilter is what counting adds to each request.
func BenchmarkFilter(b *testing.B) {
	m := newMetrics(b, Sources{})
	info := &request.RequestInfo{IsResourceRequest: true, Verb: "get", APIVersion: "v1", Resource: "pods", Namespace: "a", Name: "b"}
	req := httptest.NewRequest("GET", "/api/v1/namespaces/a/pods/b", nil)
	req = req.WithContext(request.WithRequestInfo(req.Context(), info))
	handler := m.Filter(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) }), watches)
	w := http2Writer{httptest.NewRecorder()}
	b.ReportAllocs()
	for b.Loop() {
		handler.ServeHTTP(w, req)
	}
}

// http2Writer has the methods of the writer that HTTP/2 requests get.
type http2Writer struct{ *httptest.ResponseRecorder }

func (http2Writer) CloseNotify() <-chan bool { return nil }
