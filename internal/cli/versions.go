package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/alecthomas/kong"

	"oda"
	"oda/client"
)

// versions prints which versions an entity has.
type versions struct {
	ID     string `arg:"" name:"id" complete:"id" help:"Identifier."`
	Limit  int    `placeholder:"N" help:"Print the newest N only; 0 is no limit."`
	Output string `short:"o" default:"auto" enum:"auto,table,json,yaml,csv,id" placeholder:"FORMAT" help:"Print a table (default on a terminal), json, yaml, csv, or with id the numbers of the versions."`
	coloring
	remote
}

// Validate checks numbers.
func (v *versions) Validate() error { return validLimit(v.Limit) }

func validLimit(limit int) error {
	if limit < 0 {
		return errors.New("--limit must not be negative; without it, or with 0, there is no limit")
	}
	return nil
}

// validVersion checks the number of a version, if the flag was given.
func validVersion(ctx *kong.Context, name string, number int64) error {
	for _, p := range ctx.Path {
		if p.Flag != nil && "--"+p.Flag.Name == name && number < 1 {
			return fmt.Errorf("%s: versions count from 1", name)
		}
	}
	return nil
}

// Run prints the versions, newest first.
func (v *versions) Run(ctx context.Context, archive *client.Client, kind oda.Kind, to streams) error {
	look := v.look(to.out)
	list := limited(archive.Versions(ctx, kind, v.ID), v.Limit)
	print := printer[oda.VersionInfo]{
		look: look, header: []string{"VERSION", "WHEN (UTC)", "WHO", "BYTES", "RECORDS"},
		line: func(one oda.VersionInfo) string {
			m := one.Metadata
			return fmt.Sprintf("%d %s %s", m.Version, m.LastModifiedOn, m.LastModifiedBy)
		},
		id: func(one oda.VersionInfo) string { return strconv.FormatInt(one.Metadata.Version, 10) },
		row: func(one oda.VersionInfo) []cell {
			m, records := one.Metadata, "-"
			if one.Listed {
				records = grouped(one.Records)
			}
			return plainCells(strconv.FormatInt(m.Version, 10), when(m.LastModifiedOn), m.LastModifiedBy, grouped(one.Bytes), records)
		},
		json:    func(one oda.VersionInfo) []byte { return one.AppendJSON(nil) },
		columns: []string{"version", "created_by", "created_on", "last_modified_by", "last_modified_on", "bytes", "records"},
	}
	return print.all(to.out, v.Output, list, func(err error) error { return explain(archive, v.ID, err) })
}

// diff prints how one version became another.
type diff struct {
	ID    string `arg:"" name:"id" complete:"id" help:"Identifier."`
	From  int64  `placeholder:"N" help:"The older version (default the one before the newer one)."`
	To    int64  `placeholder:"N" help:"The newer version (default the current one)."`
	Patch bool   `help:"Print a JSON Patch, instead of text for people."`
	coloring
	remote
}

// Validate checks numbers.
func (d *diff) Validate(ctx *kong.Context) error {
	return errors.Join(validVersion(ctx, "--from", d.From), validVersion(ctx, "--to", d.To))
}

// Run prints the difference, or nothing if there is none.
func (d *diff) Run(ctx context.Context, archive *client.Client, kind oda.Kind, to streams) error {
	if d.Patch {
		patch, err := archive.Diff(ctx, kind, d.ID, d.From, d.To)
		if err != nil {
			return explain(archive, d.ID, err)
		}
		return d.look(to.out).printDocument(to.out, "json", patch)
	}
	text, err := archive.DiffText(ctx, kind, d.ID, d.From, d.To)
	if err != nil {
		return explain(archive, d.ID, err)
	}
	return d.look(to.out).printDiff(to.out, text)
}
