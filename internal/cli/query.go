package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"oda"
	"oda/client"
	"oda/internal/rawjson"
	"oda/search"
	"oda/sky"
)

// criteria are what a query and a search have in common. Their flags are spelled
// with _ as in the API; - works too.
type criteria struct {
	User               string `placeholder:"NAME" group:"Query" help:"Created by this user."`
	StartsWith         bool   `name:"starts_with" aliases:"starts-with" group:"Query" help:"Created by a user whose name begins with --user."`
	Contains           bool   `group:"Query" help:"Created by a user whose name contains --user."`
	CreatedAfter       moment `name:"created_after" aliases:"created-after" placeholder:"TIME" group:"Query" help:"Created then or later."`
	CreatedBefore      moment `name:"created_before" aliases:"created-before" placeholder:"TIME" group:"Query" help:"Created then or earlier."`
	LastModifiedAfter  moment `name:"last_modified_after" aliases:"last-modified-after" placeholder:"TIME" group:"Query" help:"Last modified then or later."`
	LastModifiedBefore moment `name:"last_modified_before" aliases:"last-modified-before" placeholder:"TIME" group:"Query" help:"Last modified then or earlier."`
}

// match returns how the user is compared.
func (c *criteria) match() oda.MatchType {
	switch {
	case c.StartsWith:
		return oda.UserStartsWith
	case c.Contains:
		return oda.UserContains
	}
	return oda.UserEquals
}

// spans returns when what is asked for was created and modified.
func (c *criteria) spans() (created, modified oda.Span) {
	return oda.SpanOf(c.CreatedAfter.Time, c.CreatedBefore.Time), oda.SpanOf(c.LastModifiedAfter.Time, c.LastModifiedBefore.Time)
}

// check returns what is wrong with the criteria.
func (c *criteria) check() error {
	switch {
	case (c.StartsWith || c.Contains) && c.User == "":
		return errors.New("--starts_with and --contains need a user name; give it with --user")
	case c.StartsWith && c.Contains:
		return errors.New("--starts_with and --contains cannot be used together")
	}
	return nil
}

// query lists entities by one criterion.
type query struct {
	criteria
	Limit  int    `placeholder:"N" help:"Print at most N; 0 is no limit."`
	Output string `short:"o" default:"auto" enum:"auto,table,json,yaml,csv,id" placeholder:"FORMAT" help:"Print a table (default on a terminal), or the identifiers: one per line with id (default elsewhere), as a json array, yaml or csv."`
	coloring
	remote
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
	if err := errors.Join(q.check(), validLimit(q.Limit)); err != nil {
		return err
	}
	if len(q.fields()) == 0 {
		return errors.New("a query needs one of --user, --created_after, --created_before, --last_modified_after, " +
			"--last_modified_before; for everything, use --created_after=1970-01-01")
	}
	return nil
}

// Run prints what it finds as it arrives.
func (q *query) Run(ctx context.Context, archive *client.Client, kind oda.Kind, to streams) error {
	if asked := q.fields(); len(asked) > 1 {
		var ignored []string
		for _, names := range asked[1:] {
			ignored = append(ignored, names...)
		}
		fmt.Fprintf(to.err, "oda: a query has one criterion: %s; ignored: %s\n",
			strings.Join(asked[0], " "), strings.Join(ignored, " "))
	}
	look := q.look(to.out)
	failed := func(err error) error { return explain(archive, kind.Collection(), err) }
	if q.Output == "table" || q.Output == "auto" && look.people {
		found := limited(archive.Search(ctx, q.search(kind)), q.Limit)
		return foundPrinter(look).all(to.out, "table", found, failed)
	}
	list := archive.List(ctx, q.asked(kind))
	return idPrinter(look).all(to.out, q.Output, limited(list, q.Limit), failed)
}

