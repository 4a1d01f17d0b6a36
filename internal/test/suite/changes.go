package suite

import (
	"fmt"
	"testing"

	"oda"
	"oda/archive"
	"oda/internal/test/must"
)

var changes = []scenario{
	{"an empty archive has no changes", func(t *testing.T, d *desk) {
		same(t, "the end", d.end(), oda.Position(0))
		d.changed(0, 10)
	}},
	{"a change for each version and for each run of records", func(t *testing.T, d *desk) {
		d.mustPut(eb("a"), `{}`)
		d.mustPut(sbd("a"), `{}`)
		d.as("bert").mustRecord("a", record(1))
		d.as("bert").mustRecord("a", record(2))
		d.mustRecord("a", record(3))
		d.mustUpdate(sbd("a"), "")
		d.mustRecord("a", record(4))
		d.changed(0, 10, "ebs/a v1 by anna", "sbds/a v1 by anna", "ebs/a v1 1-2 by bert", "ebs/a v1 3-3 by anna",
			"sbds/a v2 by anna", "ebs/a v1 4-4 by anna")
	}},
	{"records that came with a version belong to it", func(t *testing.T, d *desk) {
		d.mustPut(eb("a"), `{`+listing(record(1), record(2))+`}`)
		d.mustRecord("a", record(3))
		d.mustUpdate(eb("a"), listing(record(1), record(4), record(5)))
		d.mustRecord("a", record(6))
		d.changed(0, 10, "ebs/a v1 by anna", "ebs/a v1 3-3 by anna", "ebs/a v2 by anna", "ebs/a v2 6-6 by anna")
	}},
	{"a version that keeps its records stands between them", func(t *testing.T, d *desk) {
		m := d.mustPut(eb("a"), `{}`).Metadata
		d.mustRecord("a", record(1))
		must.Get(d.send(d.keep(eb("a"), document(m, `"kept":1`))))(t)
		d.mustRecord("a", record(2))
		d.changed(0, 10, "ebs/a v1 by anna", "ebs/a v1 1-1 by anna", "ebs/a v2 by anna", "ebs/a v2 2-2 by anna")
	}},
	{"a change for each status, between which records do not join", func(t *testing.T, d *desk) {
		d.mustPut(eb("a"), `{}`)
		d.mustRecord("a", record(1))
		d.mustSay(d.saying(eb("a"), "Running"))
		d.mustRecord("a", record(2))
		d.mustRecord("a", record(3))
		late, known := d.as("bert").saying(eb("a"), "Paused"), d.saying(eb("a"), "Out of Time")
		late.At = new(oda.Instant(1))
		known.Version, known.Key = 1, &oda.Key{Value: "k"}
		d.mustUpdate(eb("a"), "")
		d.mustSay(late)
		for range 2 {
			d.mustSay(known)
		}
		d.mustSay(d.saying(eb("a"), "Running"))
		all := d.changed(0, 10, "ebs/a v1 by anna", "ebs/a v1 1-1 by anna", "ebs/a v1 status 1 Running (running, current) by anna", "ebs/a v1 2-3 by anna",
			"ebs/a v2 by anna", "ebs/a v2 status 2 Paused () by bert", "ebs/a v1 status 3 Out of Time (stopped, current) by anna",
			"ebs/a v2 status 4 Running (running, current) by anna")
		same(t, "the end", d.end(), oda.Position(9)) // no position is without a change
		same(t, "the times of the late one", []oda.Instant{all[5].Said.At, all[5].On}, []oda.Instant{1, late.Now})
		for i, c := range all {
			d.changed(c.Position, 10, tellAll(all[i+1:])...)
		}
		d.paged(2, 1, oda.ChangeFilter{IDs: []string{"a"}}, 3, "ebs/a v1 status 1 Running (running, current) by anna")
	}},
	{"what was refused or sent again is no change", func(t *testing.T, d *desk) {
		d.mustPut(eb("a"), `{}`)
		if _, err := d.put(eb("a"), `{}`); err == nil {
			t.Fatal("an update without metadata was taken")
		}
		for range 2 {
			must.Get(d.one(d.adding("a", d.keyed("k", record(1)))))(t)
		}
		d.mustRecord("a", record(2))
		d.changed(0, 10, "ebs/a v1 by anna", "ebs/a v1 1-2 by anna")
	}},
	{"a follower goes on at any position", func(t *testing.T, d *desk) {
		d.mustPut(eb("a"), `{}`)
		for i := range 5 {
			d.mustRecord("a", record(i))
		}
		d.mustPut(eb("b"), `{`+listing(record(1), record(2))+`}`)
		whole := d.changed(0, 10, "ebs/a v1 by anna", "ebs/a v1 1-5 by anna", "ebs/b v1 by anna")
		d.changed(whole[1].Position-2, 10, "ebs/a v1 4-5 by anna", "ebs/b v1 by anna")
		d.changed(whole[1].Position, 10, "ebs/b v1 by anna")
		d.changed(whole[2].Position-1, 10, "ebs/b v1 by anna")
		d.changed(whole[2].Position, 10)
		same(t, "the end", d.end(), whole[2].Position)
	}},
	{"no more changes than asked for", func(t *testing.T, d *desk) {
		for _, id := range []string{"a", "b", "c"} {
			d.mustPut(sbd(id), `{}`)
		}
		first := d.changed(0, 2, "sbds/a v1 by anna", "sbds/b v1 by anna")
		d.changed(first[1].Position, 2, "sbds/c v1 by anna")
	}},
	{"filters leave out changes, and go past them", func(t *testing.T, d *desk) {
		d.mustPut(eb("a"), `{}`)
		d.mustPut(eb("b"), `{}`)
		d.mustPut(sbd("a"), `{}`)
		for i := range 3 {
			d.mustRecord("a", record(i))
			d.mustRecord("b", record(i))
		}
		all := oda.ChangeFilter{}
		blocks := oda.ChangeFilter{Kinds: []oda.Kind{oda.ExecutionBlock}}
		d.paged(0, 2, all, 2, "ebs/a v1 by anna", "ebs/b v1 by anna")
		d.paged(0, 4, blocks, 5, "ebs/a v1 by anna", "ebs/b v1 by anna", "ebs/a v1 1-1 by anna", "ebs/b v1 1-1 by anna")
		d.paged(2, 2, blocks, 5, "ebs/a v1 1-1 by anna", "ebs/b v1 1-1 by anna")
		d.paged(0, 10, oda.ChangeFilter{IDs: []string{"a"}}, 9, "ebs/a v1 by anna", "sbds/a v1 by anna",
			"ebs/a v1 1-1 by anna", "ebs/a v1 2-2 by anna", "ebs/a v1 3-3 by anna")
		d.paged(4, 10, oda.ChangeFilter{Kinds: blocks.Kinds, IDs: []string{"a", "x"}}, 9, "ebs/a v1 2-2 by anna", "ebs/a v1 3-3 by anna")
		d.paged(0, 10, oda.ChangeFilter{Kinds: []oda.Kind{oda.Project, oda.SBDefinition}}, 9, "sbds/a v1 by anna")
		d.paged(0, 10, oda.ChangeFilter{IDs: []string{"x"}}, 9)
	}},
	{"a position that the log does not reach is refused", func(t *testing.T, d *desk) {
		d.mustPut(sbd("a"), `{}`)
		_, err := d.store.Changes(d.ctx, archive.Following{After: d.end() + 1, Limit: 10})
		refused(t, err, oda.UnknownPosition)
		page, err := d.store.Changes(d.ctx, archive.Following{Now: true, Limit: 10})
		if err != nil || page.Next != d.end() || len(page.Changes) != 0 {
			t.Errorf("from now on there is %+v, %v", page, err)
		}
	}},
}

