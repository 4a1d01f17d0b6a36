package load

import (
	"context"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"oda"
	"oda/internal/test/embedded"
	"oda/internal/test/fault"
	"oda/internal/test/history"
)

// seldom is how rarely a broken archive shows its fault: one time in this many, so that a
// short load meets it.
const seldom = 3

// An archive with a fault is caught, and one without is not.
func TestABrokenArchiveIsCaught(t *testing.T) {
	for about, test := range map[string]struct {
		damage func(oda.Engine) oda.Engine
		says   string // "" for none
	}{
		"nothing is broken":                         {func(e oda.Engine) oda.Engine { return e }, ""},
		"a record is acknowledged and not stored":   {func(e oda.Engine) oda.Engine { return leaky{e} }, " acknowledged as record"},
		"a key is forgotten":                        {func(e oda.Engine) oda.Engine { return forgetful{e} }, "is stored 2 times, and not 1 times"},
		"a part of several entities is stored":      {func(e oda.Engine) oda.Engine { return partial{e} }, "is stored 1 times, and not 4 times"},
		"a record is stored and said to be missing": {func(e oda.Engine) oda.Engine { return liar{e} }, "was refused, and is stored"},
		"a status is acknowledged and not stored":   {func(e oda.Engine) oda.Engine { return mute{e} }, "as status"},
		"the first status stays the current one":    {func(e oda.Engine) oda.Engine { return mistaken{e} }, "is said to be current"},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			server := history.NewServer(t, test.damage(embedded.Engine(t)))
			t.Cleanup(server.Close)
			l, err := Start(Options{}, server.Host())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(l.Stop)
			err = fault.Poll(t.Context(), progressIn, "writes", func() (bool, error) { return l.Acknowledged() >= 800, nil })
			if err != nil {
				t.Fatal(err)
			}
			l.Pause()
			all, err := l.Read(t.Context(), server.Host())
			if err != nil {
				t.Fatal(err)
			}
			switch err := l.Check(all); {
			case err == nil && test.says != "":
				t.Error("the fault was not caught")
			case err != nil && (test.says == "" || !strings.Contains(err.Error(), test.says)):
				t.Errorf("it says %v", err)
			}
			if err := l.Enough(Everything...); err != nil {
				t.Error(err)
			}
		})
	}
}

// A check that finds nothing is worthless if it cannot find anything.
func TestWhatIsStoredIsComparedWithWhatIsKnown(t *testing.T) {
	plan, block := oda.Ref{Kind: oda.SBDefinition, ID: "sbd-1"}, oda.Ref{Kind: oda.ExecutionBlock, ID: "eb-1"}
	first, second, both := VersionOf(plan, 1), VersionOf(plan, 2), RecordOf(block, 1)
	for about, test := range map[string]struct {
		change func(l *Load, all Truth)
		says   string // "" for none
	}{
		"everything as it was answered":   {func(*Load, Truth) {}, ""},
		"an acknowledged version lost":    {func(_ *Load, all Truth) { delete(all, second) }, "b was acknowledged as version 2 of sbd-1, which is not stored"},
		"another in its place":            {func(_ *Load, all Truth) { all[second] = all[first] }, "b was acknowledged as version 2 of sbd-1, which is not stored"},
		"at another instant":              {func(_ *Load, all Truth) { all[second] = Fact{Write: all[second].Write, On: 8} }, "version 2 of sbd-1 was acknowledged on"},
		"half of a write":                 {func(_ *Load, all Truth) { delete(all, both) }, "c is stored 1 times, and not 2 times"},
		"a write without an answer":       {func(l *Load, all Truth) { all[VersionOf(plan, 3)] = Fact{Write: l.send("d", "mary", 1)} }, ""},
		"a version that was read":         {func(l *Load, _ Truth) { l.see(second, "b") }, ""},
		"a version that was read is gone": {func(l *Load, _ Truth) { l.see(VersionOf(plan, 3), "d") }, "d was read as version 3 of sbd-1, and is gone"},
		"a version that was read with two contents": {func(l *Load, _ Truth) {
			l.see(first, "a")
			l.see(first, "x")
		}, "version 1 of sbd-1 was read with a, and with x"},
		"an acknowledgment of what another has": {func(l *Load, _ Truth) {
			l.acknowledge(l.send("d", "mary", 1), "store", map[Unit]Fact{first: {}})
		}, "both a and d were acknowledged as version 1 of sbd-1"},
		"an acknowledgment of too little": {func(l *Load, _ Truth) {
			l.acknowledge(l.send("d", "mary", 2), "store", map[Unit]Fact{VersionOf(plan, 3): {}})
		}, "which is not 2"},
		"versions in another order": {func(l *Load, all Truth) {
			late := l.send("d", "mary", 1)
			late.Sent = all[second].Write.Answered + 1
			one, two := all[first], all[second]
			all[first], all[second] = Fact{Write: late}, one
			all[VersionOf(plan, 3)] = two
		}, "version 1 of sbd-1 was sent when version 2 of sbd-1 had been acknowledged"},
	} {
		t.Run(about, func(t *testing.T) {
			l := &Load{ledger: newLedger()}
			l.acknowledge(l.send("a", "mary", 1), "store", map[Unit]Fact{first: {On: 1}})
			l.acknowledge(l.send("b", "mary", 1), "store", map[Unit]Fact{second: {On: 2}})
			l.send("c", "mary", 2) // has no answer
			all := maps.Clone(Truth(l.acked))
			all[both], all[VersionOf(block, 1)] = Fact{Write: l.sent("c")}, Fact{Write: l.sent("c")}
			test.change(l, all)
			if err := l.Check(all); (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("it says %v, want %q", err, test.says)
			}
		})
	}
}

