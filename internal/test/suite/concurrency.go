package suite

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"oda"
	"oda/archive"
	"oda/internal/test/proof"
)

// together runs work n times concurrently and ends the test at the first error.
func together(t *testing.T, n int, work func(i int) error) {
	t.Helper()
	errs := make([]error, n)
	start := make(chan struct{})
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			<-start
			errs[i] = work(i)
		})
	}
	close(start)
	group.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// onlyOne checks that exactly one of many attempts succeeds and the others are
// refused with this code.
func onlyOne(t *testing.T, errs []error, code oda.Code) {
	t.Helper()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else {
			refused(t, err, code)
		}
	}
	if won != 1 {
		t.Fatalf("%d of %d attempts were accepted", won, len(errs))
	}
}

// concurrency has what many callers do at once with one entity. That what readers see
// is in order and never in part is what histories show.
var concurrency = []scenario{
	{"of many updates of one version exactly one wins", func(t *testing.T, d *desk) {
		const n = 16
		m := d.mustPut(sbd("s"), `{}`).Metadata
		for round := range 12 {
			puts, errs := make([]writing, n), make([]error, n)
			for i := range puts {
				puts[i] = d.write(sbd("s"), document(m, fmt.Sprintf(`"n":%d`, i)))
			}
			together(t, n, func(i int) error {
				_, errs[i] = d.send(puts[i])
				return nil
			})
			onlyOne(t, errs, oda.MetadataMismatch)
			winner := slices.Index(errs, nil)
			e := d.mustGet(sbd("s"))
			same(t, "the version", e.Metadata.Version, int64(round+2))
			same(t, "the document", Render(t, e), `{"sbd_id":"s",`+document(e.Metadata, fmt.Sprintf(`"n":%d`, winner))[1:])
			m = e.Metadata
		}
	}},
	{"of many first stores exactly one creates", func(t *testing.T, d *desk) {
		const n = 16
		for round := range 8 {
			puts, errs := make([]writing, n), make([]error, n)
			for i := range puts {
				puts[i] = d.write(sbd(fmt.Sprintf("s%d", round)), `{}`)
				if i%2 == 0 {
					puts[i].Condition = noneMatch
				}
			}
			together(t, n, func(i int) error {
				if _, errs[i] = d.send(puts[i]); oda.CodeOf(errs[i]) == oda.Precondition {
					errs[i] = oda.Errorf(oda.MetadataMismatch, "%v", errs[i]) // create only, but too late
				}
				return nil
			})
			onlyOne(t, errs, oda.MetadataMismatch)
		}
		same(t, "the count", d.counts()[oda.SBDefinition], int64(8))
	}},
	{"many recorders into one block lose nothing, repeat nothing and keep their order", manyRecorders},
	{"many creations with one key create one entity", func(t *testing.T, d *desk) {
		const n = 16
		for round := range 8 {
			key := fmt.Sprintf("key-%d", round)
			puts, texts := make([]writing, n), make([]string, n)
			for i := range puts {
				puts[i] = d.write(eb(fmt.Sprintf("b-%d-%d", round, i)), `{"a":1}`)
			}
			together(t, n, func(i int) error {
				e, err := d.store.Create(d.ctx, puts[i], key)
				if err != nil {
					return err
				}
				texts[i] = Render(t, e)
				return nil
			})
			same(t, "the number of answers", len(slices.Compact(slices.Sorted(slices.Values(texts)))), 1)
			same(t, "the count", d.counts()[oda.ExecutionBlock], int64(round+1))
		}
	}},
	{"many records with one key are one record", func(t *testing.T, d *desk) {
		const n = 16
		d.mustPut(eb("b"), `{}`)
		for round := range 8 {
			text := call(fmt.Sprint(round))
			answers := make([]oda.Receipt, n)
			adds := make([]oda.Append, n)
			for i := range adds {
				adds[i] = d.adding("b", d.keyed(fmt.Sprint(round), text))
			}
			together(t, n, func(i int) (err error) {
				answers[i], err = d.one(adds[i])
				return err
			})
			for _, a := range answers {
				same(t, "the answer", a, answers[0])
			}
			same(t, "the sequence", answers[0].Sequence, int64(round+1))
			same(t, "the number of records", len(d.records("b")), round+1)
		}
	}},
	{"of many who say a status with one guard exactly one is heard", func(t *testing.T, d *desk) {
		const n = 16
		d.mustPut(eb("b"), `{}`)
		previous := ""
		for round := range 12 {
			says, errs := make([]oda.NewStatus, n), make([]error, n)
			for i := range says {
				says[i] = d.guarded(eb("b"), previous, fmt.Sprintf("%d by %d", round, i))
			}
			together(t, n, func(i int) error {
				_, errs[i] = d.store.Say(d.ctx, says[i])
				return nil
			})
			onlyOne(t, errs, oda.StatusMismatch)
			winner, now := slices.Index(errs, nil), d.status(eb("b"))
			same(t, "the status", []any{now.Sequence, now.Text, now.Previous}, []any{int64(round + 1), says[winner].Text, previous})
			previous = now.Text
		}
	}},
	{"many sayings with one key are one status", func(t *testing.T, d *desk) {
		const n = 16
		d.mustPut(eb("b"), `{}`)
		for round := range 8 {
			answers := make([]*oda.Status, n)
			say := d.saying(eb("b"), "Running")
			say.Key = &oda.Key{Value: fmt.Sprint(round)}
			together(t, n, func(i int) (err error) {
				answers[i], err = d.store.Say(d.ctx, say)
				return err
			})
			for _, a := range answers {
				same(t, "the answer", a, answers[0])
			}
			same(t, "the number of entries", len(d.statuses(eb("b"))), round+1)
		}
	}},
	{"many who say statuses lose none, and each follows the one before", sayers},
	{"no record is lost, whatever races with a write that keeps the records", keepers},
}

