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
	only, answer := storage.WithAnswerOnly(ctx)
	obj, err := g.Getter.Get(only, name, options)
	if answer.Spoilt(obj) { // a scale, for one, is made of what it is the scale of
		return g.Getter.Get(ctx, name, options)
	}
	if err != nil {
		return nil, err
	}
	return answer.Of(obj), nil
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
	return func() http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			from := lister
			if t.shared && sentAsIs(r) {
				as := listing{Lister: lister}
				if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
					as.compress = w.Header()
					r = r.Clone(r.Context())
					r.Header.Del("Accept-Encoding") // or upstream compresses, too
				}
				from = as
			}
			t.serveLists(from, watcher, false, w, r)
		}
	}
}

// sending has what a write answers be sent as the node's shared object, where that is what the
// request asks for.
type sending bool

func (t *target) sending(r *http.Request) sending { return sending(t.shared && sentAsIs(r)) }

// begin is called before the registry, and end with what it returns. Upstream's handlers write on
// a goroutine that they start for that.
func (s sending) begin(ctx context.Context) (_ context.Context, end func(runtime.Object) runtime.Object) {
	growStack()
	if !s {
		return ctx, func(obj runtime.Object) runtime.Object { return obj }
	}
	ctx, answer := storage.WithAnswer(ctx)
	return ctx, answer.Of
}

// deleting is a rest.GracefulDeleter that returns shared objects.
type deleting struct {
	rest.GracefulDeleter
	sending sending
}

// Delete implements rest.GracefulDeleter.
func (d deleting) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	ctx, end := d.sending.begin(ctx)
	obj, now, err := d.GracefulDeleter.Delete(ctx, name, validate, options)
	return end(obj), now, err
}

// serveDelete serves DELETE of one object.
func (t *target) serveDelete(deleter rest.GracefulDeleter) func() http.HandlerFunc {
	return func() http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			handlers.DeleteResource(deleting{deleter, t.sending(r)}, true, t.scope, t.Admission)(w, r)
		}
	}
}