// changesInside need an engine itself.
var changesInside = []scenario{
	{"the newest changes come first, page by page", func(_ *testing.T, d *desk) {
		d.mustPut(eb("a"), `{`+listing(record(1), record(2))+`}`)
		d.mustPut(eb("b"), `{}`)
		for i := range 3 { // side by side
			d.mustRecord("a", record(i))
			d.mustRecord("b", record(i))
		}
		d.as("bert").mustRecord("b", record(4))
		d.mustPut(sbd("a"), `{}`)
		stored := func(c *oda.Change) bool { return c.Stored() }
		d.recent(0, 10, nil, 0, "sbds/a v1 by anna", "ebs/b v1 4-4 by bert", "ebs/b v1 1-3 by anna", "ebs/a v1 3-5 by anna", "ebs/b v1 by anna", "ebs/a v1 by anna")
		end := d.end()
		d.recent(0, 2, nil, end-1, "sbds/a v1 by anna", "ebs/b v1 4-4 by bert")
		d.recent(end-1, 1, nil, end-2, "ebs/b v1 3-3 by anna") // what lies before needs another row
		d.recent(end-1, 2, nil, end-7, "ebs/b v1 1-3 by anna", "ebs/a v1 3-5 by anna")
		d.recent(end-7, 2, nil, 0, "ebs/b v1 by anna", "ebs/a v1 by anna")
		d.recent(0, 2, stored, end-8, "sbds/a v1 by anna", "ebs/b v1 by anna")
		d.recent(1, 2, nil, 0)
	}},
	{"statuses are changes of their own in reverse too", func(_ *testing.T, d *desk) {
		d.mustPut(eb("a"), `{}`)
		d.mustSay(d.saying(eb("a"), "Running"))
		d.mustRecord("a", record(1))
		d.mustSay(d.saying(eb("a"), "Failed"))
		d.mustRecord("a", record(2))
		d.mustSay(d.saying(eb("a"), "Done"))
		d.recent(0, 10, nil, 0, "ebs/a v1 status 3 Done (done, current) by anna", "ebs/a v1 1-2 by anna",
			"ebs/a v1 status 2 Failed (failed, current) by anna", "ebs/a v1 status 1 Running (running, current) by anna", "ebs/a v1 by anna")
		d.recent(0, 1, nil, 6, "ebs/a v1 status 3 Done (done, current) by anna")
		d.recent(3, 1, nil, 2, "ebs/a v1 status 1 Running (running, current) by anna")
	}},
	{"many records are read in reverse in several parts", func(t *testing.T, d *desk) {
		d.mustPut(eb("a"), `{}`)
		for range 3 {
			batch := make([]oda.NewRecord, 200)
			for i := range batch {
				batch[i].Text = []byte(record(i))
			}
			must.Get(d.store.Append(d.ctx, d.adding("a", batch...)))(t)
		}
		d.recent(0, 10, nil, 0, "ebs/a v1 1-600 by anna", "ebs/a v1 by anna")
		d.recent(400, 10, nil, 0, "ebs/a v1 1-398 by anna", "ebs/a v1 by anna")
	}},
	{"somebody who waits is told of a change", func(t *testing.T, d *desk) {
		log := d.engine
		d.mustPut(sbd("a"), `{}`)
		end := d.end()
		told := make(chan error, 1)
		go func() { told <- log.Await(t.Context(), end) }()
		d.mustPut(sbd("b"), `{}`)
		must.Do(t, <-told)
		d.changed(end, 10, "sbds/b v1 by anna")
		if err := log.Await(t.Context(), 0); err != nil {
			t.Errorf("what is there already was waited for: %v", err)
		}
	}},
	{"the end of the engine ends the waiting", func(t *testing.T, d *desk) {
		log := d.engine
		told := make(chan error, 1)
		go func() { told <- log.Await(t.Context(), 0) }()
		must.Do(t, d.engine.Close())
		refused(t, <-told, oda.Unavailable)
	}},
}

