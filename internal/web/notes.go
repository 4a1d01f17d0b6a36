package web

import (
	"context"
	"html/template"
	"net/url"
	"strconv"
	"time"

	"oda"
	"oda/internal/rawjson"
	"oda/search"
)

// noteRow is a note on a page.
type noteRow struct {
	oda.Found
	Href      string
	When      string // it is about, in the zone of the page
	Text      template.HTML
	Lost      string // empty if no time was lost
	Subjects  []noteSubject
	More      int  // subjects
	Cut       bool // there is more of the text
	Addresses []string
}

// noteSubject is what a note is about.
type noteSubject struct{ Name, Href string }

// Bounds of what is shown of notes.
const (
	shownNotes    = 20 // on the page of what they are about
	shownSubjects = 3
)

// noteRows prepares notes for a page, with times in a zone and with dates if they are needed.
func (f frame) noteRows(notes []oda.Found, zone *time.Location, dated bool) []noteRow {
	rows := make([]noteRow, 0, len(notes))
	for _, one := range notes {
		row := f.newNoteRow(one, zone, dated)
		row.Text, row.Cut = showMarkdown(one.Summary.Remark.Text), len([]rune(one.Summary.Remark.Text)) == oda.MaxRemark
		rows = append(rows, row)
	}
	return rows
}

// newNoteRow prepares a note without its text.
func (f frame) newNoteRow(note oda.Found, zone *time.Location, dated bool) noteRow {
	remark := note.Summary.Remark
	row := noteRow{Found: note, Href: f.EntityHref(note.Ref), When: during(remark, note.Metadata.CreatedOn, zone, dated)}
	if remark.Lost > 0 {
		row.Lost = showElapsed(remark.Lost) + " lost to " + map[oda.Loss]string{
			oda.LostToWeather: "the weather", oda.LostToFault: "a fault", oda.LostToOther: "something else",
		}[remark.LostTo]
	}
	for _, r := range note.Summary.References[:min(len(note.Summary.References), shownSubjects)] {
		row.Subjects = append(row.Subjects, noteSubject{r.ID, f.ReferenceHref(r)})
	}
	row.More = len(note.Summary.References) - len(row.Subjects)
	return row
}

// during writes when a note is about.
func during(remark *oda.Remark, created oda.Instant, zone *time.Location, dated bool) string {
	from, to := remark.Interval(created)
	begin, end := from.Time().In(zone), to.Time().In(zone)
	layout := "15:04"
	if dated {
		layout = "2006-01-02 15:04"
	}
	text := begin.Format(layout)
	switch {
	case to == from:
	case begin.Format(time.DateOnly) == end.Format(time.DateOnly) || !dated:
		text += "–" + end.Format("15:04")
	default:
		text += " – " + end.Format(layout)
	}
	return text
}

// notesAbout finds the newest notes about an entity, those that were withdrawn too, and
// returns the address of all if there are more, or one is damaged: their list says so.
func (s *Site) notesAbout(ctx context.Context, f frame, ref oda.Ref) (rows []noteRow, all string, err error) {
	asked := search.Search{Kind: oda.Note, About: ref.ID, Withdrawn: true, Limit: shownNotes}
	page, err := s.cfg.Searcher.Search(ctx, asked)
	if err != nil && s.passable(page, err) == "" {
		return nil, "", err
	}
	var about []oda.Found
	for items := page.Items; len(items) > 0; {
		for _, one := range items {
			for _, r := range one.Summary.References {
				if r.Kind == ref.Kind && r.ID == ref.ID {
					about = append(about, one)
					break
				}
			}
		}
		if items, err = page.More(ctx); err != nil {
			return nil, "", err
		}
	}
	if page.Next != "" {
		asked.Limit = 0
		all = f.Root + listHref(asked)
	}
	return f.noteRows(about, time.UTC, true), all, nil
}

// note prepares a note for its own page, with all of its text and the calls that it is about.
func (f frame) note(self *oda.Found, e *oda.Entity) (*noteRow, error) {
	document, err := e.WithoutRecords()
	if err != nil {
		return nil, err
	}
	_, about, text := oda.ReadNote(document)
	row := f.newNoteRow(*self, time.UTC, true)
	row.Text, row.Subjects, row.More = showMarkdown(text), nil, 0
	for _, r := range about {
		subject := noteSubject{r.ID, f.ReferenceHref(r.Reference)}
		if r.Sequence > 0 && r.Kind == oda.ExecutionBlock && oda.ValidID(r.ID) {
			sequence := strconv.FormatInt(r.Sequence, 10)
			subject.Name += " #" + sequence
			subject.Href = f.EntityHref(oda.Ref{Kind: r.Kind, ID: r.ID}) + question(url.Values{"call": {sequence}}) + "#timeline"
		}
		row.Subjects = append(row.Subjects, subject)
	}
	for key, value := range rawjson.Members(document) {
		if string(key) != "urls" {
			continue
		}
		for one := range rawjson.Elements(value) {
			if address := rawjson.Unquote(one); mayLead(address) {
				row.Addresses = append(row.Addresses, address)
			}
		}
	}
	return &row, nil
}