// asked returns the query, which has the first of the criteria.
func (q *query) asked(kind oda.Kind) oda.Query {
	created, modified := q.spans()
	switch {
	case q.User != "":
		return oda.Query{Kind: kind, Order: oda.ByCreation, User: q.User, Match: q.match()}
	case created != oda.Span{}:
		return oda.Query{Kind: kind, Order: oda.ByCreation, After: created.After, Before: created.Before}
	}
	return oda.Query{Kind: kind, Order: oda.ByModification, After: modified.After, Before: modified.Before}
}

// search returns the search that finds the same, in the same order.
func (q *query) search(kind oda.Kind) search.Search {
	asked := q.asked(kind)
	s := search.Search{Kind: kind, User: asked.User, Match: asked.Match, Sort: oda.OldestFirst, Limit: tableRows}
	span := oda.Span{After: asked.After, Before: asked.Before}
	if asked.Order == oda.ByModification {
		s.Modified, s.Sort = span, oda.LastModifiedLast
	} else {
		s.Created = span
	}
	return s
}

// idPrinter prints identifiers.
func idPrinter(l look) *printer[string] {
	return &printer[string]{
		look: l, columns: []string{"id"}, id: func(id string) string { return id },
		json: func(id string) []byte { return rawjson.AppendQuoted(nil, id) },
	}
}

// foundPrinter prints entities as a table.
func foundPrinter(l look) *printer[*oda.Found] {
	return &printer[*oda.Found]{
		look: l, header: []string{"IDENTIFIER", "VERSION", "WHO", "WHEN (UTC)", "STATUS", "NAME"},
		row: func(f *oda.Found) []cell {
			m := f.Metadata
			row := plainCells(f.ID, strconv.FormatInt(m.Version, 10), m.LastModifiedBy, when(m.LastModifiedOn), cmp.Or(f.Standing.Text, "-"), f.Summary.Name)
			row[0].ink, row[4].ink = cyan, classInk(f.Standing.Class)
			return row
		},
	}
}

// find finds entities by any combination of criteria.
type find struct {
	Words []string `arg:"" optional:"" help:"Words that must all occur in the identifier, or in a name, title, description or target. The last one may be incomplete."`
	criteria
	Q          string   `name:"q" placeholder:"WORDS" group:"Query" help:"The words, like WORDS."`
	Telescope  string   `placeholder:"NAME" complete:"telescope" group:"Query" help:"Of this telescope."`
	Status     string   `placeholder:"STATUS" complete:"status" group:"Query" help:"With this status; case does not matter, and a blank, _ and - are the same."`
	Class      string   `enum:"planned,running,done,failed,stopped," default:"" placeholder:"CLASS" group:"Query" help:"With a status of this class: planned, running, done, failed or stopped."`
	Unobserved bool     `group:"Query" help:"Of which no run is done; SBDefinitions only."`
	Ref        string   `placeholder:"ID" complete:"any" group:"Query" help:"With a reference to this identifier."`
	RefVersion int64    `name:"ref_version" aliases:"ref-version" placeholder:"N" group:"Query" help:"With a reference to this version of it."`
	Cone       cone     `placeholder:"RA,DEC,RADIUS" group:"Query" help:"With a target within this circle (ICRS): in degrees, or sexagesimal such as '13:25:27.6 -43:01:08.8'; the radius is one degree if it is left out."`
	Where      []string `sep:"none" placeholder:"CONDITION" group:"Query" help:"With a value in the document that meets this condition: a JSON pointer, one of = != < <= > >= ~ and a JSON value, such as '/scans/*/duration > 60'. May be given several times."`

	Sort      order  `default:"-created" enum:"created,-created,modified,-modified,id,-id" placeholder:"ORDER" help:"Order: created, modified or id; with - the last comes first (default ${default})."`
	Limit     int    `placeholder:"N" help:"Print at most N; 0 is no limit."`
	Documents bool   `help:"Print whole documents."`
	Output    string `short:"o" default:"auto" enum:"auto,table,json,yaml,csv,id" placeholder:"FORMAT" help:"Print a table (default on a terminal), identifiers with id (default elsewhere), or a summary of each as json, yaml or csv."`
	coloring
	remote
}

// cone is a circle on the sky.
type cone struct{ *sky.Cone }

