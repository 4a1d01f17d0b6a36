package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"oda"
	"oda/api"
	"oda/client"
	"oda/internal/contract"
	"oda/internal/jsondiff"
	"oda/summary"
)

// restated returns a document with the managed metadata of another state of the
// entity, so that it is stored as what follows that state. Nothing else changes.
func restated(kind oda.Kind, text []byte, m oda.Metadata) ([]byte, error) {
	description, err := contract.Load(api.JSON())
	if err != nil {
		return nil, err
	}
	index, err := description.Operation("store"+kind.Short()).CheckWatched(text, oda.MaxDepth, summary.Watched)
	if err != nil {
		return nil, errors.New(strings.TrimSuffix(err.Error(), "."))
	}
	d := oda.NewDocument(kind, text, index, 0, "")
	if now, _ := d.Metadata.Matchable(oda.AllFields); now == m {
		return text, nil
	}
	return d.Restated(d.ID, m)
}

// rebase returns a document as it can be stored after what others have stored. If
// that overwrites something, it shows what, and asks.
func (p *put) rebase(ctx context.Context, archive *client.Client, to streams, kind oda.Kind, id string, document []byte) ([]byte, error) {
	current, err := archive.Get(ctx, kind, id)
	if oda.CodeOf(err) == oda.NotFound {
		return document, nil
	}
	if err != nil {
		return nil, explain(archive, id, err)
	}
	m := current.Metadata
	next, err := restated(kind, document, m)
	if err != nil {
		return nil, fmt.Errorf("it cannot be stored: %w", err)
	}
	if bytes.Equal(next, document) {
		return document, nil
	}
	fmt.Fprintf(to.err, "%s has been changed since, by %s on %s UTC. Storing this overwrites:\n", id, visible(m.LastModifiedBy), when(m.LastModifiedOn))
	if !showDiff(to.err, p.look(to.err), fmt.Sprintf("%s version %d", id, m.Version), "what is stored instead", current.Body, next) {
		fmt.Fprintln(to.err, "(only the metadata)")
	}
	switch {
	case p.Yes:
		return next, nil
	case !to.terminal():
		return nil, &failure{exitConflict, id + ": there is no terminal to ask on, so nothing was stored; run the command in a terminal, or add --yes"}
	}
	if answer := to.ask(fmt.Sprintf("Store it as version %d? [y/N] ", m.Version+1)); answer != "y" && answer != "yes" {
		return nil, &failure{exitConflict, id + ": nothing was stored"}
	}
	return next, nil
}

// showDiff prints how one document becomes another, except for what the archive
// writes itself. It reports whether there is a difference.
func showDiff(out io.Writer, look look, fromName, toName string, from, to []byte) (differs bool) {
	var text strings.Builder
	err := jsondiff.Unified(&text, jsondiff.Side{Name: fromName, Text: from}, jsondiff.Side{Name: toName, Text: to}, oda.ManagedPointers()...)
	if errors.Is(err, jsondiff.ErrTooLong) {
		fmt.Fprintln(out, "(the difference is too long to be shown)")
		return true
	}
	look.people = true // it may go to a terminal
	_ = look.printDiff(out, text.String())
	return text.Len() > 0
}

// ask asks a person, and returns the answer in lower case. Without an answer it is
// empty. It reads no further than the end of the line. Ctrl-C ends the program.
func (s streams) ask(question string) string {
	signal.Reset(os.Interrupt, syscall.SIGTERM)
	fmt.Fprint(s.err, question)
	var line []byte
	for one := make([]byte, 1); ; {
		n, err := s.in.Read(one)
		if n == 0 && err != nil {
			fmt.Fprintln(s.err)
			return ""
		}
		if one[0] == '\n' {
			return strings.ToLower(strings.TrimSpace(string(line)))
		}
		line = append(line, one[:n]...)
	}
}
