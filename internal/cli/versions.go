package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"oda"
)

// versions prints the versions of an entity, or one of them.
type versions struct {
	ID     string `arg:"" name:"id" help:"Identifier."`
	Number int64  `arg:"" optional:"" help:"Print this version, instead of a list of all versions."`
	remote
}

// Run prints a line for each version, newest first, or a document.
func (v *versions) Run(ctx context.Context, kind oda.Kind, to streams) error {
	archive, err := v.archive("")
	if err != nil {
		return err
	}
	if v.Number != 0 {
		d, err := archive.Version(ctx, kind, v.ID, v.Number)
		if err != nil {
			return explain(archive, v.ID, err)
		}
		return writeDocument(to.out, d)
	}
	out := bufio.NewWriter(to.out)
	for one, err := range archive.Versions(ctx, kind, v.ID) {
		if err != nil {
			return errors.Join(out.Flush(), explain(archive, v.ID, err))
		}
		m := one.Metadata
		if _, err := fmt.Fprintf(out, "%d %s %s\n", m.Version, m.LastModifiedOn, m.LastModifiedBy); err != nil {
			return err
		}
	}
	return out.Flush()
}

// diff prints how one version became another.
type diff struct {
	ID    string `arg:"" name:"id" help:"Identifier."`
	From  int64  `arg:"" optional:"" help:"The older version (default the one before TO)."`
	To    int64  `arg:"" optional:"" help:"The newer version (default the current one)."`
	Patch bool   `help:"Print a JSON Patch, instead of text for people."`
	remote
}

// Run prints the difference, or nothing if there is none.
func (d *diff) Run(ctx context.Context, kind oda.Kind, to streams) error {
	archive, err := d.archive("")
	if err != nil {
		return err
	}
	var text string
	if d.Patch {
		var patch []byte
		patch, err = archive.Diff(ctx, kind, d.ID, d.From, d.To)
		text = string(patch) + "\n"
	} else {
		text, err = archive.DiffText(ctx, kind, d.ID, d.From, d.To)
	}
	if err != nil {
		return explain(archive, d.ID, err)
	}
	_, err = fmt.Fprint(to.out, text)
	return err
}