// manyRecorders records with keys, so that retries happen too.
func manyRecorders(t *testing.T, d *desk) {
	const recorders, each = 8, 40
	d.mustPut(eb("b"), `{}`)
	var latest atomic.Int64 // highest sequence in any answer
	order := make([]string, recorders*each)
	together(t, recorders, func(i int) error {
		for j := range each {
			before := latest.Load()
			text := call(fmt.Sprintf("%d-%d", i, j))
			r, err := d.recordOnce("b", fmt.Sprintf("key-%d-%d", i, j), text)
			if err != nil {
				return err
			}
			if r.Sequence <= before || r.Sequence > int64(len(order)) {
				return fmt.Errorf("a record sent after the answer to %d got the sequence %d", before, r.Sequence)
			}
			order[r.Sequence-1] = text
			for seen := latest.Load(); seen < r.Sequence && !latest.CompareAndSwap(seen, r.Sequence); seen = latest.Load() {
			}
			if j%5 == 0 {
				again, err := d.recordOnce("b", fmt.Sprintf("key-%d-%d", i, j), text)
				if err != nil || again != r {
					return fmt.Errorf("a retry got %+v, %v; the first answer was %+v", again, err, r)
				}
			}
		}
		return nil
	})
	same(t, "the records", d.records("b"), order)
	same(t, "the next sequence", d.mustRecord("b", call("last")).Sequence, int64(len(order)+1))
}

