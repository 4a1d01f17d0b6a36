package suite

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"oda"
	"oda/archive"
	"oda/internal/test/must"
)

// wordsOf are the statuses that have a class, by the specification.
var wordsOf = map[oda.Class]string{
	oda.ClassPlanned: "Draft, Submitted, Ready, Created",
	oda.ClassRunning: "In Progress, Executing, Running",
	oda.ClassDone:    "Observed, Fully Observed, Complete, Completed, Done, Resolved, Closed",
	oda.ClassFailed:  "Failed, Observing Failed, Failed Processing",
	oda.ClassStopped: "Cancelled, Aborted, Suspended, Out of Time",
	oda.NoClass:      "Draf, Drafts, InProgress, In  Progress, Un done, Läuft, null, 0",
}

// spellings are ways to write a status that are the same.
var spellings = []func(string) string{
	strings.Clone, strings.ToLower, strings.ToUpper,
	func(text string) string { return strings.ReplaceAll(text, " ", "_") },
	func(text string) string { return strings.ReplaceAll(strings.ToUpper(text), " ", "-") },
}

// Say and the next two methods are oda.Statuses. A caller is not told whether an entry
// became the current one.
func (a direct) Say(ctx context.Context, say oda.NewStatus) (*oda.Status, error) {
	w := archive.Write{User: say.By, Telescopes: say.Telescopes}
	if say.Key != nil {
		w.Key, w.Received = say.Key.Value, sent(say)
	}
	said, err := archive.New(guided{a.engine}, nil).Say(about(ctx, oda.Put{At: say.Now}), say, w)
	return told(said, err)
}

// sent returns what a caller sends to say a status.
func sent(say oda.NewStatus) []byte {
	text := fmt.Appendf(nil, "%q %q %d %t %q", say.Text, say.Reason, say.Version, say.Guarded, say.Previous)
	if say.At != nil {
		text = append(text, say.At.String()...)
	}
	if say.Class != nil {
		text = append(text, say.Class.String()...)
	}
	return text
}

func (a direct) Status(ctx context.Context, ref oda.Ref) (*oda.Status, error) {
	return told(archive.New(a.engine, nil).Status(ctx, ref))
}

func (a direct) StatusesBefore(ctx context.Context, ref oda.Ref, before int64, limit int) ([]oda.Status, error) {
	page, err := archive.New(a.engine, nil).Statuses(ctx, ref, before, limit)
	for i := range page.Statuses {
		page.Statuses[i].Current = false
	}
	if n := len(page.Statuses); err == nil && (page.Next != "") != (n > 0 && page.Statuses[n-1].Sequence > 1) {
		err = fmt.Errorf("behind %+v the cursor is %q", page.Statuses, page.Next)
	}
	return page.Statuses, err
}

func told(said *oda.Status, err error) (*oda.Status, error) {
	if said == nil || err != nil {
		return nil, err
	}
	plain := *said
	plain.Current = false
	return &plain, nil
}

// saying returns a status to be said of an entity. A key is only a value: what it came
// with is worked out from the rest.
func (d *desk) saying(ref oda.Ref, text string) oda.NewStatus {
	return oda.NewStatus{Ref: ref, Text: text, By: d.user, Now: d.clock.Now()}
}

// guarded returns a status to be said if the current one is the previous one.
func (d *desk) guarded(ref oda.Ref, previous, text string) oda.NewStatus {
	say := d.saying(ref, text)
	say.Guarded, say.Previous = true, previous
	return say
}

func (d *desk) mustSay(say oda.NewStatus) oda.Status {
	d.tb.Helper()
	said, err := d.store.Say(d.ctx, say)
	if err != nil {
		d.tb.Fatalf("say %q of %s: %v", say.Text, say.ID, err)
	}
	return *said
}

// status returns what the status of an entity is.
func (d *desk) status(ref oda.Ref) oda.Status {
	d.tb.Helper()
	s, err := d.store.Status(d.ctx, ref)
	if err != nil {
		d.tb.Fatalf("the status of %s: %v", ref.ID, err)
	}
	return *s
}

// statuses returns everything that was said of an entity, newest first.
func (d *desk) statuses(ref oda.Ref) []oda.Status {
	d.tb.Helper()
	entries, err := d.store.StatusesBefore(d.ctx, ref, math.MaxInt64, oda.MaxStatuses)
	if err != nil {
		d.tb.Fatalf("the statuses of %s: %v", ref.ID, err)
	}
	return entries
}

