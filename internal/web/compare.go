package web

import (
	"context"
	"errors"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"oda"
	"oda/internal/jsondiff"
)

// compareView is the data for the page that compares two states, of one entity or
// of two.
type compareView struct {
	frame
	AskedFrom, AskedTo string // as they stand in the form
	Fault              string // why there is nothing to compare
	From, To           *side
	Heads              []*side // both, in order
	Calls              bool    // the calls are compared, not the documents
	Unified            bool
	Changes            []change
	Body               template.HTML
	Removed, Added     int64 // lines
	Of                 int64 // changes
	Cut                bool  // not all of them are shown
	Notice             string
	Steps              *stepsView // if the calls are compared
	params             url.Values
}

// change is a change on the page.
type change struct {
	Number int
	Where  string
}

// Bounds of a comparison. What is beyond them is left to the documents.
const (
	compareBytes = 2 << 20 // of both documents
	compareLines = 40_000  // of each
	compareWait  = 5 * time.Second
	maxCompares  = 2 // at once
)

// compare serves the comparison of two states.
func (s *Site) compare(w http.ResponseWriter, r *http.Request) error {
	params, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return oda.Errorf(oda.InvalidQuery, "The address is not well-formed: write a percent sign as %%25 and a semicolon as %%3B.")
	}
	if clean, already := tidied(params); !already {
		seeOther(w, "compare"+question(clean))
		return nil
	}
	view := &compareView{
		frame: s.newFrame(r, "Compare", "compare"), AskedFrom: params.Get("from"), AskedTo: params.Get("to"),
		Unified: params.Get("view") == "unified", params: params,
	}
	view.Crumbs = []crumb{{Name: "Compare"}}
	if view.AskedFrom == "" && view.AskedTo == "" {
		return s.page(w, r, "compare", view)
	}
	if err := s.sides(r.Context(), view); err != nil {
		return s.notCompared(w, view, err)
	}
	if view.AskedFrom != view.From.address() || view.AskedTo != view.To.address() {
		seeOther(w, view.link("from", view.From.address(), "to", view.To.address()))
		return nil
	}
	leave, err := s.enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	if err := s.fillCompare(r.Context(), view); err != nil {
		return err
	}
	if view.Calls && view.Steps.isBeyond() {
		seeOther(w, view.link("after", "")) // there are not so many
		return nil
	}
	return s.page(w, r, "compare", view)
}

// notCompared answers why there is nothing to compare, with the form to mend it.
func (s *Site) notCompared(w http.ResponseWriter, view *compareView, err error) error {
	status := map[oda.Code]int{oda.NotFound: http.StatusNotFound, oda.InvalidQuery: http.StatusBadRequest}[oda.CodeOf(err)]
	e, ok := errors.AsType[*oda.Error](err)
	if !ok || status == 0 {
		return err
	}
	view.Fault = e.Detail
	return s.unkept(w, status, "compare", view)
}

// enter waits until a comparison may begin: it takes more memory than other pages.
func (s *Site) enter(ctx context.Context) (leave func(), err error) {
	timer := time.NewTimer(compareWait)
	defer timer.Stop()
	select {
	case s.compares <- struct{}{}:
		return func() { <-s.compares }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		return nil, oda.Errorf(oda.Overloaded, "Too many documents are being compared at once. Try again shortly.")
	}
}

// sides finds the two sides. A side that is left out is another version of the entity:
// of an older version the current one, otherwise the one before. If a block has none before,
// it is another run of its SBDefinition.
func (s *Site) sides(ctx context.Context, view *compareView) error {
	from, to := readSide(view.AskedFrom), readSide(view.AskedTo)
	var err error
	switch {
	case view.AskedFrom != "" && from.id != "":
		if view.From, err = s.find(ctx, from, nil); err != nil {
			return err
		}
		if view.AskedTo == "" && view.From.Current {
			view.From, view.To = nil, view.From
			break
		}
		if view.To, err = s.find(ctx, to, view.From); err != nil {
			return err
		}
	case to.id != "":
		if view.To, err = s.find(ctx, to, nil); err != nil {
			return err
		}
		if view.AskedFrom != "" {
			if view.From, err = s.find(ctx, from, view.To); err != nil {
				return err
			}
		}
	default:
		return oda.Errorf(oda.InvalidQuery, "Say which entity to compare: an identifier on at least one side.")
	}
	if view.From == nil {
		before := view.To.Metadata.Version - 1
		if before == 0 {
			return s.besides(ctx, view)
		}
		view.From, err = s.side(ctx, view.To.Ref, before)
	}
	return err
}

