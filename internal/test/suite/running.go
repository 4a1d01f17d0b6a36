package suite

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"oda"
	"oda/archive"
	"oda/client"
	"oda/internal/test/must"
)

// Begin and the next two methods are oda.Runner.
func (a direct) Begin(ctx context.Context, b oda.Begun) error {
	return archive.New(a.engine, nil).Begin(ctx, b, archive.Write{User: b.By, Telescopes: b.Telescopes})
}

func (a direct) Withdraw(ctx context.Context, b oda.Begun) error {
	return archive.New(a.engine, nil).Withdraw(ctx, b.Block, b.Key, archive.Write{User: b.By, Telescopes: b.Telescopes})
}

func (a direct) Running(ctx context.Context, block string) ([]oda.RunningCall, error) {
	return archive.New(a.engine, nil).Running(ctx, block)
}

func (s spoken) Begin(ctx context.Context, b oda.Begun) error {
	call := client.NewRunning{Request: b.Request, Arguments: b.Arguments, Lease: b.Lease}
	if b.SentAt != nil {
		call.SentAt = b.SentAt.Time()
	}
	return s.as(b.By).Begin(ctx, b.Block, b.Key, call)
}

func (s spoken) Withdraw(ctx context.Context, b oda.Begun) error {
	return s.as(b.By).Withdraw(ctx, b.Block, b.Key)
}

func (s spoken) Running(ctx context.Context, block string) ([]oda.RunningCall, error) {
	if block == "" {
		return s.as("").Running(ctx, "")
	}
	return s.as("").RunningIn(ctx, block)
}

// begun returns a call that has begun.
func (d *desk) begun(block, key string) oda.Begun {
	return oda.Begun{Block: block, Key: key, Request: "scan", Lease: time.Minute, By: d.user}
}

func (d *desk) mustBegin(b oda.Begun) {
	d.tb.Helper()
	if err := d.store.Begin(d.ctx, b); err != nil {
		d.tb.Fatalf("begin %s in %s: %v", b.Key, b.Block, err)
	}
}

// running returns the calls that are running in a block, or in all if it is empty.
func (d *desk) running(block string) []oda.RunningCall {
	d.tb.Helper()
	calls, err := d.store.Running(d.ctx, block)
	if err != nil {
		d.tb.Fatalf("what is running in %q: %v", block, err)
	}
	return calls
}

// keysOf tells the calls that are running, those that are silent with a question mark.
func (d *desk) keysOf(block string) string {
	d.tb.Helper()
	var keys []string
	for _, c := range d.running(block) {
		key := c.Block + "/" + c.Key
		if c.Silent {
			key += "?"
		}
		keys = append(keys, key)
	}
	return strings.Join(keys, " ")
}

// blocks stores blocks without a telescope.
func (d *desk) blocks(ids ...string) {
	d.tb.Helper()
	for _, id := range ids {
		d.mustPut(eb(id), `{}`)
	}
}

