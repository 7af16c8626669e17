package main

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"

	"kontiki/api/duties"
)

// TestMetadataInProcess: what the controllers read without a client is what a client reads,
// but for who owns which field.
func TestMetadataInProcess(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	server := c.nodes[0].api
	client, err := metadata.NewForConfig(server.ClientConfig())
	if err != nil {
		t.Fatal(err)
	}
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	remote := client.Resource(pods).Namespace("")
	local := duties.InProcess(client, server.Sources()).Resource(pods).Namespace("")
	owner, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(t.Context(), "default", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	create := func(i int) { // with an owner that is there, or the garbage collector deletes it
		mustCreate(t, c.http(0), podsPath, fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p%d","labels":{"a":"b"},"annotations":{"c":"d"},"finalizers":["x/y"],
			"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"default","uid":%q}]},"spec":{"containers":[{"name":"a","image":"a"}]}}`, i, owner.UID))
	}
	for i := range 3 {
		create(i)
	}
	want, err1 := remote.List(t.Context(), metav1.ListOptions{Limit: 2})
	got, err2 := local.List(t.Context(), metav1.ListOptions{Limit: 2})
	for err1 == nil && err2 == nil && want.ResourceVersion != got.ResourceVersion { // the server wrote in between
		want, err1 = remote.List(t.Context(), metav1.ListOptions{Limit: 2})
		got, err2 = local.List(t.Context(), metav1.ListOptions{Limit: 2})
	}
	if err1 != nil || err2 != nil || len(want.Items) != 2 {
		t.Fatal(err1, err2, want)
	}
	want.TypeMeta = metav1.TypeMeta{}
	for i := range want.Items {
		forget(&want.Items[i])
	}
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("listed %+v\nwant %+v", got, want)
	}

	initial := true
	options := metav1.ListOptions{SendInitialEvents: &initial, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}
	wanted, err1 := remote.Watch(t.Context(), options)
	gotten, err2 := local.Watch(t.Context(), options)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	defer wanted.Stop()
	defer gotten.Stop()
	create(3)
	c.http(0).do("DELETE", podsPath+"/p0", nil)
	types := map[watch.EventType]int{}
	for range 3 + 1 + 1 + 1 { // what was there, a bookmark, one more, a deletion that waits
		want, got := <-wanted.ResultChan(), <-gotten.ResultChan()
		forget(want.Object.(*metav1.PartialObjectMetadata))
		types[got.Type]++
		if got.Type == watch.Bookmark { // the server may have written between the two watches
			first, later := want.Object.(*metav1.PartialObjectMetadata), got.Object.(*metav1.PartialObjectMetadata)
			if order, err := resourceversion.CompareResourceVersion(first.ResourceVersion, later.ResourceVersion); err != nil || order > 0 {
				t.Errorf("a bookmark at %q after one at %q: %v", later.ResourceVersion, first.ResourceVersion, err)
			}
			first.ResourceVersion = later.ResourceVersion
		}
		if !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("event %+v\nwant %+v", got, want)
		}
	}
	if types[watch.Added] != 4 || types[watch.Bookmark] != 1 || types[watch.Modified] != 1 {
		t.Errorf("events: %v", types)
	}
}

// forget leaves out what is not read in process.
func forget(item *metav1.PartialObjectMetadata) {
	item.TypeMeta, item.ManagedFields = metav1.TypeMeta{}, nil
}
