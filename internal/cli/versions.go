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

// versions prints the versions of an entity, or one of them.
type versions struct {
	ID     string `arg:"" name:"id" complete:"id" help:"Identifier."`
	Number int64  `arg:"" optional:"" help:"Print this version, instead of a list of all versions."`
	Limit  int    `placeholder:"N" help:"Print the newest N only; 0 is no limit."`
	Output string `short:"o" default:"auto" enum:"auto,table,json,yaml,csv,id" placeholder:"FORMAT" help:"Print a table (default on a terminal), json, yaml, csv, or with id the numbers of the versions."`
	coloring
	remote
}

// Validate checks numbers.
func (v *versions) Validate(ctx *kong.Context) error {
	return errors.Join(validVersion(ctx, "<number>", v.Number), validLimit(v.Limit))
}

func validLimit(limit int) error {
	if limit < 0 {
		return errors.New("--limit must not be negative; without it, or with 0, there is no limit")
	}
	return nil
}

// validVersion checks the number of a version, if the flag or argument was given.
func validVersion(ctx *kong.Context, name string, number int64) error {
	for _, p := range ctx.Path {
		isGiven := p.Flag != nil && "--"+p.Flag.Name == name || p.Positional != nil && "<"+p.Positional.Name+">" == name
		if isGiven && number < 1 {
			return fmt.Errorf("%s: versions count from 1", name)
		}
	}
	return nil
}

// Run prints the versions, newest first, or a document.
func (v *versions) Run(ctx context.Context, archive *client.Client, kind oda.Kind, to streams) error {
	look := v.look(to.out)
	if v.Number != 0 {
		d, err := archive.Version(ctx, kind, v.ID, v.Number)
		if err != nil {
			return explain(archive, v.ID, err)
		}
		return look.printDocument(to.out, v.Output, d.Body)
	}
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
	From  int64  `arg:"" optional:"" help:"The older version (default the one before TO)."`
	To    int64  `arg:"" optional:"" help:"The newer version (default the current one)."`
	Older int64  `name:"from" placeholder:"N" help:"The older version, like FROM."`
	Newer int64  `name:"to" placeholder:"N" help:"The newer version, like TO."`
	Patch bool   `help:"Print a JSON Patch, instead of text for people."`
	coloring
	remote
}

// Validate checks that each version is given once.
func (d *diff) Validate(ctx *kong.Context) error {
	if d.From != 0 && d.Older != 0 || d.To != 0 && d.Newer != 0 {
		return errors.New("a version is given twice, as an argument and as a flag")
	}
	return errors.Join(validVersion(ctx, "<from>", d.From), validVersion(ctx, "<to>", d.To),
		validVersion(ctx, "--from", d.Older), validVersion(ctx, "--to", d.Newer))
}

// Run prints the difference, or nothing if there is none.
func (d *diff) Run(ctx context.Context, archive *client.Client, kind oda.Kind, to streams) error {
	from, newer := max(d.From, d.Older), max(d.To, d.Newer)
	if d.Patch {
		return d.printPatch(ctx, archive, kind, to, from, newer)
	}
	text, err := archive.DiffText(ctx, kind, d.ID, from, newer)
	if err != nil {
		return explain(archive, d.ID, err)
	}
	return d.look(to.out).printDiff(to.out, text)
}

func (d *diff) printPatch(ctx context.Context, archive *client.Client, kind oda.Kind, to streams, from, newer int64) error {
	patch, err := archive.Diff(ctx, kind, d.ID, from, newer)
	if err != nil {
		return explain(archive, d.ID, err)
	}
	return d.look(to.out).printDocument(to.out, "json", patch)
}
