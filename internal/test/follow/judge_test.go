package follow

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"oda"
	"oda/internal/test/load"
)

var (
	block = oda.Ref{Kind: oda.ExecutionBlock, ID: "eb-1"}
	plan  = oda.Ref{Kind: oda.SBDefinition, ID: "sbd-1"}
)

// known truth: the block is stored, two records are recorded into it, it is
// stored again, and another record is recorded. The plan is stored meanwhile;
// its second version has no answer.
func story() (load.Truth, []oda.Change) {
	write := func(mark string, sent, answered time.Duration) *load.Write {
		return &load.Write{Mark: mark, User: "mary", Sent: sent, Answered: answered}
	}
	all := load.Truth{
		load.VersionOf(block, 1): {Write: write("a", 0, 10), On: 1},
		load.RecordOf(block, 1):  {Write: write("b", 20, 30), Block: 1, On: 2},
		load.RecordOf(block, 2):  {Write: write("c", 40, 50), Block: 1, On: 3},
		load.VersionOf(plan, 1):  {Write: write("d", 41, 90), On: 3},
		load.VersionOf(block, 2): {Write: write("e", 60, 70), On: 4},
		load.RecordOf(block, 3):  {Write: write("f", 80, 100), Block: 2, On: 5},
		load.VersionOf(plan, 2):  {Write: write("g", 95, load.Never)},
	}
	stored := func(p oda.Position, ref oda.Ref, version int64, on oda.Instant) oda.Change {
		return oda.Change{Position: p, Ref: ref, Version: version, By: "mary", On: on}
	}
	recorded := func(p oda.Position, first, last, version int64, on oda.Instant) oda.Change {
		return oda.Change{Position: p, Ref: block, Version: version, FirstSequence: first, LastSequence: last, By: "mary", On: on}
	}
	return all, []oda.Change{
		stored(2, block, 1, 1), recorded(4, 1, 2, 1, 3), stored(5, plan, 1, 3), stored(6, block, 2, 4), recorded(8, 3, 3, 2, 5), stored(10, plan, 2, 7),
	}
}

func takeApart(changes []oda.Change) []step {
	var log []step
	for _, c := range changes {
		log = append(log, steps(c)...)
	}
	return log
}

// A judge that finds nothing is worthless if it cannot find anything.
func TestTheJudgeFindsEveryFault(t *testing.T) {
	exchange := func(i, j int) func([]oda.Change) []oda.Change {
		return func(log []oda.Change) []oda.Change {
			log[i], log[j] = log[j], log[i]
			log[i].Position, log[j].Position = log[j].Position, log[i].Position
			return log
		}
	}
	for about, test := range map[string]struct {
		change func([]oda.Change) []oda.Change
		want   verdict
	}{
		"everything in its place": {func(log []oda.Change) []oda.Change { return log }, verdict{}},
		"records one by one": {func(log []oda.Change) []oda.Change {
			first := log[1]
			first.Position, first.LastSequence, first.On = 3, 1, 2
			log[1].FirstSequence = 2
			return slices.Insert(log, 1, first)
		}, verdict{}},
		"concurrent writes in another order": {exchange(2, 3), verdict{}},
		"a version missed":                   {func(log []oda.Change) []oda.Change { return slices.Delete(log, 2, 3) }, verdict{missed: 1}},
		"a record missed": {func(log []oda.Change) []oda.Change {
			log[1].FirstSequence = 2
			return log
		}, verdict{missed: 1}},
		"a stored write without an answer missed": {func(log []oda.Change) []oda.Change { return log[:5] }, verdict{missed: 1}},
		"all missed": {func([]oda.Change) []oda.Change { return nil }, verdict{missed: 7}},
		"a change seen again": {func(log []oda.Change) []oda.Change {
			return slices.Insert(log, 3, log[2])
		}, verdict{twice: 1, backward: 1, disordered: 1}},
		"a change seen again at another position": {func(log []oda.Change) []oda.Change {
			again := log[5]
			again.Position = 11
			return append(log, again)
		}, verdict{twice: 1, disordered: 1}},
		"a change that is not stored": {func(log []oda.Change) []oda.Change {
			log[5].Version = 3
			return log
		}, verdict{missed: 1, unknown: 1}},
		"two changes of an entity exchanged": {exchange(3, 4), verdict{disordered: 1, overtaken: 1}},
		"records merged across another change": {func(log []oda.Change) []oda.Change {
			log[2].Position = 4
			log[1].Position = 5
			log[1], log[2] = log[2], log[1]
			return log
		}, verdict{backward: 1, overtaken: 1}},
		"one that was sent after another was acknowledged comes before it": {func(log []oda.Change) []oda.Change {
			early := log[2]
			early.Position = 1
			return slices.Insert(slices.Delete(log, 2, 3), 0, early)
		}, verdict{overtaken: 1}},
		"an unanswered write before one that was acknowledged when it was sent": {exchange(2, 5), verdict{disordered: 1, overtaken: 1}},
		"by another user": {func(log []oda.Change) []oda.Change {
			log[2].By = "john"
			return log
		}, verdict{wrong: 1}},
		"at another instant": {func(log []oda.Change) []oda.Change {
			log[4].On = 6
			return log
		}, verdict{wrong: 1}},
		"recorded into another version": {func(log []oda.Change) []oda.Change {
			log[4].Version = 1
			return log
		}, verdict{wrong: 1, disordered: 1}},
	} {
		t.Run(about, func(t *testing.T) {
			all, log := story()
			got := judge(takeApart(test.change(log)), all)
			if diff := cmp.Diff(&test.want, got, cmp.AllowUnexported(verdict{}), cmpopts.IgnoreFields(verdict{}, "faults")); diff != "" {
				t.Errorf("verdict (-want +got):\n%s%v", diff, got.err(about))
			}
			if found := got.err(about) != nil; found != (test.want.missed+test.want.twice+test.want.unknown+test.want.backward+
				test.want.disordered+test.want.overtaken+test.want.wrong > 0) {
				t.Errorf("as an error: %v", got.err(about))
			}
		})
	}
}

