package routes

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"kontiki/api/registry"
)

// versionParameter is the one parameter that a get usually has.
const versionParameter = "resourceVersion="

// serveGet serves GET of one object.
//
// Programs ask for protobuf, with a version or with no parameters at all. That is answered here:
// an object is sent as it is stored, and what upstream's handler does beside, for all that might be
// asked and to trace it, would be most of the work.
func (t *target) serveGet(getter rest.Getter) func() http.HandlerFunc {
	encoder := registry.ProtobufEncoder(t.Serializer, t.scope.Kind.GroupVersion())
	return func() http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if !t.shared || !sentAsIs(r) {
				handlers.GetResource(getter, t.scope)(w, r)
				return
			}
			options, ok := usualOptions(r)
			if !ok || encoder == nil {
				handlers.GetResource(getting{getter}, t.scope)(w, r)
				return
			}
			if err := t.sendObject(getting{getter}, options, encoder, w, r); err != nil {
				responsewriters.ErrorNegotiated(err, t.Serializer, t.scope.Kind.GroupVersion(), w, r)
			}
		}
	}
}

// usualOptions returns what a get asks for, and false if it is not what programs ask for.
func usualOptions(r *http.Request) (*metav1.GetOptions, bool) {
	switch strings.Join(r.Header["Accept"], ",") {
	case registry.ProtobufMedia, registry.ProtobufMedia + ",application/json", registry.ProtobufMedia + ", application/json":
	default:
		return nil, false
	}
	version, ok := strings.CutPrefix(r.URL.RawQuery, versionParameter)
	if !ok && r.URL.RawQuery != "" || strings.ContainsAny(version, "&;%+=") {
		return nil, false
	}
	return &metav1.GetOptions{ResourceVersion: version}, true
}

// sendObject gets an object and sends it. An error is to be answered; nothing has been sent then.
func (t *target) sendObject(getter rest.Getter, options *metav1.GetOptions, encoder runtime.Encoder, w http.ResponseWriter, r *http.Request) error {
	namespace, name, err := t.scope.Namer.Name(r)
	if err != nil {
		return err
	}
	obj, err := getter.Get(request.WithNamespace(r.Context(), namespace), name, options)
	if err != nil {
		return err
	}
	audit.LogResponseObject(r.Context(), obj, t.scope.Kind.GroupVersion(), t.Serializer)
	answer := protobufAnswer{ResponseWriter: w}
	if err := encoder.Encode(obj, &answer); err != nil && !answer.begun {
		return err
	}
	return nil
}

// protobufAnswer sends its header with the first that is written.
type protobufAnswer struct {
	http.ResponseWriter
	begun bool
}

// Write implements io.Writer.
func (a *protobufAnswer) Write(p []byte) (int, error) {
	if !a.begun {
		a.begun = true
		a.Header().Set("Content-Type", registry.ProtobufMedia)
		a.WriteHeader(http.StatusOK)
	}
	return a.ResponseWriter.Write(p)
}
