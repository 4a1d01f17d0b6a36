package httpapi

import (
	"oda"
	"oda/internal/rawjson"
)

// The provenance of an entity on the wire. A missing value is null.
type (
	provenanceBody struct {
		Nodes     []provenanceNode `json:"nodes"`
		Edges     []provenanceEdge `json:"edges"`
		Truncated bool             `json:"truncated"`
	}
	provenanceNode struct {
		versionItem
		Exists bool    `json:"exists"`
		Name   *string `json:"name"`
	}
	provenanceEdge struct {
		From  oda.Ref     `json:"from"`
		To    versionItem `json:"to"`
		Field string      `json:"field"`
	}
	versionItem struct {
		oda.Ref
		Version *int64 `json:"version"`
	}
)

// provenance answers with everything that can be reached from an entity over
// references.
func (a *API) provenance(c *call) error {
	p, err := a.cfg.Provenance.Graph(c.r.Context(), c.ref())
	if err != nil {
		return err
	}
	body := provenanceBody{Nodes: []provenanceNode{}, Edges: []provenanceEdge{}, Truncated: p.Truncated}
	for _, n := range p.Nodes {
		body.Nodes = append(body.Nodes, provenanceNode{versionItem{n.Ref, rawjson.OrNull(n.Version)}, n.Exists, rawjson.OrNull(n.Name)})
	}
	for _, e := range p.Edges {
		body.Edges = append(body.Edges, provenanceEdge{e.From, versionItem{e.To, rawjson.OrNull(e.Version)}, e.Field})
	}
	return c.json(body)
}
