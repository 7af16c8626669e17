package routes

import (
	"context"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/registry/rest"

	"kontiki/api/storage"
)

// What a store answers is sent as the node's shared object where possible: see
// storage.Answer. It is not where the handler makes something else of it.

// sentAsIs says whether a request asks for objects as they are, not for tables or
// for metadata alone.
func sentAsIs(r *http.Request) bool { return !strings.Contains(r.Header.Get("Accept"), "as=") }

// getting is a rest.Getter that returns shared objects.
type getting struct{ rest.Getter }

// Get implements rest.Getter.
func (g getting) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	ctx, answer := storage.WithAnswer(ctx)
	obj, err := g.Getter.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return answer.Of(obj), nil
}

// serveGet serves GET of one object.
func (t *target) serveGet(getter rest.Getter) func() http.HandlerFunc {
	shared := undecorated(t.storage)
	return func() http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			from := getter
			if shared && sentAsIs(r) {
				from = getting{getter}
			}
			handlers.GetResource(from, t.scope)(w, r)
		}
	}
}

// listing is a rest.Lister that returns shared lists, which compress themselves.
type listing struct {
	rest.Lister
	compress http.Header // of the answer, nil if the client does not want it
}

// List implements rest.Lister.
func (l listing) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	ctx, answer := storage.WithAnswer(ctx)
	list, err := l.Lister.List(ctx, options)
	if err != nil {
		return nil, err
	}
	if l.compress != nil {
		answer.Compress(l.compress)
	}
	return answer.Of(list), nil
}

// serveList serves GET of many objects.
func (t *target) serveList(lister rest.Lister, watcher rest.Watcher) func() http.HandlerFunc {
	shared := undecorated(t.storage)
	return func() http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			from := lister
			if shared && sentAsIs(r) {
				as := listing{Lister: lister}
				if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
					as.compress = w.Header()
					r = r.Clone(r.Context())
					r.Header.Del("Accept-Encoding") // or upstream compresses, too
				}
				from = as
			}
			handlers.ListResource(from, watcher, t.scope, false, t.MinWatchTimeout)(w, r)
		}
	}
}
