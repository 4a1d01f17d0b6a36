package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"oda"
	"oda/client"
	"oda/internal/jsondiff"
	"oda/internal/rawjson"
)

// rebased returns a document with the managed metadata of another state of the
// entity, so that it is stored as what follows that state. Nothing else changes.
func rebased(document []byte, m oda.Metadata) ([]byte, error) {
	if claimed(document) == m {
		return document, nil
	}
	scan := rawjson.NewScanner(document, oda.MaxDepth)
	if _, err := scan.BeginObject(); err != nil {
		return nil, err
	}
	comma := ""
	for {
		key, more, err := scan.NextKey()
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		isMetadata := string(key) == "metadata"
		start, end, err := scan.Skip()
		if err != nil {
			return nil, err
		}
		if isMetadata {
			return slices.Concat(document[:start], managedIn(document[start:end], m), document[end:]), nil
		}
		comma = ","
	}
	brace := scan.Pos() - 1
	return slices.Concat(document[:brace], []byte(comma+`"metadata":`), m.AppendJSON(nil), document[brace:]), nil
}

// managedIn returns metadata with other managed fields. The caller's own stay.
func managedIn(metadata []byte, m oda.Metadata) []byte {
	out := []byte("{")
	for key, value := range rawjson.Members(metadata) {
		if !slices.Contains(oda.ManagedPointers(), "/metadata/"+string(key)) {
			out = append(rawjson.AppendQuoted(out, string(key)), ':')
			out = append(append(out, value...), ',')
		}
	}
	return append(out, m.AppendJSON(nil)[1:]...)
}

// claimed returns the managed metadata in a document. Fields that are missing or
// cannot be read are left at zero, and so fit no stored state.
func claimed(document []byte) oda.Metadata {
	var in struct {
		Metadata struct {
			Version        int64  `json:"version"`
			CreatedBy      string `json:"created_by"`
			CreatedOn      string `json:"created_on"`
			LastModifiedBy string `json:"last_modified_by"`
			LastModifiedOn string `json:"last_modified_on"`
		} `json:"metadata"`
	}
	if json.Unmarshal(document, &in) != nil {
		return oda.Metadata{}
	}
	instant := func(text string) oda.Instant {
		at, err := oda.ParseTime(text)
		if err != nil {
			return 0
		}
		return oda.InstantOf(at)
	}
	m := in.Metadata
	return oda.Metadata{
		Version: m.Version, CreatedBy: m.CreatedBy, CreatedOn: instant(m.CreatedOn),
		LastModifiedBy: m.LastModifiedBy, LastModifiedOn: instant(m.LastModifiedOn),
	}
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
	if claimed(document) == m {
		return document, nil
	}
	next, err := rebased(document, m)
	if err != nil {
		return nil, fmt.Errorf("it cannot be stored: %w", err)
	}
	fmt.Fprintf(to.err, "%s has been changed since, by %s on %s UTC. Storing this overwrites:\n", id, visible(m.LastModifiedBy), when(m.LastModifiedOn))
	if !showDiff(to.err, p.look(to.err), fmt.Sprintf("%s version %d", id, m.Version), "what is stored instead", current.Body, next) {
		fmt.Fprintln(to.err, "(nothing but the metadata)")
	}
	switch {
	case p.Yes:
		return next, nil
	case !to.terminal():
		return nil, &failure{exitConflict, id + ": nobody can be asked whether to overwrite this, and nothing was stored; call the command on a terminal, or give --yes"}
	}
	if answer := to.ask(fmt.Sprintf("Store it as version %d? [y/N] ", m.Version+1)); answer != "y" && answer != "yes" {
		return nil, &failure{exitConflict, id + ": nothing was stored"}
	}
	return next, nil
}

// showDiff prints how one document becomes another, apart from what the archive
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
// empty. It takes no more of the input than the line. Ctrl-C ends the program.
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