// record returns the text of a record.
func record(n int) string { return fmt.Sprintf(`{"request":"call %d"}`, n) }

func (d *desk) end() oda.Position {
	d.tb.Helper()
	page, err := d.store.Changes(d.ctx, archive.Following{Now: true})
	if err != nil {
		d.tb.Fatalf("the end of the log: %v", err)
	}
	return page.Next
}

// changed checks which changes there are after a position, and returns them.
func (d *desk) changed(after oda.Position, limit int, want ...string) []oda.Change {
	d.tb.Helper()
	page := d.read(archive.Following{After: after, Limit: limit})
	for _, c := range page.Changes {
		if c.Position <= after || c.Position > page.Next {
			d.tb.Fatalf("a change at %d, between %d and %d", c.Position, after, page.Next)
		}
		after = c.Position
	}
	same(d.tb, "the changes", tellAll(page.Changes), want)
	return page.Changes
}

// paged checks a page of the changes that a filter leaves, and where the next one
// begins: positions count from 1 here, since every change is one version or one
// record.
func (d *desk) paged(after oda.Position, limit int, filter oda.ChangeFilter, next oda.Position, want ...string) {
	d.tb.Helper()
	page := d.read(archive.Following{After: after, Limit: limit, Filter: filter})
	same(d.tb, "the changes", tellAll(page.Changes), want)
	same(d.tb, "where the next page begins", page.Next, next)
}

// read reads a page of the changes.
func (d *desk) read(f archive.Following) oda.ChangePage {
	d.tb.Helper()
	page, err := d.store.Changes(d.ctx, f)
	if err != nil {
		d.tb.Fatalf("changes after %d: %v", f.After, err)
	}
	return page
}

// recent checks a page of the changes in reverse, and before which position the next
// one begins.
func (d *desk) recent(before oda.Position, limit int, wants func(*oda.Change) bool, next oda.Position, want ...string) {
	d.tb.Helper()
	page, err := archive.New(d.engine, nil).Recent(d.ctx, archive.RecentQuery{Before: before, Limit: limit, Wants: wants})
	if err != nil {
		d.tb.Fatalf("changes before %d: %v", before, err)
	}
	same(d.tb, "the newest changes", tellAll(page.Changes), want)
	same(d.tb, "before what the next page begins", page.Next, next)
	same(d.tb, "the end", page.End, d.end())
}

// tell writes a change in a few words.
func tell(c oda.Change) string {
	text := fmt.Sprintf("%s/%s v%d ", c.Kind.Collection(), c.ID, c.Version)
	if c.Recorded() {
		text += fmt.Sprintf("%d-%d ", c.FirstSequence, c.LastSequence)
	}
	if s := c.Said; s != nil {
		about := s.Class.String()
		if s.Current {
			about += ", current"
		}
		text += fmt.Sprintf("status %d %s (%s) ", s.Sequence, s.Text, about)
	}
	return text + "by " + c.By
}

func tellAll(changes []oda.Change) (told []string) {
	for _, c := range changes {
		told = append(told, tell(c))
	}
	return told
}
