package suite

import (
	"fmt"
	"strings"
	"testing"

	"oda"
	"oda/archive"
	"oda/internal/test/must"
	"oda/summary"
)

var moving = []scenario{
	{"an empty archive has no entries", func(_ *testing.T, d *desk) {
		d.entered(d.entries(0, everyRef))
	}},
	{"an entry for each version and each record, in the order of the log", func(_ *testing.T, d *desk) {
		d.fill()
		d.entered(d.entries(d.end(), everyRef),
			"ebs/a v1 by anna, created by anna with key k, list [{1 2}] +2", "sbds/a v1 by anna, created by anna",
			"ebs/a v1 record 3 by bert with key r", "ebs/a v1 record 4 by anna", "sbds/a v2 by bert, created by anna",
			"ebs/a v2 by anna, created by anna, list [{2 2} {5 5}] +1", "ebs/a v2 record 6 by anna", "ebs/b v1 by anna, created by anna",
			"ebs/a v1 status 1 Running by bert with key s", "ebs/a v2 status 2 Ready by anna", "sbds/a v2 status 1 Done by anna")
	}},
	{"entries end at a position, whatever comes later, and are those of wanted entities", func(t *testing.T, d *desk) {
		d.mustPut(sbd("x"), `{}`)
		first := d.end()
		d.fill()
		until := d.end()
		before := d.entries(until, everyRef)
		d.mustUpdate(sbd("a"), `"n":3`)
		d.mustRecord("a", record(7))
		same(t, "the entries", d.entries(until, everyRef), before)
		d.entered(d.entries(first, everyRef), "sbds/x v1 by anna, created by anna")
		d.entered(d.entries(d.end(), func(ref oda.Ref) bool { return ref == sbd("a") }),
			"sbds/a v1 by anna, created by anna", "sbds/a v2 by bert, created by anna", "sbds/a v2 status 1 Done by anna", "sbds/a v3 by anna, created by anna")
	}},
	{"entries of long documents, and all but some of them", func(t *testing.T, d *desk) {
		d.mustPut(eb("a"), `{}`)
		var want []string
		for i := range 7 { // more than is read at once
			d.mustPut(sbd(fmt.Sprint(i)), fmt.Sprintf(`{"n":%d,"long":"%s"}`, i, strings.Repeat("x", 1<<20)))
			d.mustRecord("a", record(i))
			if i != 3 {
				want = append(want, fmt.Sprintf("sbds/%d v1 by anna, created by anna", i))
			}
		}
		entries := d.entries(d.end(), func(ref oda.Ref) bool { return ref.Kind == oda.SBDefinition && ref != sbd("3") })
		d.entered(entries, want...)
		for _, e := range entries {
			if err := e.Check(); err != nil || !strings.Contains(string(e.Body.Text), fmt.Sprintf(`"n":%s,`, e.ID)) {
				t.Errorf("%s begins with %.30q; its check: %v", e.ID, e.Body.Text, err)
			}
		}
	}},
	{"what is loaded is the same archive, and goes on", func(t *testing.T, d *desk) {
		d.fill()
		entries := d.entries(d.end(), everyRef)
		for _, atOnce := range []int{1, 3, len(entries)} {
			other := d.fresh()
			for from := 0; from < len(entries); from += atOnce {
				other.loaded(entries[from:min(from+atOnce, len(entries))])
			}
			same(t, "the entries", other.entries(other.end(), everyRef), entries)
			same(t, "the end", other.end(), d.end())
			same(t, "the changes", other.allChanges(), d.allChanges())
			same(t, "the counts", other.counts(), d.counts())
			for _, ref := range []oda.Ref{eb("a"), sbd("a"), eb("b")} {
				same(t, "the document", other.text(ref), d.text(ref))
				same(t, "what was said", other.statuses(ref), d.statuses(ref))
				same(t, "what search sees", *other.look(ref), *d.look(ref))
				other.mustBeCatalogued(ref)
			}
			same(t, "an earlier state", Render(t, other.mustVersion(eb("a"), 1)), Render(t, d.mustVersion(eb("a"), 1)))

			present := make([]string, len(entries))
			for i := range present {
				present[i] = oda.ErrPresent.Error()
			}
			other.loaded(entries, present...)
			same(t, "the end after it was loaded again", other.end(), d.end())

			same(t, "what a known key has created", other.mustCreate(eb("new"), "k", filled).Ref, eb("a"))
			receipt := must.Get(other.one(other.adding("a", other.keyed("r", record(3)))))(t)
			same(t, "the record of a known key", receipt.Sequence, int64(3))
			same(t, "the status of a known key", other.mustSay(other.keyedSaying()), d.statuses(eb("a"))[1])
			same(t, "the next status", other.mustSay(other.saying(eb("a"), "Done")).Sequence, int64(3))
			same(t, "the next record", other.mustRecord("a", record(7)).Sequence, int64(7))
			same(t, "the next version", other.mustUpdate(sbd("a"), `"n":3`).Metadata.Version, int64(3))
			same(t, "the end after more was stored", other.end(), d.end()+3)
		}
	}},
	{"what does not follow is refused, and the rest is stored", func(t *testing.T, d *desk) {
		d.fill()
		entries := d.entries(d.end(), everyRef)
		changed := func(at int, change func(*oda.LogEntry)) oda.LogEntry {
			e := entries[at]
			change(&e)
			return e
		}
		other := d.fresh()
		other.loaded(entries[:3])
		other.loaded([]oda.LogEntry{
			changed(1, func(e *oda.LogEntry) { e.On++ }), changed(1, func(e *oda.LogEntry) { e.By, e.CreatedBy = "eve", "eve" }), entries[6], entries[5],
			changed(3, func(e *oda.LogEntry) { e.On = entries[2].On }), changed(3, func(e *oda.LogEntry) { e.Key = "r" }),
			changed(4, func(e *oda.LogEntry) { e.CreatedBy = "eve" }), changed(7, func(e *oda.LogEntry) { e.CreateKey = entries[0].CreateKey }),
			entries[3], entries[4],
		},
			`the archive has another version 1, by "anna"`, `but the archive says by "anna"`, "it was recorded into version 2, but the archive has version 1", "4 records came before it, but the archive has 3",
			"which is not after what precedes it", "key", `it was created by "eve"`, "key", "", "")
		other.loaded(entries[5:])
		same(t, "the entries", other.entries(other.end(), everyRef), entries)
	}},
	{"statuses that do not follow are refused, and which are current is worked out", func(t *testing.T, d *desk) {
		d.mustPut(eb("a"), `{"status":"Ready"}`)
		d.mustSay(d.keyedSaying())
		d.mustSay(d.saying(eb("a"), "Done"))
		d.mustUpdate(eb("a"), `"status":"Failed"`)
		late := d.saying(eb("a"), "Created")
		late.At = new(oda.Instant(1))
		d.mustSay(late)
		entries := d.entries(d.end(), everyRef)
		changed := func(at int, change func(*oda.LogEntry)) oda.LogEntry {
			e, said := entries[at], *entries[at].Said
			e.Said = &said
			change(&e)
			said.Ref, said.Version, said.By = e.Ref, e.Version, e.By
			return e
		}
		wrong := func(at int) oda.LogEntry {
			return changed(at, func(e *oda.LogEntry) { e.Said.Current = !e.Said.Current })
		}
		other := d.fresh()
		other.loaded([]oda.LogEntry{
			entries[0], changed(1, func(e *oda.LogEntry) { e.ID = "b" }), entries[2], changed(1, func(e *oda.LogEntry) { e.Version = 2 }), wrong(1), entries[1],
			changed(1, func(e *oda.LogEntry) { e.By = "eve" }), changed(1, func(e *oda.LogEntry) { e.Said.Text = "running" }), changed(1, func(e *oda.LogEntry) { e.Said.At-- }),
			changed(2, func(e *oda.LogEntry) { e.Key = "s" }), wrong(2), entries[4], entries[3], wrong(4),
		},
			"", "version 1 is not stored, so nothing can be said", "status 1 is not stored, so status 2 cannot follow", "version 2 is not stored", "", oda.ErrPresent.Error(),
			`another status 1, by "anna"`, "another status 1", "another status 1",
			"its key was used", "", "version 2 is not stored", "", "")
		same(t, "the entries", other.entries(other.end(), everyRef), entries)
		same(t, "the changes", other.allChanges(), d.allChanges())
		same(t, "what search sees", *other.look(eb("a")), *d.look(eb("a")))
		same(t, "the status", other.status(eb("a")).Text, "Done")
	}},
}

