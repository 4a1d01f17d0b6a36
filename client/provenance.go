package client

import (
	"context"
	"encoding/json"
	"fmt"

	"oda"
	"oda/provenance"
)

// named is an entity as a provenance names it.
type named struct {
	Kind    string `json:"kind"`
	ID      string `json:"id"`
	Version int64  `json:"version"` // 0 for null
}

func (n named) ref() (oda.Ref, error) {
	kind, ok := oda.KindOf(n.Kind)
	if !ok {
		return oda.Ref{}, fmt.Errorf("it has an entity of the unknown kind %.20q", n.Kind)
	}
	return oda.Ref{Kind: kind, ID: n.ID}, nil
}

// ProvenanceJSON is Provenance as the archive sends it.
func (c *Client) ProvenanceJSON(ctx context.Context, kind oda.Kind, id string) ([]byte, error) {
	return content(c.read(ctx, path(kind, id)+"/provenance", nil))
}

// Provenance returns where an entity comes from and what came of it: everything
// that can be reached over references in both directions, nearest first. If the
// entity is unknown, the error is oda.NotFound.
func (c *Client) Provenance(ctx context.Context, kind oda.Kind, id string) (*provenance.Graph, error) {
	a, err := c.read(ctx, path(kind, id)+"/provenance", nil)
	if err != nil {
		return nil, err
	}
	var in struct {
		Nodes []struct {
			named
			Exists bool   `json:"exists"`
			Name   string `json:"name"`
		} `json:"nodes"`
		Edges []struct {
			From  named  `json:"from"`
			To    named  `json:"to"`
			Field string `json:"field"`
		} `json:"edges"`
		Truncated bool `json:"truncated"`
	}
	if err := json.Unmarshal(a.body, &in); err != nil {
		return nil, garbled(a, err)
	}
	p := &provenance.Graph{Nodes: make([]provenance.Node, len(in.Nodes)), Edges: make([]provenance.Edge, len(in.Edges)), Truncated: in.Truncated}
	for i, n := range in.Nodes {
		p.Nodes[i] = provenance.Node{Exists: n.Exists, Version: n.Version, Name: n.Name}
		if p.Nodes[i].Ref, err = n.ref(); err != nil {
			return nil, garbled(a, err)
		}
	}
	for i, e := range in.Edges {
		p.Edges[i] = provenance.Edge{Version: e.To.Version, Field: e.Field}
		if p.Edges[i].From, err = e.From.ref(); err != nil {
			return nil, garbled(a, err)
		}
		if p.Edges[i].To, err = e.To.ref(); err != nil {
			return nil, garbled(a, err)
		}
	}
	return p, nil
}