var running = []scenario{
	{"a call has what was said of it, and what follows", func(t *testing.T, d *desk) {
		d.mustPut(eb("b"), `{"telescope":"mid"}`)
		d.blocks("a")
		sent := must.Get(oda.ParseTime("2026-03-01T21:04:11.250000Z"))(t)
		at := oda.InstantOf(sent)
		b := d.begun("b", "k.1_~-")
		b.Request, b.Arguments, b.SentAt, b.Lease = "scan \x00\"é", []byte(`{"kwargs":{"device":"SKA\u0000001"},"n":1.50}`), &at, time.Hour
		before := time.Now()
		d.mustBegin(b)
		d.mustBegin(d.begun("a", "k"))
		calls := d.running("")
		same(t, "the calls", d.keysOf(""), "a/k b/k.1_~-")
		got := calls[1]
		if got.Since.Time().Before(before.Add(-time.Second)) || got.Since.Time().After(time.Now().Add(time.Second)) {
			t.Errorf("it is running since %v, but was said at %v", got.Since, before)
		}
		same(t, "the renewal", got.RenewedOn, got.Since)
		same(t, "the lease", got.LeaseUntil.Time().Sub(got.Since.Time()), time.Hour)
		device, telescope := "SKA\uFFFD001", "mid"
		same(t, "the call", got, oda.RunningCall{
			Block: "b", Key: b.Key, Request: b.Request, Arguments: b.Arguments, SentAt: oda.Moment(at),
			Since: got.Since, RenewedOn: got.Since, LeaseUntil: got.LeaseUntil, Device: &device, Telescope: &telescope, By: "anna",
		})
		plain := calls[0]
		same(t, "when it was sent, if nobody says", plain.SentAt, plain.Since)
		if plain.Device != nil || plain.Telescope != nil || len(plain.Arguments) > 0 && string(plain.Arguments) != "null" {
			t.Errorf("a call of which little was said is %+v", plain)
		}
		same(t, "the calls of one block", d.keysOf("b"), "b/k.1_~-")
	}},
	{"a renewal leaves since when it is running", func(t *testing.T, d *desk) {
		d.blocks("b")
		d.mustBegin(d.begun("b", "k"))
		first := d.running("b")[0]
		again := d.as("bert").begun("b", "k")
		again.Request, again.Lease = "slew", 2*time.Minute
		d.mustBegin(again)
		now := d.running("b")[0]
		if now.RenewedOn <= first.RenewedOn {
			t.Errorf("it was renewed at %v, and then at %v", first.RenewedOn, now.RenewedOn)
		}
		first.Request, first.By, first.RenewedOn = "slew", "bert", now.RenewedOn
		first.LeaseUntil = now.RenewedOn + oda.Moment(2*time.Minute/time.Microsecond)
		same(t, "the renewed call", now, first)
	}},
	{"a call that is taken back is forgotten", func(t *testing.T, d *desk) {
		d.blocks("a", "b")
		for _, id := range []string{"a", "b"} {
			d.mustBegin(d.begun(id, "k"))
		}
		for range 2 {
			must.Do(t, d.store.Withdraw(d.ctx, d.begun("b", "k")))
			same(t, "the calls", d.keysOf(""), "a/k")
		}
	}},
	{"its record ends a call, alone and among others, and later news of it are ignored", func(t *testing.T, d *desk) {
		d.blocks("a", "b")
		for _, key := range []string{"a/1", "b/1", "b/2", "b/3", "b/4"} {
			block, key, _ := strings.Cut(key, "/")
			d.mustBegin(d.begun(block, key))
		}
		d.mustRecordOnce("b", "1", call("one"))
		same(t, "the calls after a record", d.keysOf(""), "a/1 b/2 b/3 b/4")
		add := d.adding("b", d.keyed("3", call("three")), d.keyed("other", call("x")), d.keyed("2", call("two")))
		add.Batch = true
		must.Get(d.store.Append(d.ctx, add))(t)
		d.mustRecord("b", call("without a key"))
		for range 2 {
			same(t, "the calls after a batch", d.keysOf(""), "a/1 b/4")
			for _, key := range []string{"1", "2", "3", "other"} {
				d.mustBegin(d.begun("b", key))
			}
		}
		same(t, "the calls of the block", d.keysOf("b"), "b/4")
	}},
	{"running is no part of the history", func(t *testing.T, d *desk) {
		d.blocks("b")
		before, text := must.Get(d.store.Changes(d.ctx, archive.Following{Limit: 100}))(t), d.text(eb("b"))
		d.mustBegin(d.begun("b", "k"))
		must.Do(t, d.store.Withdraw(d.ctx, d.begun("b", "k")))
		d.mustBegin(d.begun("b", "k"))
		same(t, "the log", must.Get(d.store.Changes(d.ctx, archive.Following{Limit: 100}))(t), before)
		same(t, "the block", d.text(eb("b")), text)
	}},
	{"an unknown block is not found", func(t *testing.T, d *desk) {
		d.mustPut(sbd("s"), `{}`)
		for _, id := range []string{"unknown", "s", "create", "no block"} {
			refused(t, d.store.Begin(d.ctx, d.begun(id, "k")), oda.NotFound)
			refused(t, d.store.Withdraw(d.ctx, d.begun(id, "k")), oda.NotFound)
			_, err := d.store.Running(d.ctx, id)
			refused(t, err, oda.NotFound)
		}
	}},
	{"whatever races, nothing is left running that was recorded", func(t *testing.T, d *desk) {
		const blocks, workers, each = 3, 12, 12
		for i := range blocks {
			d.blocks(fmt.Sprint("b", i))
		}
		together(t, 3*workers, func(i int) error {
			for n := range each {
				block, key := fmt.Sprint("b", (i+n)%blocks), fmt.Sprint(i/3, "-", n)
				switch {
				case i%3 == 0: // announces, and goes on even after the record
					for range 2 {
						if err := d.store.Begin(d.ctx, d.begun(fmt.Sprint("b", n%blocks), key)); err != nil {
							return err
						}
					}
				case i%3 == 1: // records
					if _, err := d.recordOnce(fmt.Sprint("b", n%blocks), key, call(key)); err != nil {
						return err
					}
				default:
					if _, err := d.store.Running(d.ctx, block); err != nil {
						return err
					}
				}
			}
			return nil
		})
		same(t, "the calls", d.keysOf(""), "")
		d.mustBegin(d.begun("b0", "later"))
		same(t, "the calls", d.keysOf(""), "b0/later")
	}},
}

