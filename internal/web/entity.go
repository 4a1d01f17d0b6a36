package web

import (
	"context"
	"html/template"
	"net/http"
	"net/url"
	"strconv"

	"oda"
	"oda/archive"
	"oda/internal/rawjson"
	"oda/summary"
)

// entityView is the data for the page of an entity.
type entityView struct {
	frame
	oda.Ref
	Name     string
	Metadata oda.Metadata
	Summary  *oda.Summary
	Facts    []fact      // of the document itself
	Current  int64       // the version that is current
	At       string      // as of when it is shown, as it was asked for
	AsOf     oda.Instant // the same
	Versions []oda.VersionInfo
	Newer    int64 // the version after those that are listed, 0 if there is none
	Older    int64 // the one before them
	Bytes    int64
	Document template.HTML
	Cut      bool   // the document is longer than what is shown
	API      string // address of the document
	Family   family
	Status   *statusView
	Calls    *callsView // of a block
	Runs     []otherRun // with which it may be compared
	Note     *noteRow   // if it is one
	Notes    []noteRow  // about the entity
	AllNotes string     // address, if there are more
}

// Old reports whether the page shows a state that is out of date.
func (v *entityView) Old() bool { return v.At != "" || v.Metadata.Version != v.Current }

// fact is something that the document says about itself.
type fact struct{ Name, Value string }

// shownVersions is how many versions the switcher offers.
const shownVersions = 20

// entity serves the page of an entity: as it is, as a version was, or as it was
// at a time.
func (s *Site) entity(w http.ResponseWriter, r *http.Request, kind oda.Kind) error {
	ref := oda.Ref{Kind: kind, ID: r.PathValue("id")}
	params := r.URL.Query()
	if clean, already := tidied(params); !already {
		seeOther(w, url.PathEscape(ref.ID)+question(clean))
		return nil
	}
	e, err := s.version(r.Context(), ref, params)
	if err != nil {
		return err
	}
	view := &entityView{frame: s.newFrame(r, ref.ID, kind.Collection()), Ref: ref, Metadata: e.Metadata, At: params.Get("at")}
	if view.At != "" {
		view.AsOf, _ = oda.ParseAsOf(view.At) // it was read before
	}
	view.Crumbs = []crumb{{Name: kind.String() + "s", Href: view.Root + kind.Collection()}, {Name: ref.ID}}
	if err := s.history(r.Context(), view); err != nil {
		return err
	}
	if err := s.document(r.Context(), view, e); err != nil {
		return err
	}
	if view.Status, err = s.status(r.Context(), view.frame, ref, params, view.Old()); err != nil {
		return err
	}
	self := &oda.Found{Ref: ref, Metadata: e.Metadata, Summary: *view.Summary, Standing: view.Status.Standing()}
	if view.Family, err = s.family(r.Context(), self); err != nil {
		return err
	}
	if p := view.Status.Progress; p != nil && p.report != nil {
		if err := s.runs(r.Context(), &view.Family, p.report); err != nil {
			return err
		}
	}
	if view.Notes, view.AllNotes, err = s.notesAbout(r.Context(), view.frame, ref); err != nil {
		return err
	}
	if kind == oda.Note {
		if view.Note, err = view.note(self, e); err != nil {
			return err
		}
	}
	view.Name = view.Family.Nodes[0].Title
	if view.Name != "" {
		view.Title = clipped(view.Name, briefText) + " " + ref.ID
	}
	if kind == oda.ExecutionBlock {
		if err := s.compareRuns(r.Context(), view, self); err != nil {
			return err
		}
		of := &blockState{id: ref.ID}
		if view.Old() {
			of = olderState(ref.ID, e, params)
		}
		if view.Calls, err = s.callsOf(r.Context(), of, params); err != nil {
			return err
		}
		if !view.Old() {
			view.Calls.Total = max(view.Calls.Total, view.Versions[0].Records)
		}
	}
	return s.page(w, r, "entity", view)
}

// version reads the state of an entity that an address names.
func (s *Site) version(ctx context.Context, ref oda.Ref, params url.Values) (*oda.Entity, error) {
	if at := params.Get("at"); at != "" {
		instant, err := oda.ParseAsOf(at)
		if err != nil {
			return nil, err
		}
		return s.cfg.Archive.AsOf(ctx, ref, instant)
	}
	if text := params.Get("version"); text != "" {
		version, err := archive.ParseVersion(ref, text)
		if err != nil {
			return nil, err
		}
		return s.cfg.Archive.Version(ctx, ref, version)
	}
	return s.cfg.Archive.Get(ctx, ref)
}

