package suite

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"oda"
	"oda/archive"
	"oda/internal/test/must"
	"oda/provenance"
)

func note(id string) oda.Ref { return oda.Ref{Kind: oda.Note, ID: id} }

// said gives what a search tells of a note, on one line.
func said(f *oda.Found) string {
	r := f.Summary.Remark
	from, to := r.Interval(f.Metadata.CreatedOn)
	line := fmt.Sprintf("%s %q %s by %s %d-%d", f.ID, f.Summary.Name, r.Level, f.Metadata.CreatedBy, from/1_000_000, to/1_000_000)
	if r.Lost > 0 {
		line += fmt.Sprintf(" lost %g to %s", r.Lost.Seconds(), r.LostTo)
	}
	if len(r.Tags) > 0 {
		line += " #" + strings.Join(r.Tags, " #")
	}
	if r.Withdrawn {
		line += " withdrawn"
	}
	if f.Unresolved() {
		line += " unresolved"
	}
	return line
}

// tells gives what a search tells of the notes that it finds.
func (d *desk) tells(raw string) []string {
	d.tb.Helper()
	lines := []string{}
	for _, f := range d.find(oda.Note, raw, func() {}) {
		lines = append(lines, said(&f))
	}
	return lines
}

var notes = []scenario{
	{"of a long text the first 2,000 characters are told, and all words are found", func(t *testing.T, d *desk) {
		d.mustPut(note("long"), `{"text":"`+strings.Repeat("ü", 130)+`\n`+strings.Repeat("é ", 5000)+`last"}`)
		f := d.find(oda.Note, "q=last", func() {})[0]
		same(t, "its characters", len([]rune(f.Summary.Remark.Text)), oda.MaxRemark)
		same(t, "its name", f.Summary.Name, strings.Repeat("ü", 120))
	}},
	{"notes are found by what only they have", func(t *testing.T, d *desk) {
		d.clock.Set(0, 0)
		d.mustPut(note("a"), `{"text":"Wind","tags":["weather","Mast 3"],"about":[{"kind":"ebs","id":"eb-1"},{"kind":"notes","id":"b"}]}`)
		d.mustPut(note("b"), `{"text":"no wind","level":"warning","about":[{"kind":"ebs","id":"EB-1","version":3}]}`)
		d.mustPut(note("c"), `{"text":"gone","level":"problem","withdrawn":true,"tags":["weather"]}`)
		d.mustPut(note("d"), `{"text":"broken","level":"problem","name":"spectrometer"}`)
		for raw, want := range map[string][]string{
			"sort=id":                              {"a", "b", "d"},
			"sort=id&withdrawn=true":               {"a", "b", "c", "d"},
			"sort=id&level=problem":                {"d"},
			"sort=id&level=problem&withdrawn=true": {"c", "d"},
			"sort=id&level=info":                   {"a"},
			"sort=id&tag=weather":                  {"a"},
			"sort=id&tag=Mast 3":                   {"a"},
			"sort=id&tag=mast 3":                   {},
			"sort=id&about=eb-1":                   {"a"},
			"sort=id&ref=eb-1":                     {"a"},
			"sort=id&about=EB-1":                   {"b"},
			"sort=id&ref=EB-1&ref_version=3":       {"b"},
			"sort=id&about=b":                      {"a"},
			"sort=id&about=b&ref=eb-1":             {"a"},
			"sort=id&about=b&ref=EB-1":             {},
			"sort=id&q=wind":                       {"a", "b"},
			"sort=id&q=mast":                       {"a"},
			"sort=id&q=spectro":                    {"d"},
			"sort=id&tag=weather&level=warning":    {},
		} {
			same(t, raw, d.found(oda.Note, raw), want)
		}
	}},
	{"a problem is unresolved until its status is of class done", func(t *testing.T, d *desk) {
		unresolved := func() bool { return d.find(oda.Note, "withdrawn=true", func() {})[0].Unresolved() }
		d.mustPut(note("n"), `{"text":"x","level":"problem"}`)
		same(t, "at first", unresolved(), true)
		d.mustSay(d.saying(note("n"), "In progress"))
		same(t, "in progress", unresolved(), true)
		d.mustSay(d.saying(note("n"), "Resolved"))
		same(t, "resolved", unresolved(), false)
		d.mustUpdate(note("n"), `"text":"x","level":"problem"`)
		same(t, "a new version", unresolved(), false)
		d.mustSay(d.saying(note("n"), "Reopened"))
		same(t, "reopened", unresolved(), true)
		d.mustUpdate(note("n"), `"text":"x","level":"problem","withdrawn":true`)
		same(t, "withdrawn", unresolved(), false)
	}},
	{"provenance reaches notes, and goes on from them only where it begins", func(t *testing.T, d *desk) {
		d.mustPut(eb("e"), `{"sbd_ref":"s"}`)
		d.mustPut(sbd("s"), `{}`)
		d.mustPut(sbd("stranger"), `{}`)
		d.mustPut(note("other"), `{"text":"other","about":[{"kind":"ebs","id":"e","version":1},{"kind":"sbds","id":"stranger"}]}`)
		d.mustPut(note("one"), `{"text":"one","about":[{"kind":"ebs","id":"e"},{"kind":"sbds","id":"stranger"}]}`)
		d.mustPut(note("reply"), `{"text":"reply","about":[{"kind":"notes","id":"one"}]}`)
		p := d.provenance(sbd("s"))
		same(t, "the nodes from the SBDefinition", refs(p.Nodes), []oda.Ref{sbd("s"), eb("e"), note("one"), note("other")})
		same(t, "the edges", p.Edges, []provenance.Edge{
			{From: eb("e"), To: sbd("s"), Field: "sbd_ref"},
			{From: note("one"), To: eb("e"), Field: "about/0"},
			{From: note("other"), To: eb("e"), Version: 1, Field: "about/0"},
		})
		same(t, "whether it is truncated", p.Truncated, false)
		same(t, "the nodes from the note", refs(d.provenance(note("one")).Nodes), []oda.Ref{note("one"), sbd("stranger"), eb("e"), note("reply"), sbd("s"), note("other")})
	}},
	{"provenance reaches a hundred notes", func(t *testing.T, d *desk) {
		d.mustPut(sbd("s"), `{}`)
		var puts []writing
		for i := range 101 {
			puts = append(puts, d.write(note(fmt.Sprintf("n%03d", i)), `{"text":"x","about":[{"kind":"sbds","id":"s"}]}`))
		}
		must.Get(d.store.Put(d.ctx, puts[:100]))(t)
		same(t, "with a hundred, whether it is truncated", d.provenance(sbd("s")).Truncated, false)
		must.Get(d.store.Put(d.ctx, puts[100:]))(t)
		p := d.provenance(sbd("s"))
		same(t, "the nodes", len(p.Nodes), 101)
		same(t, "with more, whether it is truncated", p.Truncated, true)
	}},
}

