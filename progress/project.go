package progress

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"oda"
	"oda/internal/rawjson"
	"oda/summary"
)

// project is what a Project is made of, in its order.
type project struct {
	oda.Ref
	groups    []*group
	listed    map[string]bool   // the SBDefinitions of all groups
	ids       []string          // the same
	blocks    map[string]*group // by obs_block_id, the first of each
	truncated bool
}

// group is an observing block, or a programme: a list of SBDefinitions.
type group struct {
	field    string // such as obs_blocks/0
	id, name string // empty: none
	ids      []string
}

// readProject reads what the document of a Project says.
func readProject(ctx context.Context, e *oda.Entity) (*project, error) {
	if size := int64(len(e.Body.Text)); size > oda.LargeText {
		if err := oda.RoomIn(ctx).Take(ctx, size); err != nil { // for a copy
			return nil, err
		}
	}
	text, err := e.WithoutRecords()
	if err != nil {
		return nil, err
	}
	s, err := summary.OfEntity(e)
	if err != nil {
		return nil, err
	}
	p := &project{Ref: e.Ref, listed: map[string]bool{}, blocks: map[string]*group{}, truncated: s.Full()}
	p.readGroups(text)
	fields := make(map[string]*group)
	for _, g := range p.groups {
		fields[g.field] = g
		if g.id != "" && p.blocks[g.id] == nil {
			p.blocks[g.id] = g
		}
	}
	for _, id := range s.Blocks { // those that are elsewhere in the document
		if p.blocks[id] == nil {
			p.blocks[id] = &group{id: id}
		}
	}
	for _, r := range s.References {
		field, _, _ := strings.Cut(r.Field, "/sbd_ids/")
		if g := fields[field]; g != nil {
			p.add(g, r.ID)
		}
	}
	return p, nil
}

// readGroups reads the identifiers and names of the groups.
func (p *project) readGroups(text []byte) {
	for key, list := range rawjson.Members(text) {
		if string(key) != "obs_blocks" && string(key) != "obs_programmes" {
			continue
		}
		i := 0
		for object := range rawjson.Elements(list) {
			if len(p.groups) == maxBlocks {
				p.truncated = true
				return
			}
			g := &group{field: fmt.Sprintf("%s/%d", key, i)}
			for key, value := range rawjson.Members(object) {
				switch string(key) {
				case "obs_block_id":
					g.id = textIn(value)
				case "name":
					g.name = textIn(value)
				}
			}
			p.groups = append(p.groups, g)
			i++
		}
	}
}

// textIn returns what a value says if it is a string, as much of it as a name may have.
func textIn(value []byte) string {
	if value[0] != '"' {
		return ""
	}
	text := rawjson.Unquote(value)
	return strings.ToValidUTF8(text[:min(len(text), oda.MaxName)], "")
}

// add adds an SBDefinition to a group. It is counted once, where the Project names it first.
func (p *project) add(to *group, id string) {
	switch {
	case p.listed[id]:
	case len(p.ids) == maxDefinitions:
		p.truncated = true
	default:
		p.listed[id] = true
		p.ids = append(p.ids, id)
		to.ids = append(to.ids, id)
	}
}

// definitions looks up the SBDefinitions of the Project, and adds those that name it and
// are not in its lists: to the block that they name, or else after all blocks.
func (p *project) definitions(ctx context.Context, f *finder) (map[string]*oda.Found, error) {
	names := []string{p.ID}
	for id := range p.blocks {
		names = append(names, id)
	}
	isName := func(r oda.Reference) bool { return r.Kind == oda.Project && (r.ID == p.ID || p.blocks[r.ID] != nil) }
	found := make(map[string]*oda.Found)
	err := f.ask(ctx, oda.SBDefinition, names, maxDefinitions, func(d *oda.Found) {
		if slices.ContainsFunc(d.Summary.References, isName) {
			found[d.ID] = d
		}
	})
	if err != nil {
		return nil, err
	}
	var others []*oda.Found
	var refs []oda.Ref
	for _, id := range p.ids {
		if found[id] == nil {
			refs = append(refs, oda.Ref{Kind: oda.SBDefinition, ID: id})
		}
	}
	for id, d := range found {
		if !p.listed[id] {
			others = append(others, d)
		}
	}
	slices.SortFunc(others, func(a, b *oda.Found) int { return strings.Compare(a.ID, b.ID) })
	rest := &group{}
	for _, d := range others {
		to := rest
		for _, r := range d.Summary.References {
			if block := p.blocks[r.ID]; r.Kind == oda.Project && block != nil && to == rest {
				to = block
			}
		}
		p.add(to, d.ID)
	}
	p.complete(rest)
	return found, f.look(ctx, refs, func(d *oda.Found) { found[d.ID] = d })
}

// complete adds the groups that the Project does not list itself.
func (p *project) complete(rest *group) {
	var more []*group
	for _, g := range p.blocks {
		if g.field == "" && len(g.ids) > 0 {
			more = append(more, g)
		}
	}
	slices.SortFunc(more, func(a, b *group) int { return cmp.Compare(a.id, b.id) })
	if len(rest.ids) > 0 {
		more = append(more, rest)
	}
	p.groups = append(p.groups, more...)
}