// filled is a block that comes with two records.
var filled = `{"n":1,` + listing(record(1), record(2)) + `}`

// fill stores something of everyRef that an entry may have.
func (d *desk) fill() {
	d.tb.Helper()
	d.mustCreate(eb("a"), "k", filled)
	d.mustPut(sbd("a"), ` {"telescope":"ska_mid"}`)
	if _, err := d.one(d.as("bert").adding("a", d.keyed("r", record(3)))); err != nil {
		d.tb.Fatalf("record with a key: %v", err)
	}
	d.mustRecord("a", record(4))
	d.as("bert").mustUpdate(sbd("a"), `"n":2`)
	d.mustUpdate(eb("a"), listing(record(2), record(5)))
	d.mustRecord("a", record(6))
	d.mustPut(eb("b"), `{}`)
	d.as("bert").mustSay(d.as("bert").keyedSaying())
	late := d.saying(eb("a"), "Ready")
	late.At = new(oda.Instant(1))
	d.mustSay(late)
	d.mustSay(d.saying(sbd("a"), "Done"))
}

// keyedSaying returns what is said with a key of block a.
func (d *desk) keyedSaying() oda.NewStatus {
	say := d.saying(eb("a"), "Running")
	say.Version, say.Key = 1, &oda.Key{Value: "s"}
	return say
}

