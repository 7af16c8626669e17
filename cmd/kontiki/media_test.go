package main

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// mediaTypes are what bodies and answers are encoded in.
var mediaTypes = []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf}

// TestMediaTypes sends every kind in every encoding and reads it back in every
// encoding, over plain HTTP. All must be the same object.
func TestMediaTypes(t *testing.T) {
	c := newCluster(t, 1, nil)
	for _, k := range kinds {
		for _, sent := range mediaTypes {
			for _, wanted := range mediaTypes {
				if err := tryMedia(c.http(0), k, sent, wanted); err != nil {
					t.Errorf("%s sent as %s, wanted as %s: %v", k, sent, wanted, err)
				}
			}
		}
	}
}

func tryMedia(client *rawClient, k kind, sent, wanted string) error {
	suffix := func(mediaType string) string { return mediaType[strings.LastIndexAny(mediaType, "./")+1:] }
	name := strings.ReplaceAll(fmt.Sprintf("%s-%s-%s", k, suffix(sent), suffix(wanted)), ".", "-")
	want := k.named("default", name, map[string]string{"sent": "yes"})
	client = client.with("Accept", wanted)
	body, err := encode(want, sent)
	if err != nil {
		return err
	}
	created, err := decode(client.with("Content-Type", sent).do(http.MethodPost, k.path("default"), body), http.StatusCreated, wanted)
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	got, err := decode(client.get(k.path("default")+"/"+name), http.StatusOK, wanted)
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	for _, obj := range []runtime.Object{created, got} {
		if m := metaOf(obj); m.GetName() != name || m.GetLabels()["sent"] != "yes" || m.GetUID() == "" {
			return fmt.Errorf("%s came back as %+v", name, m)
		}
	}
	a, errA := encode(created, runtime.ContentTypeJSON)
	b, errB := encode(got, runtime.ContentTypeJSON)
	if k.resource != "namespaces" && !bytes.Equal(a, b) || errA != nil || errB != nil {
		return fmt.Errorf("created as %s, read as %s", a, b)
	}
	return listed(client, k, wanted, name)
}

func listed(client *rawClient, k kind, wanted, name string) error {
	list, err := decode(client.get(k.path("default")+"?fieldSelector=metadata.name%3D"+name), http.StatusOK, wanted)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	items, _, err := itemsOf(list)
	if err != nil || len(items) != 1 || metaOf(items[0]).GetName() != name {
		return fmt.Errorf("list has %v: %w", items, err)
	}
	return nil
}

func encode(obj runtime.Object, mediaType string) ([]byte, error) {
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType)
	if !ok {
		return nil, fmt.Errorf("no serializer for %s", mediaType)
	}
	return runtime.Encode(info.Serializer, obj)
}

func decode(a answer, code int, mediaType string) (runtime.Object, error) {
	if a.code != code {
		return nil, fmt.Errorf("answer %d: %.300q", a.code, a.body)
	}
	if got, _, _ := mime.ParseMediaType(a.header.Get("Content-Type")); got != mediaType {
		return nil, fmt.Errorf("answer is %q", got)
	}
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType)
	return runtime.Decode(info.Serializer, a.body)
}

// TestNegotiation is about media types beyond the three: tables, metadata
// alone, and what there is not.
func TestNegotiation(t *testing.T) {
	c := newCluster(t, 1, nil)
	client := c.http(0)
	const path = "/api/v1/namespaces"
	for accept, kind := range map[string]string{
		"application/json;as=Table;g=meta.k8s.io;v=v1":                     "Table",
		"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1": "PartialObjectMetadataList",
		"text/plain, */*": "NamespaceList",
		"":                "NamespaceList",
	} {
		var got metav1.TypeMeta
		a := client.with("Accept", accept).get(path)
		if err := fromJSON(a.body, &got); a.code != http.StatusOK || err != nil || got.Kind != kind {
			t.Errorf("accept %q: answer %d, kind %q, want %s; %v", accept, a.code, got.Kind, kind, err)
		}
	}
	for _, accept := range []string{"text/html", "application/cbor", "application/json;as=Chair;g=meta.k8s.io;v=v1"} {
		a := client.with("Accept", accept).get(path)
		if a.code != http.StatusNotAcceptable || a.status(t).Reason != metav1.StatusReasonNotAcceptable {
			t.Errorf("accept %q: answer %d: %s", accept, a.code, a.body)
		}
	}
	for _, content := range []string{"text/html", "application/cbor", "application/x-www-form-urlencoded"} {
		a := client.with("Content-Type", content).do(http.MethodPost, path, []byte("{}"))
		if a.code != http.StatusUnsupportedMediaType || a.status(t).Reason != metav1.StatusReasonUnsupportedMediaType {
			t.Errorf("content %q: answer %d: %s", content, a.code, a.body)
		}
		a = client.with("Content-Type", content).do(http.MethodPatch, path+"/default", []byte("{}"))
		if a.code != http.StatusUnsupportedMediaType || a.status(t).Reason != metav1.StatusReasonUnsupportedMediaType {
			t.Errorf("patch as %q: answer %d: %s", content, a.code, a.body)
		}
	}
}