// link is the address of this comparison with some parameters changed, pairs of
// name and value; an empty value leaves one out.
func (v *compareView) link(changes ...string) string {
	params := maps.Clone(v.params)
	for i := 0; i < len(changes); i += 2 {
		params.Set(changes[i], changes[i+1])
	}
	return "compare" + question(withoutEmpty(params))
}

// fillCompare reads both sides and compares them.
func (s *Site) fillCompare(ctx context.Context, view *compareView) error {
	view.Heads = []*side{view.From, view.To}
	for _, one := range view.Heads {
		one.Href = view.EntityHref(one.Ref)
		if !one.Current {
			one.Href += "?version=" + strconv.FormatInt(one.Metadata.Version, 10)
		}
	}
	view.Title = "Compare " + view.From.ID + " and " + view.To.ID
	if view.From.Ref == view.To.Ref {
		view.Title = "Changes of " + view.From.ID
	}
	what := view.params.Get("what")
	view.Calls = view.Blocks() && (what == "calls" || what == "" && view.From.Ref != view.To.Ref)
	if view.Calls {
		return s.steps(ctx, view)
	}
	from, to, err := s.documents(ctx, view)
	if err != nil || view.Notice != "" {
		return err
	}
	c := comparison{view: view, from: from, to: to, rows: jsondiff.Align(from, to)}
	c.write()
	return nil
}

// tooLong says that there is too much to compare.
const tooLong = "These documents are too long to show side by side."

// documents reads the lines of both documents. The calls of a block are left out.
func (s *Site) documents(ctx context.Context, view *compareView) (from, to []jsondiff.Line, err error) {
	if view.From.Bytes+view.To.Bytes > compareBytes {
		view.Notice = tooLong
		return nil, nil, nil
	}
	var sides [2][]jsondiff.Line
	for i, one := range view.Heads {
		e, err := s.sideEntity(ctx, one)
		if err != nil {
			return nil, nil, err
		}
		text, err := e.WithoutRecords()
		if err != nil {
			return nil, nil, err
		}
		lines, ok := jsondiff.Lines(text, compareLines, oda.ManagedPointers()...)
		if !ok {
			view.Notice = tooLong
			return nil, nil, nil
		}
		if one.Kind == oda.ExecutionBlock {
			lines = withoutCalls(lines)
		}
		sides[i] = slices.DeleteFunc(lines, isBareMetadata)
	}
	return sides[0], sides[1], nil
}

// isBareMetadata reports whether a line is the metadata with nothing in it but what the
// archive itself keeps. Whether a document was sent with that is no difference.
func isBareMetadata(l jsondiff.Line) bool {
	return l.Indent == 1 && l.Key == `"metadata"` && strings.HasSuffix(l.Text, "{}")
}

// Blocks reports whether both sides are blocks, whose calls can be compared.
func (v *compareView) Blocks() bool {
	return v.From != nil && v.From.Kind == oda.ExecutionBlock && v.To.Kind == oda.ExecutionBlock
}

// Same reports whether nothing differs in the documents.
func (v *compareView) Same() bool { return v.Notice == "" && !v.Calls && v.Of == 0 }

// The ways to look at a comparison, and those that it leads to.
func (v *compareView) Swapped() string {
	return v.link("from", v.To.address(), "to", v.From.address(), "after", "")
}
func (v *compareView) SideBySide() string  { return v.link("view", "") }
func (v *compareView) AsUnified() string   { return v.link("view", "unified") }
func (v *compareView) OfCalls() string     { return v.link("what", "calls", "after", "") }
func (v *compareView) Exactly() string     { return v.link("with", "results", "after", "") }
func (v *compareView) Essentially() string { return v.link("with", "", "after", "") }
func (v *compareView) OfDocuments() string { return v.link("what", "document", "after", "") }

// Patch is the address of the changes as a JSON Patch, where the interface has it.
func (v *compareView) Patch() string {
	if v.From.Ref != v.To.Ref || v.Calls {
		return ""
	}
	number := func(s *side) string { return strconv.FormatInt(s.Metadata.Version, 10) }
	return v.Root + "api/v1/" + v.To.Kind.Collection() + "/" + v.To.ID + "/diff?from=" + number(v.From) + "&to=" + number(v.To)
}
