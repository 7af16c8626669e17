package load

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"kontiki/scripts/chaos/history"
)

// list reads all objects of a resource, with one of the ways to say of when.
func (c *caller) list(ctx context.Context, r *resource) {
	query := url.Values{}
	exact := false
	switch version := c.version(); version {
	case "":
	case "0":
		query.Set("resourceVersion", version)
	default:
		query.Set("resourceVersion", version)
		match := "NotOlderThan"
		if exact = c.rng.IntN(2) == 0; exact {
			match = "Exact"
		}
		query.Set("resourceVersionMatch", match)
	}
	client := c.pick()
	op, ctx, cancel := c.begin(ctx, client, r, history.List)
	defer cancel()
	op.Asked, op.Exact = query.Get("resourceVersion"), exact
	c.listed(ctx, client, r, &op, query)
}

// listed does one request for a list or a page, and records it.
func (c *caller) listed(ctx context.Context, client *Client, r *resource, op *history.Op, query url.Values) document {
	a, err := client.do(ctx, http.MethodGet, r.path(c.l.cfg.Namespace, "")+"?"+query.Encode(), "", jsonType)
	doc := c.end(op, a, err)
	op.Items, op.More = r.itemsOf(doc), doc.Metadata.Continue != ""
	c.l.rec.Add(*op)
	return doc
}

// pages reads a list in pages, each page from the caller's next node, with other calls in between.
func (c *caller) pages(ctx context.Context, r *resource) {
	query := url.Values{"limit": {strconv.Itoa(2 + c.rng.IntN(5))}}
	for first := uint64(0); ; {
		client := c.pick()
		op, pageCtx, cancel := c.begin(ctx, client, r, history.List)
		if first == 0 {
			first = op.ID
		}
		op.Pages = first
		op.Limit, _ = strconv.Atoi(query.Get("limit"))
		doc := c.listed(pageCtx, client, r, &op, query)
		cancel()
		if op.Outcome != history.OK || !op.More || !sleep(ctx, c.pause()) {
			return
		}
		query.Set("continue", doc.Metadata.Continue)
	}
}
