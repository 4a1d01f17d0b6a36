package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"oda"
	"oda/client"
)

// entities are the commands for every kind of entity.
type entities struct {
	Get      get      `cmd:"" help:"Print entities."`
	Query    query    `cmd:"" help:"Print the identifiers that match."`
	Versions versions `cmd:"" help:"Print the versions of an entity, or one of them."`
	Diff     diff     `cmd:"" help:"Print what changed from one version to another."`
	Put      put      `cmd:"" help:"Store documents under the identifiers in them."`
	Post     post     `cmd:"" help:"Store documents under new identifiers."`
}

// get prints documents.
type get struct {
	ID []string `arg:"" name:"id" help:"Identifiers."`
	At moment   `placeholder:"TIME" help:"Print them as they were then."`
	acting
}

// Run prints the documents as they are stored, one after the other.
func (g *get) Run(ctx context.Context, kind oda.Kind, to streams) error {
	archive, err := g.archive()
	if err != nil {
		return err
	}
	for _, id := range g.ID {
		var d *client.Document
		if g.At.IsZero() {
			d, err = archive.Get(ctx, kind, id)
		} else {
			d, err = archive.AsOf(ctx, kind, id, g.At.Time)
		}
		if err != nil {
			return explain(archive, id, err)
		}
		if err := writeDocument(to.out, d); err != nil {
			return err
		}
	}
	return nil
}

// writeDocument prints a document, and ends its line.
func writeDocument(out io.Writer, d *client.Document) error {
	body := d.Body
	if body[len(body)-1] != '\n' {
		body = append(body, '\n')
	}
	_, err := out.Write(body)
	return err
}

// put stores documents.
type put struct {
	File []string `arg:"" help:"Files with one document each; - is stdin."`
	acting
}

// Run stores one document after the other, and stops at the first failure.
func (p *put) Run(ctx context.Context, kind oda.Kind, to streams) error {
	archive, err := p.archive()
	if err != nil {
		return err
	}
	return each(p.File, to.in, func(body []byte) error {
		id, err := identifier(kind, body)
		if err != nil {
			return err
		}
		d, err := archive.Store(ctx, kind, id, body)
		if err != nil && lost(err) {
			return explain(archive, "it may or may not be stored; check with \"oda "+kind.Collection()+" get "+id+"\"", err)
		}
		if err != nil {
			return explain(archive, id, err)
		}
		_, err = fmt.Fprintf(to.out, "%s version %d\n", d.ID, d.Metadata.Version)
		return err
	})
}

// post creates entities.
type post struct {
	File []string `arg:"" help:"Files with one document each; - is stdin."`
	acting
}

// Run creates one entity after the other, and stops at the first failure.
func (p *post) Run(ctx context.Context, kind oda.Kind, to streams) error {
	archive, err := p.archive()
	if err != nil {
		return err
	}
	return each(p.File, to.in, func(body []byte) error {
		d, err := archive.Create(ctx, kind, body, "")
		if err != nil {
			return explain(archive, "a new "+kind.String(), err)
		}
		_, err = fmt.Fprintln(to.out, d.ID)
		return err
	})
}

// identifier returns the identifier in a document, which the URL of a store
// needs. The archive checks everything else.
func identifier(kind oda.Kind, body []byte) (string, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		if _, syntax := errors.AsType[*json.SyntaxError](err); syntax {
			return "", fmt.Errorf("it is not JSON: %w", err)
		}
		return "", errors.New("it is not a JSON object")
	}
	var id string
	if err := json.Unmarshal(members[kind.IDField()], &id); err != nil || id == "" {
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
		f, ok := errors.AsType[*failure](err)
		if !ok {
			f = &failure{exitFailed, err.Error()}
		}
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

// plainly returns an error about a file without its name.
func plainly(err error) error {
	if broken, ok := errors.AsType[*os.PathError](err); ok {
		err = broken.Err
	}
	return fmt.Errorf("it cannot be read: %w", err)
}
