package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"oda"
	"oda/client"
)

// query lists identifiers. Its flags are spelt with _ as in the API; - works
// too.
type query struct {
	User               string `placeholder:"NAME" group:"Query" help:"Created by this user."`
	StartsWith         bool   `name:"starts_with" aliases:"starts-with" group:"Query" help:"By a user whose name begins with that of --user."`
	Contains           bool   `group:"Query" help:"By a user whose name contains that of --user."`
	CreatedAfter       moment `name:"created_after" aliases:"created-after" placeholder:"TIME" group:"Query" help:"Created then or later."`
	CreatedBefore      moment `name:"created_before" aliases:"created-before" placeholder:"TIME" group:"Query" help:"Created then or earlier."`
	LastModifiedAfter  moment `name:"last_modified_after" aliases:"last-modified-after" placeholder:"TIME" group:"Query" help:"Last modified then or later."`
	LastModifiedBefore moment `name:"last_modified_before" aliases:"last-modified-before" placeholder:"TIME" group:"Query" help:"Last modified then or earlier."`

	JSON bool `name:"json" help:"Print a JSON array, instead of one identifier per line."`
	remote
}

// moment is a time in any format that the archive accepts.
type moment struct{ time.Time }

// UnmarshalText parses a time.
func (m *moment) UnmarshalText(text []byte) error {
	at, err := oda.ParseTime(string(text))
	if err != nil {
		return fmt.Errorf("%q %w", text, err)
	}
	m.Time = at
	return nil
}

// fields returns the criteria that were given, by precedence.
func (q *query) fields() (asked [][]string) {
	if q.User != "" {
		asked = append(asked, []string{"--user"})
	}
	for _, span := range [][2]struct {
		name string
		at   moment
	}{
		{{"--created_after", q.CreatedAfter}, {"--created_before", q.CreatedBefore}},
		{{"--last_modified_after", q.LastModifiedAfter}, {"--last_modified_before", q.LastModifiedBefore}},
	} {
		var names []string
		for _, bound := range span {
			if !bound.at.IsZero() {
				names = append(names, bound.name)
			}
		}
		if names != nil {
			asked = append(asked, names)
		}
	}
	return asked
}

// Validate checks that there is a criterion.
func (q *query) Validate() error {
	switch {
	case (q.StartsWith || q.Contains) && q.User == "":
		return errors.New("--starts_with and --contains need a user name; give it with --user")
	case q.StartsWith && q.Contains:
		return errors.New("--starts_with and --contains cannot be used together")
	case len(q.fields()) == 0:
		return errors.New("a query needs one of --user, --created_after, --created_before, --last_modified_after, " +
			"--last_modified_before; for everything, use --created_after=1970-01-01")
	}
	return nil
}

// Run prints the identifiers as they arrive.
func (q *query) Run(ctx context.Context, kind oda.Kind, to streams) error {
	archive, err := q.archive("")
	if err != nil {
		return err
	}
	if asked := q.fields(); len(asked) > 1 {
		var ignored []string
		for _, names := range asked[1:] {
			ignored = append(ignored, names...)
		}
		fmt.Fprintf(to.err, "oda: a query has one criterion: %s; ignored: %s\n",
			strings.Join(asked[0], " "), strings.Join(ignored, " "))
	}
	match := oda.AnyUser
	switch {
	case q.StartsWith:
		match = oda.UserStartsWith
	case q.Contains:
		match = oda.UserContains
	}
	out := bufio.NewWriter(to.out)
	list := archive.List(ctx, kind, client.Query{
		User: q.User, Match: match, CreatedAfter: q.CreatedAfter.Time, CreatedBefore: q.CreatedBefore.Time,
		LastModifiedAfter: q.LastModifiedAfter.Time, LastModifiedBefore: q.LastModifiedBefore.Time,
	})
	write := writeLine
	if q.JSON {
		write = writeElement
	}
	n := 0
	for id, err := range list {
		if err != nil {
			return errors.Join(out.Flush(), explain(archive, kind.Collection(), err))
		}
		if err := write(out, n, id); err != nil {
			return err
		}
		n++
	}
	if q.JSON {
		end := "]\n"
		if n == 0 {
			end = "[]\n"
		}
		if _, err := out.WriteString(end); err != nil {
			return err
		}
	}
	return out.Flush()
}

func writeLine(out *bufio.Writer, _ int, id string) error {
	_, err := out.WriteString(id + "\n")
	return err
}

// writeElement writes the next element of an array, which it opens before the
// first.
func writeElement(out *bufio.Writer, n int, id string) error {
	text, err := json.Marshal(id)
	if err != nil {
		return err
	}
	before := ","
	if n == 0 {
		before = "["
	}
	_, err = out.WriteString(before + string(text))
	return err
}
