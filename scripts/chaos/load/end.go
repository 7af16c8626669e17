package load

import (
	"context"
	"fmt"
	"net/http"

	"kontiki/scripts/chaos/history"
)

// Latest reads, through one node and for each resource, all that the load has left, as of now.
func Latest(ctx context.Context, cfg Config, client *Client, rec *history.Recorder) (lists []history.Op, err error) {
	l := &Load{cfg: cfg.withDefaults(), rec: rec}
	for _, r := range resources {
		op := history.Op{ID: rec.NextID(), Client: "end", Node: client.Node, Kind: history.List, Resource: r.name, Call: rec.Now()}
		a, err := client.do(ctx, http.MethodGet, r.path(l.cfg.Namespace, ""), "", jsonType)
		op.Return = rec.Now()
		doc := fill(&op, a, err)
		if op.Outcome != history.OK {
			return nil, fmt.Errorf("list %s on %s: %d %s", r.name, client.Node, op.Code, op.Error)
		}
		op.RV, op.Items = doc.version(), r.itemsOf(doc)
		lists = append(lists, op)
	}
	return lists, nil
}

// DigestOf asks a node for the digest of its state.
func DigestOf(ctx context.Context, client *Client, rec *history.Recorder) (d history.Digest, err error) {
	err = client.Get(ctx, digestPath, &d)
	d.At, d.Node = rec.Now(), client.Node
	return d, err
}