func TestTheJudgeKnowsWhichStatusIsCurrent(t *testing.T) {
	said := func(p oda.Position, sequence, version int64, at oda.Instant, current bool) oda.Change {
		return oda.Change{Position: p, Ref: plan, Version: version, By: "mary", On: 10, Said: &oda.Said{Sequence: sequence, At: at, Current: current}}
	}
	stored := func(p oda.Position, version int64) oda.Change {
		return oda.Change{Position: p, Ref: plan, Version: version, By: "mary", On: 10}
	}
	for about, test := range map[string]struct {
		change func(log []oda.Change)
		want   verdict
	}{
		"everything in its place":    {func([]oda.Change) {}, verdict{}},
		"a late one is current":      {func(log []oda.Change) { log[2].Said.Current = true }, verdict{wrong: 1}},
		"the latest is not current":  {func(log []oda.Change) { log[4].Said.Current = false }, verdict{wrong: 1}},
		"one of another version":     {func(log []oda.Change) { log[4].Version = 1 }, verdict{wrong: 1, disordered: 1}},
		"one is another":             {func(log []oda.Change) { log[4].Said.Sequence = 4 }, verdict{missed: 1, unknown: 1, disordered: 1}},
		"one comes before a version": {func(log []oda.Change) { log[3].Version, log[4].Version = 3, 2 }, verdict{missed: 1, unknown: 1, disordered: 1}},
	} {
		log := []oda.Change{stored(1, 1), said(2, 1, 1, 5, true), said(3, 2, 1, 4, false), stored(4, 2), said(5, 3, 2, 5, true)}
		all := load.Truth{}
		for _, s := range takeApart(log) {
			all[s.Unit] = load.Fact{Write: &load.Write{User: "mary", Answered: load.Never}, Block: s.block, On: s.on}
		}
		test.change(log)
		if diff := cmp.Diff(&test.want, judge(takeApart(log), all), cmp.AllowUnexported(verdict{}), cmpopts.IgnoreFields(verdict{}, "faults")); diff != "" {
			t.Errorf("%s: verdict (-want +got):\n%s", about, diff)
		}
	}
}

func TestTwoReadingsAreComparedUpToHowRecordsAreMerged(t *testing.T) {
	_, whole := story()
	for about, test := range map[string]struct {
		change func([]oda.Change) []oda.Change
		same   bool
	}{
		"the same": {func(log []oda.Change) []oda.Change { return log }, true},
		"records one by one": {func(log []oda.Change) []oda.Change {
			first := log[1]
			first.Position, first.LastSequence, first.On = 3, 1, 2
			log[1].FirstSequence = 2
			return slices.Insert(log, 1, first)
		}, true},
		"one more": {func(log []oda.Change) []oda.Change {
			return append(log, oda.Change{Position: 11, Ref: plan, Version: 3})
		}, false},
		"one less": {func(log []oda.Change) []oda.Change { return log[:5] }, false},
		"at another position": {func(log []oda.Change) []oda.Change {
			log[5].Position = 9
			return log
		}, false},
		"another in its place": {func(log []oda.Change) []oda.Change {
			log[5].Ref.ID = "sbd-2"
			return log
		}, false},
	} {
		t.Run(about, func(t *testing.T) {
			_, log := story()
			v := &verdict{}
			v.compare(takeApart(test.change(log)), takeApart(whole))
			if got := v.moved == 0; got != test.same {
				t.Errorf("the same: %v, want %v: %v", got, test.same, v.err(about))
			}
		})
	}
}

func TestAChangeIsThereASecondAfterItsAnswer(t *testing.T) {
	all, changes := story() // the last answers are at 70 (position 6), 90 (5) and 100 (8)
	log := takeApart(changes)
	for about, test := range map[string]struct {
		end  end
		want int
	}{
		"just in time":                       {end{promptness + 70, 5}, 0},
		"too late":                           {end{promptness + 71, 5}, 1},
		"one after the next is late":         {end{promptness + 71, 4}, 1},
		"the late one is there":              {end{promptness + 100, 6}, 0},
		"another is late":                    {end{promptness + 101, 6}, 1},
		"what has no answer is never late":   {end{load.Never, 8}, 0},
		"everything is there":                {end{load.Never, 10}, 0},
		"nothing is there and nothing early": {end{5, 0}, 0},
	} {
		t.Run(about, func(t *testing.T) {
			v := &verdict{}
			if v.promptly([]end{test.end}, log, all); v.late != test.want {
				t.Errorf("late %d, want %d: %v", v.late, test.want, v.err(about))
			}
		})
	}
}
