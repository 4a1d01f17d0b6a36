package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"oda"
	"oda/client"
	"oda/provenance"
)

// trace prints what an entity comes from, and what came of it.
type trace struct {
	ID     string `arg:"" name:"id" complete:"id" help:"Identifier."`
	Output string `short:"o" default:"auto" enum:"auto,json,yaml,csv,id" placeholder:"FORMAT" help:"Print a tree (default), json, yaml, or one entity per line as csv or with id."`
	coloring
	remote
}

// Run prints a tree: below each entity those that are reached from it first.
func (p *trace) Run(ctx context.Context, archive *client.Client, kind oda.Kind, to streams) error {
	look := p.look(to.out)
	if p.Output == "json" || p.Output == "yaml" || p.Output == "csv" {
		text, err := archive.ProvenanceJSON(ctx, kind, p.ID)
		if err != nil {
			return explain(archive, p.ID, err)
		}
		if p.Output == "csv" {
			var found struct{ Nodes []json.RawMessage }
			if err := json.Unmarshal(text, &found); err != nil {
				return err
			}
			return printRows(look, to.out, []string{"kind", "id", "exists", "version", "name"}, found.Nodes)
		}
		return look.printDocument(to.out, p.Output, text)
	}
	found, err := archive.Provenance(ctx, kind, p.ID)
	if err != nil {
		return explain(archive, p.ID, err)
	}
	if found.Truncated {
		fmt.Fprintf(to.err, "oda: %s: there is more than this; the archive follows at most 1,000 entities\n", p.ID)
	}
	if p.Output == "id" {
		return printRefs(to.out, found)
	}
	return printTree(to.out, look, oda.Ref{Kind: kind, ID: p.ID}, found)
}

func printRefs(out io.Writer, found *provenance.Graph) error {
	w := bufio.NewWriter(out)
	for _, n := range found.Nodes {
		fmt.Fprintf(w, "%s %s\n", n.Kind.Collection(), visible(n.ID))
	}
	return w.Flush()
}

// branch is an entity below another, and how it is reached from there.
type branch struct {
	to  oda.Ref
	how string
}

// branches returns the tree of a provenance: each entity once, below the nearest
// one from which it is reached.
func branches(root oda.Ref, found *provenance.Graph) map[oda.Ref][]branch {
	near := make(map[oda.Ref][]branch)
	for _, e := range found.Edges {
		field := e.Field
		if e.Version != 0 {
			field = fmt.Sprintf("%s (version %d)", e.Field, e.Version)
		}
		near[e.From] = append(near[e.From], branch{e.To, "→ " + field})
		near[e.To] = append(near[e.To], branch{e.From, "← " + field})
	}
	tree, seen := make(map[oda.Ref][]branch), map[oda.Ref]bool{root: true}
	for level := []oda.Ref{root}; len(level) > 0; {
		var next []oda.Ref
		for _, from := range level {
			for _, b := range near[from] {
				if seen[b.to] {
					continue
				}
				seen[b.to] = true
				tree[from] = append(tree[from], b)
				next = append(next, b.to)
			}
		}
		level = next
	}
	return tree
}

func printTree(out io.Writer, look look, root oda.Ref, found *provenance.Graph) error {
	nodes := make(map[oda.Ref]provenance.Node)
	for _, n := range found.Nodes {
		nodes[n.Ref] = n
	}
	tree := branches(root, found)
	w := bufio.NewWriter(out)
	var print func(ref oda.Ref, how, before, below string)
	print = func(ref oda.Ref, how, before, below string) {
		n := nodes[ref]
		line := look.paint(cyan, visible(ref.ID))
		switch {
		case !n.Exists:
			line += look.paint(red, " not stored")
		case n.Name != "":
			line += fmt.Sprintf(" version %d  %s", n.Version, visible(n.Name))
		default:
			line += fmt.Sprintf(" version %d", n.Version)
		}
		if how != "" {
			how = look.paint(faint, visible(how)) + " "
		}
		fmt.Fprintf(w, "%s%s%s %s\n", before, how, ref.Kind.Collection(), line)
		children := tree[ref]
		for i, child := range children {
			if i == len(children)-1 {
				print(child.to, child.how, below+"└─ ", below+"   ")
			} else {
				print(child.to, child.how, below+"├─ ", below+"│  ")
			}
		}
	}
	print(root, "", "", "")
	return w.Flush()
}