// runningInside are about leases shorter than callers may have, bounds, and telescopes.
var runningInside = []scenario{
	{"past its lease a call is silent, and a day later it is gone", func(t *testing.T, d *desk) {
		d.blocks("b")
		for key, lease := range map[string]time.Duration{
			"1": time.Minute, "2": 0, "3": -oda.SilentFor + time.Minute, "4": -oda.SilentFor, "5": -2 * oda.SilentFor,
		} {
			b := d.begun("b", key)
			b.Lease = lease
			d.mustBegin(b)
		}
		same(t, "the calls", d.keysOf(""), "b/1 b/2? b/3?")
		same(t, "the calls of the block", d.keysOf("b"), "b/1 b/2? b/3?")
		for _, key := range []string{"2", "4"} {
			since := map[string]oda.Moment{}
			for _, c := range d.running("b") {
				since[c.Key] = c.Since
			}
			d.mustBegin(d.begun("b", key))
			for _, c := range d.running("b") {
				if c.Key == key && (since[key] != 0 && c.Since != since[key] || since[key] == 0 && c.Since != c.RenewedOn) {
					t.Errorf("%s is running since %v, and was before since %v", key, c.Since, since[key])
				}
			}
		}
		same(t, "the calls that speak again", d.keysOf(""), "b/1 b/2 b/3? b/4")
	}},
	{"only so many calls of a caller are kept", func(t *testing.T, d *desk) {
		d.blocks("a", "b")
		together(t, 10, func(i int) error {
			for n := range oda.MaxRunningOfCaller / 10 {
				if err := d.store.Begin(d.ctx, d.begun("b", fmt.Sprint(i, "-", n))); err != nil {
					return err
				}
			}
			return nil
		})
		same(t, "the calls", len(d.running("")), oda.MaxRunningOfCaller)
		refused(t, d.store.Begin(d.ctx, d.begun("a", "more")), oda.TooManyRunning)
		d.mustBegin(d.begun("b", "3-14")) // a renewal needs no room
		d.mustBegin(d.as("bert").begun("a", "more"))
		d.mustBegin(d.as("bert").begun("b", "0-0")) // now it is a call of bert's
		d.mustBegin(d.begun("a", "1"))
		refused(t, d.store.Begin(d.ctx, d.begun("a", "2")), oda.TooManyRunning)
		d.mustRecordOnce("b", "0-1", call("one"))
		d.mustBegin(d.begun("a", "2"))
		refused(t, d.store.Begin(d.ctx, d.begun("a", "3")), oda.TooManyRunning)
		must.Do(t, d.store.Withdraw(d.ctx, d.begun("b", "0-2")))
		d.mustBegin(d.begun("a", "3"))
		gone := d.begun("a", "3")
		gone.Lease = -oda.SilentFor
		d.mustBegin(gone)
		d.mustBegin(d.begun("a", "4"))
		refused(t, d.store.Begin(d.ctx, d.begun("a", "5")), oda.TooManyRunning)
	}},
	{"a bound caller says it only of blocks of their telescopes, or of none", func(t *testing.T, d *desk) {
		for i, telescope := range []string{none, "mid", "low"} {
			block := fmt.Sprint("b", i)
			d.mustPut(eb(block), "{"+of(telescope)+"}")
			d.mustRecordOnce(block, "recorded", call("one"))
			d.mustBegin(d.begun(block, "of another"))
			b := d.begun(block, "k")
			b.Telescopes = boundTo("mid", "aux")
			ended := b
			ended.Key = "recorded"
			theirs := b
			theirs.Key = "of another"
			for name, err := range map[string]error{
				"begin": d.store.Begin(d.ctx, b), "renew": d.store.Begin(d.ctx, b), "begin what has ended": d.store.Begin(d.ctx, ended), "withdraw": d.store.Withdraw(d.ctx, theirs),
			} {
				if telescope == "low" {
					refused(t, err, oda.Forbidden)
				} else if err != nil {
					t.Errorf("%s in a block of %q: %v", name, telescope, err)
				}
			}
		}
		same(t, "the calls", d.keysOf(""), "b0/k b1/k b2/of another")
		unknown := d.begun("unknown", "k")
		unknown.Telescopes = boundTo("mid")
		refused(t, d.store.Begin(d.ctx, unknown), oda.NotFound)
		refused(t, d.store.Withdraw(d.ctx, unknown), oda.NotFound)
		d.mustUpdate(eb("b1"), of("low")+","+listing(call("one")))
		same(t, "the telescope is the block's", *d.running("b1")[0].Telescope, "low")
	}},
	{"what is imported ends calls, too", func(t *testing.T, d *desk) {
		d.blocks("b")
		d.mustRecordOnce("b", "k", call("one"))
		entries := d.entries(d.end(), everyRef)
		other := d.fresh()
		other.loaded(entries[:1])
		other.mustBegin(other.begun("b", "k"))
		same(t, "the calls before", other.keysOf(""), "b/k")
		other.loaded(entries[1:])
		same(t, "the calls after", other.keysOf(""), "")
	}},
}
