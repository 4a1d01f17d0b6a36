package client

import (
	"context"

	"oda"
	"oda/provenance"
)

// ProvenanceJSON is Provenance as the archive sends it.
func (c *Client) ProvenanceJSON(ctx context.Context, kind oda.Kind, id string) ([]byte, error) {
	return content(c.read(ctx, path(kind, id)+"/provenance", nil))
}

// Provenance returns where an entity comes from and what came of it: everything
// that can be reached over references in both directions, nearest first. If the
// entity is unknown, the error is oda.NotFound.
func (c *Client) Provenance(ctx context.Context, kind oda.Kind, id string) (*provenance.Graph, error) {
	var in struct {
		Nodes []provenance.Node
		Edges []struct {
			From oda.Ref
			To   struct {
				oda.Ref
				Version int64
			}
			Field string
		}
		Truncated bool
	}
	if _, err := c.readJSON(ctx, path(kind, id)+"/provenance", &in); err != nil {
		return nil, err
	}
	p := &provenance.Graph{Nodes: in.Nodes, Edges: make([]provenance.Edge, len(in.Edges)), Truncated: in.Truncated}
	for i, e := range in.Edges {
		p.Edges[i] = provenance.Edge{From: e.From, To: e.To.Ref, Version: e.To.Version, Field: e.Field}
	}
	return p, nil
}
