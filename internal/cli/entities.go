package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"oda"
	"oda/client"
	"oda/internal/rawjson"
)

// entities are the commands for a kind of entity.
type entities = searchedBy[find]

// searchedBy are the commands for a kind of entity, given the one that searches.
type searchedBy[S any] struct {
	Get        get      `cmd:"" reads:"" help:"Print entities."`
	Query      query    `cmd:"" reads:"" help:"Find entities by one criterion."`
	Search     S        `cmd:"" reads:"" aliases:"list" help:"Find entities by any combination of criteria, or list all."`
	Versions   versions `cmd:"" reads:"" aliases:"history" help:"Print which versions an entity has."`
	Diff       diff     `cmd:"" reads:"" help:"Print what changed from one version to another."`
	Provenance trace    `cmd:"" reads:"" help:"Print where an entity comes from, and what came of it."`
	Put        put      `cmd:"" help:"Store documents under the identifiers in them."`
	Post       post     `cmd:"" help:"Store documents under new identifiers."`
}

// get prints documents.
type get struct {
	ID      []string `arg:"" name:"id" complete:"id" help:"Identifiers."`
	Version int64    `placeholder:"N" xor:"state" help:"Print this version."`
	At      moment   `placeholder:"TIME" xor:"state" help:"Print them as they were at this time."`
	Output  string   `short:"o" default:"auto" enum:"auto,json,yaml,csv" placeholder:"FORMAT" help:"Print json (as stored, unless it goes to a terminal), yaml, or, for one entity, csv: each value with its JSON pointer."`
	coloring
	remote
	User string `hidden:"" env:"ODA_USER" help:"Accepted by the commands that store, too."`
}

// Validate checks the version: 0 would stand for the current one.
func (g *get) Validate(ctx *kong.Context) error {
	if g.Output == "csv" && len(g.ID) > 1 {
		return errors.New("csv is a table of one entity; give one identifier")
	}
	return validVersion(ctx, "--version", g.Version)
}

// archive returns a client for the archive.
func (g *get) archive(context.Context) (*client.Client, error) { return g.as(g.User) }

// read reads the state of an entity that was asked for.
func (g *get) read(ctx context.Context, archive *client.Client, kind oda.Kind, id string) (*client.Document, error) {
	switch {
	case g.Version != 0:
		return archive.Version(ctx, kind, id, g.Version)
	case !g.At.IsZero():
		return archive.AsOf(ctx, kind, id, g.At.Time)
	}
	return archive.Get(ctx, kind, id)
}

// Run prints the documents as they are stored, one after the other.
func (g *get) Run(ctx context.Context, archive *client.Client, kind oda.Kind, to streams) error {
	look := g.look(to.out)
	for i, id := range g.ID {
		d, err := g.read(ctx, archive, kind, id)
		if err != nil {
			return explain(archive, id, err)
		}
		if i > 0 && g.Output == "yaml" {
			fmt.Fprintln(to.out, "---")
		}
		if err := look.printDocument(to.out, g.Output, d.Body); err != nil {
			return err
		}
	}
	return nil
}

// put stores documents.
type put struct {
	File   []string `arg:"" help:"Files with one document each; - is stdin."`
	Rebase bool     `help:"Store them even if somebody else has changed the entities since: show what that overwrites, and ask."`
	Yes    bool     `short:"y" help:"With --rebase, do not ask."`
	coloring
	acting
}

// Validate checks that flags fit together.
func (p *put) Validate() error {
	if p.Yes && !p.Rebase {
		return errors.New("--yes answers the question of --rebase; give both")
	}
	return nil
}

// Run stores one document after the other, and stops at the first failure.
func (p *put) Run(ctx context.Context, archive *client.Client, kind oda.Kind, to streams) error {
	return each(p.File, to.in, func(body []byte) error {
		id, err := identifier(kind, body)
		if err != nil {
			return err
		}
		if p.Rebase {
			if body, err = p.rebase(ctx, archive, to, kind, id, body); err != nil {
				return err
			}
		}
		return store(ctx, archive, to, kind, id, body)
	})
}

