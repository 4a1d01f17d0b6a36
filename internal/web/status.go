package web

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"oda"
)

// marks are the shapes of the classes, in a square of 12 by 12. The style sheet gives each a
// colour as well. A class can be told by either alone.
var marks = map[oda.Class]string{
	oda.NoClass:      "M2 6h8",
	oda.ClassPlanned: "M6 2a4 4 0 1 0 0 8a4 4 0 1 0 0-8z",
	oda.ClassRunning: "M3 2v8l7-4z",
	oda.ClassDone:    "M2 6.5l3 3l5-7",
	oda.ClassFailed:  "M2.5 2.5l7 7M9.5 2.5l-7 7",
	oda.ClassStopped: "M2.5 2.5h7v7h-7z",
}

// meant is the class of a status, if its words do not say it.
func meant(status string, class oda.Class) string {
	if name := class.String(); name != oda.FoldStatus(status) {
		return name
	}
	return ""
}

// statusView is what has been said of an entity. It is a part of its page, and renews
// itself.
type statusView struct {
	frame
	oda.Ref
	Now     *oda.Status
	Past    bool    // the page shows an older state, but the status is that of today
	Entries []entry // newest first
	From    string  // the address of this part by itself
	Newest  string  // addresses of other pages of entries, empty if there are none
	Older   string
	Late    bool // one of the entries came late

	Progress *progressView // of a Project as it is now
}

// entry is a status in the table.
type entry struct {
	oda.Status
	Counts  bool // it is the current one
	Delayed bool // it was said well after its time
}

// Ended reports whether it is the status of a block that has ended.
func (v *statusView) Ended() bool { return v.Kind == oda.ExecutionBlock && v.Now.Class.Ended() }

// Runs reports whether it is the status of a block that is running.
func (v *statusView) Runs() bool {
	return v.Kind == oda.ExecutionBlock && v.Now.Class == oda.ClassRunning
}

// Follows is the entity whose changes matter to the part. The progress of a Project
// depends on many.
func (v *statusView) Follows() string {
	if v.Progress != nil {
		return ""
	}
	return v.ID
}

// Standing is the current status as searches have it.
func (v *statusView) Standing() oda.Standing {
	return oda.Standing{Text: v.Now.Text, Class: v.Now.Class}
}

// Bounds of the table of statuses.
const (
	shownStatuses = 10
	delay         = oda.Instant(time.Minute / time.Microsecond) // with which a status is told late
)

// status reads what has been said of an entity. The parameters name the page of entries,
// and the older state that the page shows, if it does.
func (s *Site) status(ctx context.Context, f frame, ref oda.Ref, params url.Values, past bool) (*statusView, error) {
	kept := url.Values{"statuses": params["statuses"]}
	if past {
		kept["version"], kept["at"] = params["version"], params["at"]
	}
	kept = withoutEmpty(kept)
	view := &statusView{frame: f, Ref: ref, Past: past, From: ref.ID + "/status" + question(kept)}
	before, err := beforeStatus(kept)
	if err != nil {
		return nil, err
	}
	if view.Now, err = s.cfg.Archive.Status(ctx, ref); err != nil {
		return nil, err
	}
	page, err := s.cfg.Archive.Statuses(ctx, ref, before, shownStatuses)
	if err != nil {
		return nil, err
	}
	for _, said := range page.Statuses {
		view.Entries = append(view.Entries, entry{said, said.Sequence == view.Now.Sequence, said.On-said.At >= delay})
		view.Late = view.Late || !said.Current
	}
	if ref.Kind == oda.Project && !past {
		if view.Progress, err = s.progress(ctx, f, ref.ID); err != nil {
			return nil, err
		}
	}
	to := func(kept url.Values) string { return ref.ID + question(kept) + "#statuses" }
	if before > 0 {
		view.Newest = to(without(kept, "statuses", ""))
	}
	if page.Next != "" {
		last := page.Statuses[len(page.Statuses)-1].Sequence
		view.Older = to(with(kept, "statuses", strconv.FormatInt(last, 10)))
	}
	return view, nil
}

// beforeStatus is the entry that an address names: the table has those before it.
func beforeStatus(params url.Values) (int64, error) {
	text := params.Get("statuses")
	if text == "" {
		return 0, nil
	}
	before, err := strconv.ParseInt(text, 10, 64)
	if err != nil || before < 1 {
		return 0, oda.Errorf(oda.InvalidQuery, "The parameter statuses must be the number of an entry, a whole number from 1, before which the table begins.")
	}
	return before, nil
}

// statusPart serves what has been said of an entity by itself, for its page.
func (s *Site) statusPart(w http.ResponseWriter, r *http.Request, kind oda.Kind) error {
	ref, params := oda.Ref{Kind: kind, ID: r.PathValue("id")}, r.URL.Query()
	f := s.newFrame(r, "", "")
	f.Root = entityRoot // for the page that takes it over
	view, err := s.status(r.Context(), f, ref, params, params.Has("version") || params.Has("at"))
	if err != nil {
		return err
	}
	text, err := s.renderPart("status", view)
	if err != nil {
		return err
	}
	newFile(htmlType, text).serve(w, r, privateCache, pagePolicy)
	return nil
}