// history fills in the versions of an entity: the newest, or those around the one that is
// shown.
func (s *Site) history(ctx context.Context, view *entityView) error {
	page, err := s.cfg.Archive.Versions(ctx, view.Ref, 0, shownVersions)
	if err != nil {
		return err
	}
	view.Current = page.Versions[0].Metadata.Version
	if shown := view.Metadata.Version; shown < page.Versions[len(page.Versions)-1].Metadata.Version {
		if page, err = s.cfg.Archive.Versions(ctx, view.Ref, shown+shownVersions/2, shownVersions); err != nil {
			return err
		}
	}
	view.Versions = page.Versions
	if newest := page.Versions[0].Metadata.Version; newest < view.Current {
		view.Newer = newest + 1
	}
	if page.More {
		view.Older = page.Versions[len(page.Versions)-1].Metadata.Version - 1
	}
	return nil
}

// Before and After are the versions next to the one that is shown, 0 if there is none.
func (v *entityView) Before() int64 { return v.Metadata.Version - 1 }

func (v *entityView) After() int64 {
	if v.Metadata.Version == v.Current {
		return 0
	}
	return v.Metadata.Version + 1
}

// Another is a version to compare the shown one with: the current one, or else the one
// before it, 0 if there is none.
func (v *entityView) Another() int64 {
	if v.Metadata.Version != v.Current {
		return v.Current
	}
	return v.Before()
}

// document fills in what the document says, and its text.
func (s *Site) document(ctx context.Context, view *entityView, e *oda.Entity) error {
	if size := int64(len(e.Body.Text)); size > oda.LargeText {
		if err := oda.RoomIn(ctx).Take(ctx, size); err != nil { // for a copy
			return err
		}
	}
	text, err := e.WithoutRecords()
	if err != nil {
		return err
	}
	if view.Summary, err = s.summary(ctx, view.Ref, e, len(text)); err != nil {
		return err
	}
	view.Facts = facts(text)
	view.Bytes = int64(len(text))
	for _, v := range view.Versions {
		if v.Metadata.Version == e.Metadata.Version {
			view.Bytes = v.Bytes // without records
		}
	}
	links := make(map[string]string)
	for _, r := range view.Summary.References {
		links[r.ID] = view.ReferenceHref(r)
	}
	view.Document, view.Cut = fold(text, view.Kind, links)
	view.API = view.Root + "api/v1/" + view.Kind.Collection() + "/" + view.ID
	switch {
	case view.At != "":
		view.API += question(url.Values{"at": {view.At}})
	case view.Metadata.Version != view.Current:
		view.API += "/versions/" + strconv.FormatInt(view.Metadata.Version, 10)
	}
	return nil
}

// longSummary is the size from which the summary of a document is not made again.
const longSummary = 500_000

// summary returns the summary of a document. That of a long one was made when it was
// stored, unless it is an older version.
func (s *Site) summary(ctx context.Context, ref oda.Ref, e *oda.Entity, length int) (*oda.Summary, error) {
	if length > longSummary {
		found, err := s.cfg.Archive.Look(ctx, []oda.Ref{ref})
		if err != nil {
			return nil, err
		}
		if found[0] != nil && found[0].Metadata == e.Metadata {
			return &found[0].Summary, nil
		}
	}
	return summary.OfEntity(e)
}

// ReferenceHref is the address of what a reference names. A Project may be named
// by one of its blocks, which only a search knows.
func (f frame) ReferenceHref(r oda.Reference) string {
	switch {
	case r.Field == "ob_ref":
		return f.Root + oda.Project.Collection() + question(url.Values{"where": {"/obs_blocks/*/obs_block_id = " + string(rawjson.AppendQuoted(nil, r.ID))}})
	case !oda.ValidID(r.ID):
		return f.Root + "search" + question(url.Values{"q": {r.ID}})
	}
	href := f.EntityHref(oda.Ref{Kind: r.Kind, ID: r.ID})
	if r.Version > 0 {
		href += "?version=" + strconv.FormatInt(r.Version, 10)
	}
	return href
}

// shownReferences is how many references the summary shows.
const shownReferences = 12

// mention is a reference in the summary.
type mention struct {
	oda.Reference
	Name, Href string
	Missing    bool
}

// Mentions are the references of the document, as many as are shown at once. Those of a
// Project are part of its progress.
func (v *entityView) Mentions() []mention {
	if v.hasProgress() {
		return nil
	}
	known := make(map[oda.Ref]relative)
	for _, n := range v.Family.Nodes {
		known[n.Ref] = n
	}
	var all []mention
	for _, r := range v.Summary.References[:min(len(v.Summary.References), shownReferences)] {
		m := mention{Reference: r, Href: v.ReferenceHref(r)}
		if n, ok := known[oda.Ref{Kind: r.Kind, ID: r.ID}]; ok {
			m.Name, m.Missing = n.Name, !n.Exists
			if n.Past > 0 {
				m.Href = v.ReferenceHref(oda.Reference{Kind: n.Kind, ID: n.ID, Version: n.Past})
			}
		}
		all = append(all, m)
	}
	return all
}

func (v *entityView) hasProgress() bool { return v.Status.Progress != nil && !v.Status.Progress.Busy }

// Unmentioned is how many references are not shown.
func (v *entityView) Unmentioned() int64 {
	if v.hasProgress() {
		return 0
	}
	return max(0, int64(len(v.Summary.References)-shownReferences))
}