// store stores a document and says which version it became.
func store(ctx context.Context, archive *client.Client, to streams, kind oda.Kind, id string, body []byte, options ...client.StoreOption) error {
	d, err := archive.Store(ctx, kind, id, body, options...)
	if err != nil && lost(err) {
		return explain(archive, "it may or may not be stored; check with \"oda "+kind.Collection()+" get "+id+"\"", err)
	}
	if err != nil {
		return explain(archive, id, err)
	}
	return reportStored(to.out, fmt.Sprintf("%s version %d", d.ID, d.Metadata.Version))
}

// reportStored prints what was stored. If that fails, the error says so too: nobody
// should store it again.
func reportStored(out io.Writer, what string) error {
	if _, err := fmt.Fprintln(out, visible(what)); err != nil {
		return fmt.Errorf("%s is stored, but that cannot be printed: %w", what, err)
	}
	return nil
}

// post creates entities.
type post struct {
	File []string `arg:"" help:"Files with one document each; - is stdin."`
	acting
}

// Run creates one entity after the other, and stops at the first failure.
func (p *post) Run(ctx context.Context, archive *client.Client, kind oda.Kind, to streams) error {
	return each(p.File, to.in, func(body []byte) error {
		d, err := archive.Create(ctx, kind, body, "")
		if err != nil {
			return explain(archive, "a new "+kind.String(), err)
		}
		sayRenamed(to, kind, body, d.ID)
		return reportStored(to.out, d.ID)
	})
}

// sayRenamed says that a document was not stored under its own identifier.
func sayRenamed(to streams, kind oda.Kind, body []byte, id string) {
	if named, err := identifier(kind, body); err == nil {
		fmt.Fprintf(to.err, "oda: the document names %s, but was stored as a new entity, %s; \"oda %s put\" stores under the identifier in it\n",
			visible(named), id, kind.Collection())
	}
}

// identifier returns the identifier in a document, which the URL of a store
// needs. The archive checks everything else.
func identifier(kind oda.Kind, body []byte) (string, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return "", errors.New("it is empty")
	}
	if err := rawjson.Check(body, oda.MaxDepth); err != nil {
		return "", fmt.Errorf("it is not valid JSON: %w", err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return "", errors.New("it is not a JSON object")
	}
	var id string
	if err := json.Unmarshal(members[kind.IDField()], &id); err != nil || id == "" {
		for _, other := range oda.Kinds {
			if _, has := members[other.IDField()]; has && other != oda.SBDefinition {
				return "", fmt.Errorf("it has no %s, but %s; store it with \"oda %s put\"", kind.IDField(), other.IDField(), other.Collection())
			}
		}
		return "", fmt.Errorf("it has no %s; give it one, or store it with \"oda %s post\", which makes one",
			kind.IDField(), kind.Collection())
	}
	return id, nil
}

// each passes on the files in turn. An error names its file, and says what
// happened to the others.
func each(files []string, stdin io.Reader, do func(body []byte) error) error {
	for i, file := range files {
		body, err := readFile(file, stdin)
		if err == nil {
			err = do(body)
		}
		if err == nil {
			continue
		}
		f := failureOf(err)
		text := called(file) + ": " + f.text
		if len(files) > 1 {
			text += fmt.Sprintf(" [file %d of %d: those before it are stored, those after it were not sent]", i+1, len(files))
		}
		return &failure{f.exit, text}
	}
	return nil
}

// maxFile bounds what is read into memory. It is more than an archive accepts.
const maxFile = 1 << 30

func readFile(name string, stdin io.Reader) ([]byte, error) {
	in, err := open(name, stdin)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	body, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	switch {
	case err != nil:
		return nil, plainly(err)
	case len(body) > maxFile:
		return nil, fmt.Errorf("it is larger than %d bytes", maxFile)
	}
	return body, nil
}

// called returns the name of a file for messages.
func called(name string) string {
	if name == "-" {
		return "stdin"
	}
	return name
}

// open opens a file; - is stdin.
func open(name string, stdin io.Reader) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(stdin), nil
	}
	in, err := os.Open(name)
	if err != nil {
		return nil, plainly(err)
	}
	return in, nil
}

// plainly removes the name of the file from an error.
func plainly(err error) error {
	if broken, ok := errors.AsType[*os.PathError](err); ok {
		err = broken.Err
	}
	return fmt.Errorf("it cannot be read: %w", err)
}
