package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	lists      = 40 // a phase
	listers    = 4  // at a time
	pageLength = 500
)

// list reads all pods at once; the client drops what it reads.
func list(media string) func(*bench, context.Context, phase, *target) (result, error) {
	return func(b *bench, ctx context.Context, p phase, t *target) (result, error) {
		var bytes atomic.Int64
		r, err := b.onPods(ctx, p, t, listers, load{count: lists, do: func(ctx context.Context, w, _ int) error {
			n, err := t.clients[w].drain(ctx, media)
			bytes.Add(n)
			if err == nil && n < int64(b.Pods)*1000 {
				err = fmt.Errorf("a list of %d pods has only %d bytes", b.Pods, n)
			}
			return err
		}})
		r.Bytes = float64(bytes.Load()) / lists
		return r, err
	}
}

// drain lists all pods and returns how many bytes came.
func (c *client) drain(ctx context.Context, media string) (int64, error) {
	body, err := c.Get().AbsPath(podsPath).SetHeader("Accept", media).Stream(ctx)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	return io.Copy(io.Discard, body)
}

// pages reads all pods in pages, as kubectl and informers can; an operation is a pass over all.
func pages(b *bench, ctx context.Context, p phase, t *target) (result, error) {
	return b.onPods(ctx, p, t, listers, load{count: lists, do: func(ctx context.Context, w, _ int) error {
		token, got := "", 0
		for {
			body, err := t.clients[w].Get().AbsPath(podsPath).
				Param("limit", fmt.Sprint(pageLength)).Param("continue", token).Do(ctx).Raw()
			if err != nil {
				return err
			}
			meta, err := listMeta(body)
			if err != nil {
				return err
			}
			got++
			if token = meta.Continue; token == "" {
				break
			}
		}
		if want := (b.Pods + pageLength - 1) / pageLength; got != want {
			return fmt.Errorf("%d pages of %d pods, not %d", got, b.Pods, want)
		}
		return nil
	}})
}

// listMeta decodes only the metadata of a list in protobuf, which is its first field.
func listMeta(body []byte) (meta metav1.ListMeta, err error) {
	const magic, firstField = "k8s\x00", 1<<3 | 2
	if !strings.HasPrefix(string(body[:min(len(body), len(magic))]), magic) {
		return meta, errors.New("the list is not in protobuf")
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(body[len(magic):]); err != nil {
		return meta, err
	}
	if len(envelope.Raw) == 0 || envelope.Raw[0] != firstField {
		return meta, errors.New("the list has no metadata")
	}
	length, n := binary.Uvarint(envelope.Raw[1:])
	rest := envelope.Raw[1+max(n, 0):]
	if n <= 0 || length > uint64(len(rest)) {
		return meta, errors.New("the list's metadata is cut")
	}
	return meta, meta.Unmarshal(rest[:length])
}