// stands returns what search must know of the status of an entity.
func (d *desk) stands(ref oda.Ref) oda.Standing {
	d.tb.Helper()
	s, last := d.status(ref), int64(0)
	if entries := d.statuses(ref); len(entries) > 0 {
		last = entries[0].Sequence
	}
	return oda.Standing{Text: s.Text, Class: s.Class, Sequence: s.Sequence, At: s.At, Last: last}
}

// unsaid returns the status of an entity of which nobody has said any.
func unsaid(ref oda.Ref, version int64, text string, class oda.Class) oda.Status {
	return oda.Status{Ref: ref, Version: version, Text: text, Class: class}
}

var statuses = []scenario{
	{"an entry has what was said, and what follows", func(t *testing.T, d *desk) {
		for _, kind := range oda.Kinds {
			ref := oda.Ref{Kind: kind, ID: "x"}
			d.mustPut(ref, `{}`)
			d.mustUpdate(ref, "")
			d.as("bert").mustPut(oda.Ref{Kind: kind, ID: "other"}, `{}`)
			same(t, "the status before", d.status(ref), unsaid(ref, 2, "", oda.NoClass))

			first := d.as("bert").saying(ref, "In_progress")
			said := d.mustSay(first)
			want := oda.Status{
				Ref: ref, Sequence: 1, Text: "In_progress", Class: oda.ClassRunning, At: first.Now, Version: 2, By: "bert", On: first.Now,
			}
			same(t, "the first entry", said, want)
			second := d.saying(ref, "läuft so\u00a0mit \"\\<&>😀")
			second.Reason, second.Version = "first line\nsecond\tline", 1
			second.At, second.Class = new(first.Now+1), new(oda.ClassStopped)
			said = d.mustSay(second)
			want = oda.Status{
				Ref: ref, Sequence: 2, Text: second.Text, Class: oda.ClassStopped, Reason: second.Reason, At: *second.At, Version: 1,
				Previous: "In_progress", By: "anna", On: second.Now,
			}
			same(t, "the second entry", said, want)
			same(t, "the status", d.status(ref), want)

			later := d.saying(ref, second.Text) // the same again
			later.At = new(later.Now + 1)
			said = d.mustSay(later)
			same(t, "what was said of later", []any{said.Sequence, said.At, said.On, said.Previous, said.Version, said.Class},
				[]any{int64(3), later.Now, later.Now, second.Text, int64(2), oda.NoClass})
			same(t, "the history", d.statuses(ref), []oda.Status{said, want, d.statuses(ref)[2]})
			same(t, "the status of another", d.status(oda.Ref{Kind: kind, ID: "other"}), unsaid(oda.Ref{Kind: kind, ID: "other"}, 1, "", oda.NoClass))
		}
	}},
	{"the class follows from the words, however they are written, unless it is given", func(t *testing.T, d *desk) {
		d.mustPut(sbd("s"), `{}`)
		d.mustPut(sbd("own"), `{}`)
		for class, words := range wordsOf {
			for i, word := range strings.Split(words, ", ") {
				for _, spell := range spellings {
					same(t, "the class of "+spell(word), d.mustSay(d.saying(sbd("s"), spell(word))).Class, class)
				}
				text := spellings[i%len(spellings)](word)
				d.mustUpdate(sbd("own"), fmt.Sprintf(`"status":%q`, text))
				same(t, "the status of the document", d.status(sbd("own")), unsaid(sbd("own"), d.mustGet(sbd("own")).Metadata.Version, text, class))
			}
			if class != oda.NoClass {
				say := d.saying(sbd("s"), "Running")
				say.Class = new(class)
				same(t, "a class that was given", d.mustSay(say).Class, class)
			}
		}
	}},
	{"the document, its metadata and its versions stay, and a new version keeps the status", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{`+listing(record(1))+`,"status":"Ready"}`)
		d.mustRecord("b", record(2))
		before, versions := d.mustGet(eb("b")), must.Get(d.store.Versions(d.ctx, eb("b"), math.MaxInt64, 10))(t)
		text := d.text(eb("b"))
		said := d.mustSay(d.saying(eb("b"), "Observed"))
		same(t, "what was there before", said.Previous, "Ready")
		same(t, "the metadata", d.mustGet(eb("b")).Metadata, before.Metadata)
		same(t, "the document", d.text(eb("b")), text)
		same(t, "the versions", must.Get(d.store.Versions(d.ctx, eb("b"), math.MaxInt64, 10))(t), versions)
		d.mustRecord("b", record(3)) // it has ended, and is recorded into as before
		d.mustUpdate(eb("b"), `"status":"Failed"`)
		same(t, "the status of the new version", d.status(eb("b")), said)
		d.mustUpdate(eb("b"), "")
		same(t, "the status of the next version", d.status(eb("b")), said)
	}},
	{"what cannot be said is refused, and nothing is stored", func(t *testing.T, d *desk) {
		d.mustPut(sbd("s"), `{"status":"Ready"}`)
		end, long := d.end(), strings.Repeat("😀", oda.MaxStatus)
		for about, test := range map[string]struct {
			change  func(say *oda.NewStatus)
			code    oda.Code
			pointer string
		}{
			"an unknown entity":               {func(say *oda.NewStatus) { say.ID = "unknown" }, oda.NotFound, ""},
			"one of another kind":             {func(say *oda.NewStatus) { say.Kind = oda.Project }, oda.NotFound, ""},
			"no status":                       {func(say *oda.NewStatus) { say.Text = "" }, oda.InvalidRequest, "/status"},
			"65 characters":                   {func(say *oda.NewStatus) { say.Text = long + "x" }, oda.InvalidRequest, "/status"},
			"a line end":                      {func(say *oda.NewStatus) { say.Text = "a\nb" }, oda.InvalidRequest, "/status"},
			"a control character":             {func(say *oda.NewStatus) { say.Text = "a\u0085b" }, oda.InvalidRequest, "/status"},
			"a reason of 2,001":               {func(say *oda.NewStatus) { say.Reason = strings.Repeat("é", oda.MaxReason+1) }, oda.InvalidRequest, "/reason"},
			"a reason with a zero":            {func(say *oda.NewStatus) { say.Reason = "a\x00b" }, oda.InvalidRequest, "/reason"},
			"a version that is not there":     {func(say *oda.NewStatus) { say.Version = 2 }, oda.UnknownVersion, "/version"},
			"one that can never be there":     {func(say *oda.NewStatus) { say.Version = math.MaxInt64 }, oda.UnknownVersion, "/version"},
			"another previous status":         {func(say *oda.NewStatus) { say.Guarded, say.Previous = true, "Read" }, oda.StatusMismatch, "/previous"},
			"none before, but there is one":   {func(say *oda.NewStatus) { say.Guarded = true }, oda.StatusMismatch, "/previous"},
			"a wrong guard, although keyed":   {func(say *oda.NewStatus) { say.Guarded, say.Key = true, &oda.Key{Value: "k"} }, oda.StatusMismatch, "/previous"},
			"a wrong version, although keyed": {func(say *oda.NewStatus) { say.Version, say.Key = 2, &oda.Key{Value: "k"} }, oda.UnknownVersion, "/version"},
		} {
			say := d.saying(sbd("s"), "Running")
			test.change(&say)
			_, err := d.store.Say(d.ctx, say)
			if places := pointers(refused(t, err, test.code)); test.pointer != "" {
				same(t, about, places, []string{test.pointer})
			}
		}
		for _, ref := range []oda.Ref{sbd("unknown"), prj("s")} {
			_, err := d.store.Status(d.ctx, ref)
			refused(t, err, oda.NotFound)
			_, err = d.store.StatusesBefore(d.ctx, ref, math.MaxInt64, 10)
			refused(t, err, oda.NotFound)
		}
		same(t, "the end of the log", d.end(), end)
		same(t, "the status", d.status(sbd("s")), unsaid(sbd("s"), 1, "Ready", oda.ClassPlanned))
		say := d.saying(sbd("s"), long)
		say.Reason, say.Key = strings.Repeat("😀", oda.MaxReason), &oda.Key{Value: "k"}
		said := d.mustSay(say)
		same(t, "what is just not too long", []any{said.Sequence, said.Text, said.Reason}, []any{int64(1), long, say.Reason})
	}},
	{"the current status is the one of the latest time, of equal ones the later", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{"status":"Ready"}`)
		start := d.clock.Now()
		d.clock.Set(start+1000, 0)
		end, previous := d.end(), "Ready"
		for i, step := range []struct {
			at      oda.Instant // since the start; 0: now
			current string      // the number of the one that is current then
		}{
			{at: 500, current: "0"},
			{at: 400, current: "0"},
			{at: 500, current: "2"},
			{at: 501, current: "3"},
			{at: 1, current: "3"},
			{at: 500, current: "3"},
			{at: 0, current: "6"},
			{at: 999, current: "6"},
			{at: 1000, current: "8"},
			{at: 2000, current: "9"},
			{at: -1e15, current: "9"},
			{at: 0, current: "11"},
		} {
			say := d.saying(eb("b"), fmt.Sprint(i))
			if step.at != 0 {
				say.At = new(start + step.at)
			}
			said := d.mustSay(say)
			same(t, "the sequence", said.Sequence, int64(i+1))
			same(t, "the one before", said.Previous, previous)
			same(t, "the current one", d.status(eb("b")).Text, step.current)
			previous = step.current
			changes := d.read(archive.Following{After: end, Limit: 100}).Changes
			same(t, "how many changes there are", len(changes), i+1)
			same(t, "what the feed says", *changes[i].Said, oda.Said{
				Sequence: said.Sequence, Text: said.Text, At: said.At, Current: step.current == said.Text,
			})
		}
	}},
	{"what is said now is current, also if the clock has gone back", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{}`)
		now := d.clock.Now()
		d.clock.Set(now, 0)
		d.mustSay(d.saying(eb("b"), "Running"))
		d.clock.Set(now-1_000_000, 0)
		said := d.mustSay(d.guarded(eb("b"), "Running", "Observed"))
		same(t, "its times", []oda.Instant{said.At, said.On}, []oda.Instant{now, now})
		same(t, "the status", d.status(eb("b")), said)
		_, err := d.store.Say(d.ctx, d.guarded(eb("b"), "Running", "Failed"))
		refused(t, err, oda.StatusMismatch)
		late := d.saying(eb("b"), "Ready")
		late.At = new(now - 1)
		same(t, "the time of what is late", d.mustSay(late).At, now-1)
		same(t, "the status then", d.status(eb("b")), said)
	}},
	{"a document's own status counts until somebody says one", func(t *testing.T, d *desk) {
		odd := map[string]string{
			`"Observed"`: "Observed", `"in-progress"`: "in-progress", `"\u0044raft"`: "Draft", `" Done "`: " Done ", `"` + strings.Repeat("ü", 64) + `"`: strings.Repeat("ü", 64),
			`""`: "", `7`: "", `null`: "", `true`: "", `{"status":"Done"}`: "", `["Done"]`: "", `"` + strings.Repeat("ü", 65) + `"`: "", `"a\u0000"`: "", `"a\n"`: "",
		}
		for _, kind := range oda.Kinds {
			ref, version := oda.Ref{Kind: kind, ID: "x"}, int64(1)
			d.mustPut(ref, `{"nested":{"status":"Done"},"list":[{"status":"Done"}]}`)
			check := func(members, want string) {
				t.Helper()
				e := d.mustUpdate(ref, members)
				version++
				s := d.status(ref)
				same(t, "the status of "+members, s, unsaid(ref, version, want, s.Class))
				same(t, "the version", e.Metadata.Version, version)
				same(t, "the history", len(d.statuses(ref)), 0)
			}
			for value, want := range odd {
				check(`"n":1,"st\u0061tus":`+value, want)
				check(`"status":"Created"`, "Created")
				check(`"status":"Created","n":2`, "Created")
			}
			check(`"Status":"Done"`, "")
			check(`"status":"Ready"`, "Ready")
			same(t, "what was before", d.mustSay(d.guarded(ref, "ready", "Running")).Previous, "Ready")
			d.mustUpdate(ref, `"status":"Failed"`)
			same(t, "the status that was said", d.status(ref).Text, "Running")
		}
	}},
	{"a document has its own status however it is stored", func(t *testing.T, d *desk) {
		d.mustPut(sbd("s"), `{}`)
		must.Get(d.store.Put(d.ctx, []writing{
			d.write(sbd("s"), document(d.mustGet(sbd("s")).Metadata, `"status":"Draft"`)), d.write(sbd("s2"), `{}`), d.write(prj("p"), `{"status":"Submitted"}`),
		}))(t)
		for range 2 { // the second time the key is known
			d.mustCreate(eb("b"), "k", `{"status":"Created",`+listing(`{"request":"x","status":"Done"}`)+`}`)
		}
		for ref, want := range map[oda.Ref]string{sbd("s"): "Draft", sbd("s2"): "", prj("p"): "Submitted", eb("b"): "Created"} {
			same(t, "the status of "+ref.ID, d.status(ref).Text, want)
		}
		must.Get(d.send(d.keep(eb("b"), document(d.mustGet(eb("b")).Metadata, `"status":"Aborted"`))))(t)
		same(t, "the status that came with kept records", d.status(eb("b")).Text, "Aborted")
		_, err := d.put(eb("b"), `{"status":"Done"}`)
		refused(t, err, oda.MetadataMismatch)
		must.Get(d.send(d.keep(eb("b"), document(d.mustGet(eb("b")).Metadata, ""))))(t)
		same(t, "the status that was taken away", d.status(eb("b")), unsaid(eb("b"), 3, "", oda.NoClass))
	}},
	{"a guard is judged by what the status is, however it is written", func(t *testing.T, d *desk) {
		d.mustPut(sbd("s"), `{}`)
		for _, test := range []struct {
			previous, text string
			ok             bool
		}{
			{"Draft", "Ready", false},
			{"", "In Progress", true},
			{"", "Done", false},
			{"in_progress", "FULLY-observed", true},
			{"inprogress", "Done", false},
			{"In Progress", "Done", false},
			{"Fully Observed", "Ünklar ſ", true},
			{"üNKLAR_S", "x", true},
			{"x ", "y", false},
			{"X", "x", true},
		} {
			before := d.status(sbd("s"))
			said, err := d.store.Say(d.ctx, d.guarded(sbd("s"), test.previous, test.text))
			if !test.ok {
				refused(t, err, oda.StatusMismatch)
				same(t, "the status", d.status(sbd("s")), before)
				continue
			}
			must.Do(t, err)
			same(t, "the status", d.status(sbd("s")), *said)
		}
		late := d.guarded(sbd("s"), "x", "late")
		late.At = new(oda.Instant(1))
		d.mustSay(late)
		same(t, "the status after what came late", d.mustSay(d.guarded(sbd("s"), "x", "y")).Previous, "x")
	}},
	{"the same key with the same status is answered as the first time and stores nothing", func(t *testing.T, d *desk) {
		d.mustCreate(eb("b"), "k", `{}`)
		d.mustRecordOnce("b", "k", record(1))
		with := func(say oda.NewStatus) oda.NewStatus {
			say.Key = &oda.Key{Value: "k"}
			return say
		}
		first := d.mustSay(with(d.guarded(eb("b"), "", "Running")))
		for _, change := range []func(){
			func() {},
			func() { d.mustSay(d.saying(eb("b"), "Observed")) },
			func() { d.mustUpdate(eb("b"), "") },
		} {
			change()
			end, history := d.end(), d.statuses(eb("b"))
			same(t, "the answer", d.as("carol").mustSay(with(d.as("carol").guarded(eb("b"), "", "Running"))), first)
			same(t, "the history", d.statuses(eb("b")), history)
			same(t, "the end of the log", d.end(), end)
		}
		same(t, "the sequence", first.Sequence, int64(1))
		for _, other := range []oda.NewStatus{d.saying(eb("b"), "Running"), d.guarded(eb("b"), "", "running"), d.guarded(eb("b"), "Observed", "Running")} {
			_, err := d.store.Say(d.ctx, with(other))
			refused(t, err, oda.KeyReused)
		}
		d.mustPut(sbd("b"), `{}`)
		same(t, "the entry of another entity", d.mustSay(with(d.saying(sbd("b"), "Ready"))).Sequence, int64(1))
		for _, key := range []string{"K", "k~", "k%", `'"\`, strings.Repeat("k", 255)} {
			say := d.saying(sbd("b"), "Ready")
			say.Key = &oda.Key{Value: key}
			d.mustSay(say)
		}
		same(t, "how many entries there are", len(d.statuses(sbd("b"))), 6)
		_, err := d.recordOnce("b", "k", record(2))
		refused(t, err, oda.KeyReused)
	}},
	{"the history is read page by page, newest first", func(t *testing.T, d *desk) {
		d.mustPut(sbd("s"), `{"status":"Ready"}`)
		same(t, "the history of nothing", len(d.statuses(sbd("s"))), 0)
		var all []oda.Status
		for i := range 25 {
			say := d.saying(sbd("s"), fmt.Sprint("s", i))
			say.At = new(say.Now - oda.Instant(i%3)*10_000_000)
			all = append([]oda.Status{d.mustSay(say)}, all...)
		}
		for _, before := range []int64{1, 2, 3, 13, 25, 26, 27, math.MaxInt64} {
			for _, limit := range []int{1, 2, 24, 25, 26, 1000} {
				rest := all[26-min(before, 26):]
				page := must.Get(d.store.StatusesBefore(d.ctx, sbd("s"), before, limit))(t)
				same(t, fmt.Sprintf("%d before %d", limit, before), append([]oda.Status{}, page...), append([]oda.Status{}, rest[:min(limit, len(rest))]...))
			}
		}
	}},
}