// everyRef wants every entity.
func everyRef(oda.Ref) bool { return true }

// entries returns the entries of the log up to a position.
func (d *desk) entries(until oda.Position, wanted func(oda.Ref) bool) (entries []oda.LogEntry) {
	d.tb.Helper()
	err := d.engine.Entries(d.ctx, until, wanted, func(e *oda.LogEntry) error {
		entries = append(entries, *e)
		return nil
	})
	if err != nil {
		d.tb.Fatalf("entries up to %d: %v", until, err)
	}
	return entries
}

// entered checks what entries are about.
func (d *desk) entered(entries []oda.LogEntry, want ...string) {
	d.tb.Helper()
	var told []string
	for i := range entries {
		e := &entries[i]
		text := fmt.Sprintf("%s/%s v%d", e.Kind.Collection(), e.ID, e.Version)
		if e.Recorded() {
			text += fmt.Sprintf(" record %d", e.Sequence)
		}
		if e.Said != nil {
			text += fmt.Sprintf(" status %d %s", e.Sequence, e.Said.Text)
		}
		text += " by " + e.By
		if e.Key != "" {
			text += " with key " + e.Key
		}
		if e.Stored() {
			text += ", created by " + e.CreatedBy
		}
		if e.CreateKey != nil {
			text += " with key " + e.CreateKey.Value
		}
		if e.Runs != nil {
			text += fmt.Sprintf(", list %v +%d", e.Runs, len(e.Came))
		}
		told = append(told, text)
	}
	same(d.tb, "the entries", told, want)
}

// loaded loads entries, and checks why some are not added; without reasons, all must be.
func (d *desk) loaded(entries []oda.LogEntry, reasons ...string) {
	d.tb.Helper()
	prepared := make([]oda.LogEntry, len(entries))
	for i := range entries {
		prepared[i] = entries[i]
		if err := summary.Prepare(&prepared[i]); err != nil {
			d.tb.Fatalf("prepare entry %d: %v", i, err)
		}
	}
	answers, err := d.engine.Load(d.ctx, prepared)
	if err != nil {
		d.tb.Fatalf("load: %v", err)
	}
	for i, err := range answers {
		want := ""
		if reasons != nil {
			want = reasons[i]
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			d.tb.Errorf("entry %d: %v, want %q", i, err, want)
		}
	}
}

// allChanges returns the changes from the beginning.
func (d *desk) allChanges() []oda.Change {
	d.tb.Helper()
	return d.read(archive.Following{Limit: 100}).Changes
}