// sayers say statuses of a block, now and late, some of them twice, while others record
// into it and store it.
func sayers(t *testing.T, d *desk) {
	const sayers, each = 8, 25
	d.mustPut(eb("b"), `{"status":"Ready"}`)
	start := d.clock.Now()
	var sent [sayers][]oda.NewStatus
	for i := range sent {
		for j := range each {
			say := d.saying(eb("b"), fmt.Sprintf("%d of %d", j, i))
			say.Key = &oda.Key{Value: fmt.Sprintf("%d-%d", i, j)}
			if j%3 > 0 {
				say.At = new(start + oda.Instant(j*7919%97))
			}
			sent[i] = append(sent[i], say)
		}
	}
	answers := make([]oda.Status, sayers*each+1) // by sequence
	together(t, sayers+2, func(i int) error {
		for j := range each {
			switch {
			case i == sayers:
				if _, err := d.record("b", call(fmt.Sprint(j))); err != nil {
					return err
				}
				continue
			case i > sayers:
				e := d.mustGet(eb("b"))
				if _, err := d.send(d.keep(eb("b"), document(e.Metadata, fmt.Sprintf(`"status":"n%d"`, j)))); err != nil {
					return err
				}
				continue
			}
			said, err := d.store.Say(d.ctx, sent[i][j])
			if err != nil {
				return err
			}
			if said.Sequence < 1 || said.Sequence > sayers*each || answers[said.Sequence].Sequence > 0 {
				return fmt.Errorf("%q got the sequence %d", said.Text, said.Sequence)
			}
			answers[said.Sequence] = *said
			if again, err := d.store.Say(d.ctx, sent[i][j]); err != nil || *again != *said {
				return fmt.Errorf("a retry got %+v, %v; the first answer was %+v", again, err, said)
			}
		}
		return nil
	})
	history := d.statuses(eb("b"))
	slices.Reverse(history)
	same(t, "the history", history, answers[1:])
	var current oda.Status
	var flags []bool
	for i, s := range history {
		if want := current.Text; i > 0 && s.Previous != want {
			t.Fatalf("before entry %d there was %q, and not %q", s.Sequence, s.Previous, want)
		}
		flags = append(flags, s.At >= current.At)
		if s.At >= current.At {
			current = s
		}
	}
	same(t, "the status", d.status(eb("b")), current)
	var told []bool
	for _, c := range d.read(archive.Following{Limit: 1000}).Changes {
		if c.Said != nil {
			told = append(told, c.Said.Current)
		}
	}
	same(t, "which the feed says were current", told, flags)
	same(t, "the version", d.mustGet(eb("b")).Metadata.Version, int64(each+1))
}

// keepers change a block while others record into it, store it with the records
// that they read, alone and with another entity, and change it as well. They
// guess the version instead of reading it, so that many writes are on their way
// when the version that they follow is committed.
func keepers(t *testing.T, d *desk) {
	const recorders, keepers = 2, 4
	each := proof.Rounds(20, 40)
	created := d.mustPut(eb("b"), `{`+listing(call("first"))+`}`).Metadata
	d.mustPut(sbd("s"), `{}`)
	var version, stored atomic.Int64
	version.Store(1)
	var recording atomic.Int32
	recording.Store(recorders)
	accepted := func(entities []*oda.Entity, err error) error {
		if err != nil {
			if oda.CodeOf(err) == oda.MetadataMismatch {
				return nil
			}
			return err
		}
		stored.Add(1)
		version.Store(entities[0].Metadata.Version)
		return nil
	}
	together(t, recorders+keepers+2, func(i int) error {
		if i < recorders {
			defer recording.Add(-1)
			for j := range each {
				if _, err := d.record("b", call(fmt.Sprintf("%d-%d", i, j))); err != nil {
					return err
				}
			}
			return nil
		}
		for n := 0; recording.Load() > 0; n++ {
			m := created
			m.Version = version.Load() + int64(n%2)
			puts := []writing{d.keep(eb("b"), document(m, ""))}
			if i >= recorders+keepers {
				e := d.mustGet(eb("b"))
				records, err := recordsIn(Render(t, e))
				if err != nil {
					return err
				}
				puts = []writing{d.write(eb("b"), document(e.Metadata, listing(records...)))}
				if i > recorders+keepers {
					puts = append(puts, d.write(sbd("s"), document(d.mustGet(sbd("s")).Metadata, "")))
				}
			}
			if err := accepted(d.store.Put(d.ctx, puts)); err != nil {
				return err
			}
		}
		return nil
	})
	records := d.records("b")
	same(t, "the number of records", len(records), 1+recorders*each)
	same(t, "the number of different records", len(slices.Compact(slices.Sorted(slices.Values(records)))), len(records))
	same(t, "the version", d.mustGet(eb("b")).Metadata.Version, 1+stored.Load())
	if stored.Load() == 0 {
		t.Fatal("nothing was stored")
	}
}