// UnmarshalText parses a circle.
func (c *cone) UnmarshalText(text []byte) error {
	circle, err := sky.ReadCone(string(text))
	if err != nil {
		return fmt.Errorf("%q %w", text, err)
	}
	c.Cone = &circle
	return nil
}

// Validate checks that flags fit together.
func (s *find) Validate(ctx *kong.Context) error {
	if s.RefVersion != 0 && s.Ref == "" {
		return errors.New("--ref_version needs an identifier; give it with --ref")
	}
	if slices.ContainsFunc(s.words(), func(word string) bool { return strings.TrimSpace(word) == "" }) {
		return errors.New("a word is empty; is a variable not set?")
	}
	if s.Documents && (s.Output == "table" || s.Output == "csv" || s.Output == "id") {
		return errors.New("--documents prints json or yaml")
	}
	return errors.Join(s.check(), validVersion(ctx, "--ref_version", s.RefVersion), validLimit(s.Limit))
}

// words returns the words to search for.
func (s *find) words() []string {
	if s.Q == "" {
		return s.Words
	}
	return append(s.Words, s.Q)
}

// asked returns the search that was asked for.
func (s *find) asked(kind oda.Kind) search.Search {
	created, modified := s.spans()
	class, _ := oda.ClassNamed(s.Class) // the flag allows no others
	return search.Search{
		Kind: kind, Words: strings.Join(s.words(), " "), User: s.User, Match: s.match(), Created: created, Modified: modified,
		Telescope: s.Telescope, Status: s.Status, Class: class, Unobserved: s.Unobserved, Reference: s.Ref, ReferenceVersion: s.RefVersion, Cone: s.Cone.Cone, Where: s.Where,
		Sort: oda.Sort(slices.Index(oda.SortNames(), string(s.Sort))), Limit: min(s.Limit, search.MaxLimit),
	}
}

// Run prints what it finds, page by page.
func (s *find) Run(ctx context.Context, archive *client.Client, kind oda.Kind, to streams) error {
	return s.print(ctx, archive, s.asked(kind), to)
}

// print prints what a search finds.
func (s *find) print(ctx context.Context, archive *client.Client, asked search.Search, to streams) error {
	failed := func(err error) error { return explain(archive, asked.Kind.Collection(), err) }
	damaged := func(err error) { fmt.Fprintf(to.err, "oda: %s\n", shownError(to.err, failed(err))) }
	look := s.look(to.out)
	format := s.Output
	if format == "auto" && !look.people {
		format = "id"
	}
	switch {
	case s.Documents:
		return s.documents(to, look, readable(limited(archive.SearchDocuments(ctx, asked), s.Limit), damaged), failed)
	case format == "id":
		return idPrinter(look).all(to.out, format, readable(limited(archive.SearchIDs(ctx, asked), s.Limit), damaged), failed)
	}
	if format == "json" || format == "yaml" || format == "csv" {
		print := printer[json.RawMessage]{look: look, json: func(one json.RawMessage) []byte { return one }, columns: oda.FoundColumns(asked.Kind)}
		return print.all(to.out, format, readable(limited(archive.SearchJSON(ctx, asked), s.Limit), damaged), failed)
	}
	found := readable(limited(archive.Search(ctx, asked), s.Limit), damaged)
	switch asked.Kind {
	case oda.ExecutionBlock:
		return countedPrinter(look).all(to.out, "table", withCalls(ctx, archive, found), failed)
	case oda.Note:
		return notePrinter(look).all(to.out, "table", found, failed)
	}
	return foundPrinter(look).all(to.out, "table", found, failed)
}

// documents prints documents one after the other.
func (s *find) documents(to streams, look look, list iter.Seq2[*client.Document, error], failed func(error) error) error {
	n := 0
	for d, err := range list {
		if err != nil {
			return failed(err)
		}
		if n++; n > 1 && s.Output == "yaml" {
			fmt.Fprintln(to.out, "---")
		}
		if err := look.printDocument(to.out, s.Output, d.Body); err != nil {
			return err
		}
	}
	return nil
}
