package httpapi

import (
	"strconv"

	"oda"
	"oda/internal/rawjson"
)

// provenance answers with everything that can be reached from an entity over
// references.
func (a *API) provenance(c *call) error {
	p, err := a.cfg.Provenance.Graph(c.r.Context(), c.ref())
	if err != nil {
		return err
	}
	out := append(make([]byte, 0, 128*(1+len(p.Nodes)+len(p.Edges))), `{"nodes":[`...)
	for i, n := range p.Nodes {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendVersion(appendRef(out, n.Ref), n.Version)
		out = strconv.AppendBool(append(out, `,"exists":`...), n.Exists)
		out = appendTextOrNull(append(out, `,"name":`...), n.Name)
		out = append(out, '}')
	}
	out = append(out, `],"edges":[`...)
	for i, e := range p.Edges {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendRef(append(out, `{"from":`...), e.From), '}')
		out = append(appendVersion(appendRef(append(out, `,"to":`...), e.To), e.Version), '}')
		out = append(rawjson.AppendQuoted(append(out, `,"field":`...), e.Field), '}')
	}
	out = strconv.AppendBool(append(out, `],"truncated":`...), p.Truncated)
	return c.sendError(c.respond("application/json", "", held).whole(append(out, '}')))
}

// appendRef begins an object that names an entity.
func appendRef(out []byte, ref oda.Ref) []byte {
	out = append(append(append(out, `{"kind":"`...), ref.Kind.Collection()...), `","id":`...)
	return rawjson.AppendQuoted(out, ref.ID)
}

// appendVersion adds a version, null if it is 0.
func appendVersion(out []byte, version int64) []byte {
	out = append(out, `,"version":`...)
	if version == 0 {
		return append(out, "null"...)
	}
	return strconv.AppendInt(out, version, 10)
}

// appendTextOrNull adds a text, null if it is empty.
func appendTextOrNull(out []byte, text string) []byte {
	if text == "" {
		return append(out, "null"...)
	}
	return rawjson.AppendQuoted(out, text)
}