// notesInside need the engine itself or a clock of the test.
var notesInside = []scenario{
	{"a note is read as it says, and what it leaves out as the specification says", func(t *testing.T, d *desk) {
		d.clock.Set(1_000_000_000, 0)
		d.mustPut(note("plain"), `{"text":"\n  Wind \t\n, stopped"}`)
		d.mustPut(note("full"), `{"text":"Receptor 17 is noisy","level":"problem","telescope":"ska_mid","from":"1970-01-01T00:10:00Z","to":"1970-01-01T01:10:00+01:00",`+
			`"time_lost_s":2400.5,"time_lost_type":"weather","tags":["wind","Receptor 17"],"urls":["https://example.org/a"],"about":[{"kind":"ebs","id":"eb-1","version":2,"sequence":7}],"own":1}`)
		d.as("bert").mustPut(note("typeless"), `{"text":"x","to":"2970-01-01T00:20:00Z","time_lost_s":1,"level":null,"withdrawn":true}`)
		same(t, "the notes", d.tells("sort=id&withdrawn=true"), []string{
			`full "Receptor 17 is noisy" problem by anna 600-600 lost 2400.5 to weather #wind #Receptor 17 unresolved`,
			`plain "Wind" info by anna 1000-1000`,
			`typeless "x" info by bert 1000-31556996400 lost 1 to other withdrawn`,
		})
		full := d.find(oda.Note, "q=noisy", func() {})[0]
		same(t, "the telescope", full.Summary.Telescope, "ska_mid")
		same(t, "what it is about", full.Summary.References, []oda.Reference{{Kind: oda.ExecutionBlock, ID: "eb-1", Version: 2, Field: "about/0"}})
		if text := d.text(note("full")); !strings.Contains(text, `"own":1`) || !strings.Contains(text, `"to":"1970-01-01T01:10:00+01:00"`) {
			t.Errorf("the note is not as it was sent: %s", text)
		}
	}},
	{"notes are found by the time that they are about", func(t *testing.T, d *desk) {
		day := func(n int) oda.Instant { return oda.Instant(n) * 86_400_000_000 }
		d.clock.Set(day(10), 1)
		d.mustPut(note("made10"), `{"text":"x"}`)
		d.mustPut(note("day2"), `{"text":"x","from":"1970-01-03"}`)
		d.mustPut(note("days2to4"), `{"text":"x","from":"1970-01-03","to":"1970-01-05"}`)
		d.mustPut(note("months"), `{"text":"x","from":"1970-01-03","to":"1970-04-05"}`)
		d.mustPut(note("until12"), `{"text":"x","to":"1970-01-13"}`)
		for raw, want := range map[string][]string{
			"sort=id&from=1970-01-01&to=1970-01-03":           {},
			"sort=id&from=1970-01-03&to=1970-01-04":           {"day2", "days2to4", "months"},
			"sort=id&from=1970-01-03T00:00:01Z&to=1970-01-04": {"days2to4", "months"},
			"sort=id&from=1970-01-05&to=1970-01-06":           {"months"},
			"sort=id&from=1970-01-11&to=1970-01-11T00:00:01Z": {"made10", "months", "until12"},
			"sort=id&from=1970-01-12&to=1970-01-14":           {"months", "until12"},
			"sort=id&from=1970-01-13&to=1970-01-14":           {"months"},
			"sort=id&from=1970-01-13":                         {"months"},
			"sort=id&to=1970-01-03T00:00:01Z":                 {"day2", "days2to4", "months"},
			"sort=id&from=1969-01-01&to=1971-01-01":           {"day2", "days2to4", "made10", "months", "until12"},
			"from=1970-01-01&to=1970-01-20&sort=-id":          {"until12", "months", "made10", "days2to4", "day2"},
		} {
			same(t, raw, d.found(oda.Note, raw), want)
		}
	}},
	{"a note that ends before it begins is refused", func(t *testing.T, d *desk) {
		a := archive.New(d.engine, &Minter{})
		now := oda.InstantOf(time.Now()).String()
		for members, refusal := range map[string]bool{
			`"from":"2026-01-01T00:00:00Z","to":"2026-01-01T01:00:00+01:00"`: false,
			`"from":"2026-01-01T00:00:00.0000001Z","to":"2026-01-01"`:        true,
			`"from":"2026-01-01T00:00:01Z","to":"2026-01-01"`:                true,
			`"to":"2026-01-01"`:             true,
			`"from":null,"to":"2026-01-01"`: true,
			`"from":null,"to":"2999-01-01"`: false,
			`"from":"2026-01-01"`:           false,
			`"to":"2026-01-02","metadata":{"version":1,"created_by":"a","created_on":"2026-01-01","last_modified_by":"a","last_modified_on":"2026-01-01"}`: false,
			`"to":"2026-01-02","metadata":{"created_on":"` + now + `"}`:                                                                                    true,
		} {
			document := Document(t, oda.Note, `{"text":"x",`+members+`}`)
			_, stored := a.Store(d.ctx, "n"+fmt.Sprint(len(members)), document, archive.Write{})
			_, created := a.Create(d.ctx, document, archive.Write{})
			_, several := a.StoreAll(d.ctx, []*oda.Document{Document(t, oda.Note, `{"note_id":"m`+fmt.Sprint(len(members))+`","text":"x",`+members+`}`)}, archive.Write{})
			for _, err := range []error{stored, created, several} {
				if !refusal {
					must.Do(t, err)
					continue
				}
				same(t, "the place of "+members, pointers(refused(t, err, oda.InvalidNote)), []string{"/to"})
			}
		}
	}},
	{"a note of more than 64 KiB is refused", func(t *testing.T, d *desk) {
		a := archive.New(d.engine, &Minter{})
		store := func(text string) error {
			_, err := a.Store(d.ctx, "n", Document(t, oda.Note, `{"text":"`+text+`"}`), archive.Write{})
			return err
		}
		same(t, "the place", pointers(refused(t, store(strings.Repeat("é", oda.MaxNoteText/2)+"x"), oda.InvalidRequest)), []string{"/text"})
		must.Do(t, store(strings.Repeat("é", oda.MaxNoteText/2)))
	}},
	{"who may write only to their own creates, and changes what they have created", func(t *testing.T, d *desk) {
		a := archive.New(d.engine, &Minter{})
		store := func(user, id, text string, own bool) error {
			_, err := a.Store(d.ctx, id, Document(t, oda.Note, text), archive.Write{User: user, Own: own})
			return err
		}
		next := func(id, members string) string { return document(d.mustGet(note(id)).Metadata, members) }
		must.Do(t, store("anna", "n", `{"text":"one"}`, true))
		must.Do(t, store("anna", "n", next("n", `"text":"two"`), true))
		refused(t, store("bert", "n", next("n", `"text":"three"`), true), oda.Forbidden)
		refused(t, store("bert", "n", `{"text":"three"}`, true), oda.Forbidden)
		lies := strings.Replace(next("n", `"text":"three"`), `"created_by":"anna"`, `"created_by":"bert"`, 1)
		refused(t, store("bert", "n", lies, true), oda.Forbidden)
		same(t, "the version", d.mustGet(note("n")).Metadata.Version, int64(2))
		must.Do(t, store("bert", "n", next("n", `"text":"three"`), false))
		refused(t, store("bert", "n", next("n", `"text":"four"`), true), oda.Forbidden)
		must.Do(t, store("anna", "n", next("n", `"text":"four"`), true))
		refused(t, store("anna", "n", `{"text":"five"}`, true), oda.MetadataMismatch)

		say := func(user string, own bool) error {
			_, err := a.Say(d.ctx, oda.NewStatus{Ref: note("n"), Text: "Resolved"}, archive.Write{User: user, Own: own, Key: "key of " + user})
			return err
		}
		refused(t, say("bert", true), oda.Forbidden)
		must.Do(t, say("anna", true))
		must.Do(t, say("bert", false))
		refused(t, say("bert", true), oda.Forbidden) // although the key is known
		same(t, "the statuses", len(d.statuses(note("n"))), 2)
	}},
	{"of two who create a note at once, one does", func(t *testing.T, d *desk) {
		a := archive.New(d.engine, &Minter{})
		for n := range 20 {
			id := fmt.Sprint("n", n)
			var errs [2]error
			var all sync.WaitGroup
			for i, user := range []string{"anna", "bert"} {
				all.Go(func() {
					_, errs[i] = a.Store(d.ctx, id, Document(t, oda.Note, `{"text":"mine"}`), archive.Write{User: user, Own: true})
				})
			}
			all.Wait()
			if (errs[0] == nil) == (errs[1] == nil) {
				t.Fatalf("both or none: %v and %v", errs[0], errs[1])
			}
			refused(t, cmp.Or(errs[0], errs[1]), oda.Forbidden)
		}
	}},
}
