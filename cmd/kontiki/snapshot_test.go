package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"kontiki/fsm"
)

// runProgram runs the real program against a cluster and returns what it prints.
func runProgram(t testing.TB, kubeconfig, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := kontiki(t, []string{"KUBECONFIG=" + kubeconfig}, args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("kontiki %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

func mustRunProgram(t testing.TB, kubeconfig string, args ...string) string {
	t.Helper()
	out, err := runProgram(t, kubeconfig, "", args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSnapshotSaveDestroyRestore is the whole way with the real program: back up, look into
// the backup, lose the cluster, start another one, restore, go on after a restart.
func TestSnapshotSaveDestroyRestore(t *testing.T) {
	t.Parallel()
	start := func(dir string) *process {
		api := freeAddress(t)
		return launch(t, dir, api, nil, "server", "--name", "vm", "--data-dir", dir, "--api-addr", api)
	}
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "backup")
	first := start(dir)
	config := filepath.Join(dir, "admin.kubeconfig")
	first.kubectl("create", "namespace", "kept")
	first.kubectl("run", "tour", "--image=nginx", "-n", "kept")
	if out := mustRunProgram(t, config, "snapshot", "save", file); !strings.Contains(out, "saved "+file+": index ") {
		t.Errorf("save says %q", out)
	}
	var summary backupSummary
	if err := json.Unmarshal([]byte(mustRunProgram(t, "", "snapshot", "inspect", file, "-o", "json")), &summary); err != nil {
		t.Fatal(err)
	}
	pods := slices.IndexFunc(summary.Kinds, func(k kindSummary) bool { return k.Resource == "pods" })
	if summary.Term == 0 || summary.Index == 0 || pods < 0 || summary.Kinds[pods].Objects != 1 || summary.Kinds[pods].Bytes == 0 {
		t.Fatalf("inspect says %+v", summary)
	}
	if out := mustRunProgram(t, "", "snapshot", "inspect", file); !regexp.MustCompile(`(?m)^pods +1 +\d+$`).MatchString(out) {
		t.Errorf("inspect says\n%s", out)
	}
	for range 5 { // the cluster goes on after its last backup
		first.kubectl("label", "namespace", "kept", "--overwrite", "seen="+first.kubectl("get", "ns", "kept", "-o", "jsonpath={.metadata.resourceVersion}"))
	}
	seen := parse(first.kubectl("get", "ns", "kept", "-o", "jsonpath={.metadata.resourceVersion}"))
	first.end(syscall.SIGKILL)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}

	second := start(dir)
	if _, err := runProgram(t, config, "no\n", "snapshot", "restore", file); err == nil || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("restore without a yes: %v", err)
	}
	if out, err := runProgram(t, config, "yes\n", "snapshot", "restore", file); err != nil || !strings.Contains(out, fmt.Sprintf("%d objects, now at resourceVersion ", summary.Objects)) {
		t.Errorf("restore: %v, says %q", err, out)
	}
	if got := parse(second.kubectl("get", "pod", "tour", "-n", "kept", "-o", "jsonpath={.metadata.resourceVersion}")); got <= seen {
		t.Errorf("the pod came back at %d, clients had seen %d", got, seen)
	}
	for range 2 {
		now := parse(second.kubectl("create", "namespace", fmt.Sprintf("after%d", seen), "-o", "jsonpath={.metadata.resourceVersion}"))
		if now <= seen {
			t.Errorf("version %d after %d", now, seen)
		}
		seen = now
		second.end(syscall.SIGKILL)
		second = start(dir)
	}
}

// TestSnapshotBroken: a transfer that breaks leaves nothing, a damaged file is refused.
func TestSnapshotBroken(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	c.waitServersPublished() // the last thing that is written by itself
	config, dir := filepath.Join(c.nodes[0].cfg.DataDir, "admin.kubeconfig"), t.TempDir()
	file := filepath.Join(dir, "backup")
	mustRunProgram(t, config, "snapshot", "save", file)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	index := c.nodes[0].State.Index()
	for what, content := range map[string][]byte{"truncated": good[:len(good)-9], "flipped": append(good[:len(good)-9:len(good)-9], "123456789"...), "empty": nil} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := runProgram(t, config, "", "snapshot", "restore", "--yes", file); err == nil || !strings.Contains(err.Error(), "not a usable backup") {
			t.Errorf("%s: the program says %v", what, err)
		}
		if a := c.http(0).do("POST", "/kontiki/v1/snapshot", content); a.code != 400 {
			t.Errorf("%s: the server answers %d %s", what, a.code, a.body)
		}
	}
	if now := c.nodes[0].State.Index(); now != index {
		t.Errorf("index %d, want %d: something was written", now, index)
	}
	c.crash(0)
	os.Remove(file)
	if _, err := runProgram(t, config, "", "snapshot", "save", file); err == nil {
		t.Error("a backup of nothing succeeded")
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("a failed backup left %v", left)
	}
}

// TestRestoreUnderLoad restores through one follower while clients write through another,
// list, watch, and keep an informer there: versions only grow, what was old is 410, the
// informer ends with what is stored, and a client without a quorum problem sees no other error.
func TestRestoreUnderLoad(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	followers := c.followers()
	through, other := followers[0], followers[1]
	client := kubernetes.NewForConfigOrDie(c.clientConfig(other))
	pods := client.CoreV1().Pods("default")
	for i := range 20 {
		if _, err := pods.Create(t.Context(), podNamed(fmt.Sprintf("old-%d", i)), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "backup")
	config := filepath.Join(c.nodes[through].cfg.DataDir, "admin.kubeconfig")
	mustRunProgram(t, config, "snapshot", "save", file)
	informer := startPodInformer(t, client)
	page, err := pods.List(t.Context(), metav1.ListOptions{Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	stale, err := pods.Get(t.Context(), "old-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watch, err := pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: page.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	load := startRestoreLoad(t, c)
	until(t, func() error { return load.moving() })
	mustRunProgram(t, config, "snapshot", "restore", "--yes", file)
	before := load.writes.Load()
	until(t, func() error {
		if load.writes.Load() < before+20 {
			return fmt.Errorf("the writers do not go on")
		}
		return nil
	})
	load.end()

	var last *metav1.Status
	for event := range watch.ResultChan() {
		last, _ = event.Object.(*metav1.Status)
	}
	if last == nil || last.Code != http.StatusGone {
		t.Errorf("the watch ended with %v, want 410", last)
	}
	_, err = pods.List(t.Context(), metav1.ListOptions{Limit: 3, Continue: page.Continue})
	if !apierrors.IsResourceExpired(err) {
		t.Errorf("an old continue token: %v, want 410", err)
	}
	if _, err := pods.Update(t.Context(), stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old version: %v, want 409", err)
	}
	until(t, func() error { return samePods(t.Context(), informer, client) })
	c.checkEqual()
	for i := range c.nodes {
		status, err := c.statusOf(i)
		for _, m := range status.Members {
			if err != nil || m.Report == nil || m.Lag != 0 {
				t.Errorf("after the restore node %d says of %s: lag %d, %v, %s", i, m.Name, m.Lag, err, m.Error)
			}
		}
	}
	again, err := pods.Get(t.Context(), "old-0", metav1.GetOptions{})
	if err != nil || parse(again.ResourceVersion) < fsm.RestoreGap || again.UID != stale.UID {
		t.Errorf("old-0 came back as %s %s: %v", again.ResourceVersion, again.UID, err)
	}
}

func podNamed(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

func startPodInformer(t *testing.T, client kubernetes.Interface) informers.SharedInformerFactory {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("default"))
	informer := factory.Core().V1().Pods().Informer()
	ctx, cancel := context.WithCancel(context.Background())
	factory.Start(ctx.Done())
	t.Cleanup(func() { cancel(); factory.Shutdown() })
	until(t, func() error {
		if !informer.HasSynced() {
			return fmt.Errorf("the informer has not listed yet")
		}
		return nil
	})
	return factory
}

// samePods compares what an informer has with what is stored.
func samePods(ctx context.Context, factory informers.SharedInformerFactory, client kubernetes.Interface) error {
	list, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	want := make(map[string]string)
	for _, pod := range list.Items {
		want[pod.Name] = pod.ResourceVersion
	}
	cached := factory.Core().V1().Pods().Informer().GetStore().List()
	if len(cached) != len(want) {
		return fmt.Errorf("the informer has %d pods, %d are stored", len(cached), len(want))
	}
	for _, item := range cached {
		if pod := item.(*corev1.Pod); want[pod.Name] != pod.ResourceVersion {
			return fmt.Errorf("the informer has %s at %s, stored is %q", pod.Name, pod.ResourceVersion, want[pod.Name])
		}
	}
	return nil
}

// restoreLoad is clients of all nodes that write, and that list and want versions to grow.
type restoreLoad struct {
	t      *testing.T
	cancel context.CancelFunc
	ended  chan struct{}
	writes atomic.Int64
	lists  atomic.Int64
}

func startRestoreLoad(t *testing.T, c *testCluster) *restoreLoad {
	ctx, cancel := context.WithCancel(t.Context())
	l := &restoreLoad{t: t, cancel: cancel, ended: make(chan struct{}, 6)}
	for _, i := range c.up() {
		client := kubernetes.NewForConfigOrDie(c.clientConfig(i))
		go l.write(ctx, client, i)
		go l.list(ctx, client, i)
	}
	return l
}

func (l *restoreLoad) moving() error {
	if l.writes.Load() < 10 || l.lists.Load() < 10 {
		return fmt.Errorf("%d writes, %d lists so far", l.writes.Load(), l.lists.Load())
	}
	return nil
}

func (l *restoreLoad) end() {
	l.cancel()
	for range 6 {
		<-l.ended
	}
}

// write creates pods and changes the one before, which a restore may have taken away.
func (l *restoreLoad) write(ctx context.Context, client kubernetes.Interface, node int) {
	defer func() { l.ended <- struct{}{} }()
	pods := client.CoreV1().Pods("default")
	last := uint64(0)
	for i := 0; ctx.Err() == nil; i++ {
		pod, err := pods.Create(ctx, podNamed(fmt.Sprintf("load-%d-%d", node, i)), metav1.CreateOptions{})
		if err == nil && i > 0 {
			pod, err = pods.Patch(ctx, fmt.Sprintf("load-%d-%d", node, i-1), types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"i":"%d"}}}`, i), metav1.PatchOptions{})
		}
		switch {
		case apierrors.IsNotFound(err) || ctx.Err() != nil:
			continue
		case err != nil:
			l.t.Errorf("a write through node %d: %v", node, err)
			return
		}
		now, _ := strconv.ParseUint(pod.ResourceVersion, 10, 64)
		if now <= last {
			l.t.Errorf("node %d gave version %d after %d", node, now, last)
		}
		last = now
		l.writes.Add(1)
	}
}

func (l *restoreLoad) list(ctx context.Context, client kubernetes.Interface, node int) {
	defer func() { l.ended <- struct{}{} }()
	last := uint64(0)
	for ctx.Err() == nil {
		list, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			l.t.Errorf("a list on node %d: %v", node, err)
			return
		}
		now, _ := strconv.ParseUint(list.ResourceVersion, 10, 64)
		if now < last {
			l.t.Errorf("node %d went back from version %d to %d", node, last, now)
		}
		last = now
		l.lists.Add(1)
	}
}