// unavailable is the answer of an archive that does not say whether it has stored
// anything.
var unavailable = oda.Errorf(oda.Unavailable, "The archive is not available.")

// leaky sometimes acknowledges a record that it did not store.
type leaky struct{ oda.Engine }

func (s leaky) Append(ctx context.Context, add oda.Append) ([]oda.Receipt, error) {
	all := len(add.Records)
	if rand.N(seldom) > 0 || all == 1 {
		return s.Engine.Append(ctx, add)
	}
	add.Records = add.Records[:all-1]
	receipts, err := s.Engine.Append(ctx, add)
	if err != nil {
		return nil, err
	}
	lost := receipts[all-2]
	lost.Sequence++
	return append(receipts, lost), nil
}

// forgetful sometimes forgets a key whose answer was lost.
type forgetful struct{ oda.Engine }

func (s forgetful) Append(ctx context.Context, add oda.Append) ([]oda.Receipt, error) {
	if rand.N(seldom) > 0 || len(add.Records) > 1 || add.Records[0].Key == "" {
		return s.Engine.Append(ctx, add)
	}
	keyless := add
	keyless.Records = []oda.NewRecord{{Text: add.Records[0].Text}}
	if _, err := s.Engine.Append(ctx, keyless); err != nil {
		return nil, err
	}
	return nil, unavailable
}

// partial sometimes stores only the first of several entities.
type partial struct{ oda.Engine }

func (s partial) Put(ctx context.Context, puts []oda.Put) ([]*oda.Entity, error) {
	if rand.N(seldom) > 0 || len(puts) == 1 {
		return s.Engine.Put(ctx, puts)
	}
	if _, err := s.Engine.Put(ctx, puts[:1]); err != nil {
		return nil, err
	}
	return nil, unavailable
}

// liar sometimes refuses a record that it did store.
type liar struct{ oda.Engine }

func (s liar) Append(ctx context.Context, add oda.Append) ([]oda.Receipt, error) {
	receipts, err := s.Engine.Append(ctx, add)
	if err == nil && rand.N(seldom) == 0 {
		return nil, oda.Missing(oda.Ref{Kind: oda.ExecutionBlock, ID: add.Block})
	}
	return receipts, err
}

// mute acknowledges a status that it did not store, about every second time: there are few
// of them.
type mute struct{ oda.Engine }

func (s mute) Say(ctx context.Context, say oda.NewStatus) (*oda.Status, error) {
	if rand.N(2) > 0 {
		return s.Engine.Say(ctx, say)
	}
	e, err := s.Get(ctx, say.Ref)
	if err != nil {
		return nil, err
	}
	return say.Entry(e.Metadata.Version, oda.Standing{Last: 1000})
}

// mistaken takes the first status for the current one.
type mistaken struct{ oda.Engine }

func (s mistaken) Status(ctx context.Context, ref oda.Ref) (*oda.Status, error) {
	first, err := s.StatusesBefore(ctx, ref, 2, 1)
	if err != nil || len(first) == 0 {
		return s.Engine.Status(ctx, ref)
	}
	return &first[0], nil
}
