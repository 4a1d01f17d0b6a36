package demo

import (
	"bytes"
	"testing"
	"time"
)

var evening = time.Date(2026, 3, 10, 21, 0, 0, 0, time.UTC)

func week(seed uint64, now time.Time) *plan {
	return newPlan(Options{Seed: seed, Now: now, Longest: 2000})
}

func TestTheSameSeedPlansTheSameWeek(t *testing.T) {
	write := func(p *plan) []byte {
		all := [][]byte{encode(p.projects), encode(p.definitions)}
		for _, o := range p.observations {
			all = append(all, encode(o.instance), encode(o.block), encode(o.calls))
		}
		return bytes.Join(all, []byte("\n"))
	}
	first := write(week(1, evening))
	if !bytes.Equal(first, write(week(1, evening))) {
		t.Error("the same seed plans another week")
	}
	if bytes.Equal(first, write(week(2, evening))) {
		t.Error("another seed plans the same week")
	}
}

// What the pages are to show is in every week.
func TestAWeekHasWhatHappensInAWeek(t *testing.T) {
	for seed := range uint64(20) {
		p := week(seed, evening)
		var short, long, failures, traces, unanswered, overlaps int
		nights := map[string]bool{}
		endings := map[ending]int{}
		for _, o := range p.observations {
			if o.begin.After(evening) || evening.Sub(o.begin) > 7*24*time.Hour {
				t.Errorf("seed %d: an observation begins at %v", seed, o.begin)
			}
			nights[o.begin.Add(-12*time.Hour).Format(time.DateOnly)] = true
			endings[o.ended]++
			if said, _, reason := o.outcome(); (o.ended == failed || o.ended == stopped) != (reason != "") {
				t.Errorf("seed %d: a block ended as %q, because %q", seed, said, reason)
			}
			short += count(len(o.calls) <= 60)
			long += count(len(o.calls) >= 500)
			var busy time.Time
			for i, c := range o.calls {
				if i > 0 && c.Sent.Before(*o.calls[i-1].Sent) {
					t.Fatalf("seed %d: call %d of %s was sent before the one before it", seed, i, o.block.ID)
				}
				failures += count(c.Error != nil)
				traces += count(c.Error != nil && c.Error.Trace != "")
				unanswered += count(c.Received == nil)
				overlaps += count(c.Sent.Before(busy))
				if c.Received != nil && c.Received.After(busy) {
					busy = *c.Received
				}
			}
		}
		if len(nights) < 7 || short < 10 || long < 1 || failures < 10 || traces < 5 || unanswered < 1 || overlaps < 100 {
			t.Errorf("seed %d: %d nights, %d short and %d long blocks, %d failures, %d traces, %d unanswered calls, %d overlaps",
				seed, len(nights), short, long, failures, traces, unanswered, overlaps)
		}
		if endings[stopped] != 1 || endings[silent] != 1 || endings[failed] < 1 || endings[complete] < len(p.observations)*3/4 {
			t.Errorf("seed %d: %d observations ended as %v", seed, len(p.observations), endings)
		}
	}
}

func TestTheLongestBlockIsAsLongAsWanted(t *testing.T) {
	for seed, longest := range []int{MinLongest, 500, 1000, 5000, 50_000} {
		p := newPlan(Options{Seed: uint64(seed), Now: evening, Longest: longest})
		most := 0
		for _, o := range p.observations {
			if o.instance.Subarray == 3 {
				most = len(o.calls)
			}
		}
		if most < longest*9/10-5 || most > longest+20 {
			t.Errorf("the longest block has %d calls, want about %d", most, longest)
		}
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A week that ends in the middle of an observation has the beginning of it.
func TestAnObservationMayStillBeRunning(t *testing.T) {
	whole := week(1, evening)
	last := whole.observations[len(whole.observations)-1]
	cut := week(1, *last.calls[3].Sent)
	for _, o := range cut.observations {
		if o.block.ID != last.block.ID {
			continue
		}
		if said, _, _ := o.outcome(); o.ended != running || said != "" || len(o.calls) != 4 {
			t.Errorf("it ended as %q with %d calls", said, len(o.calls))
		}
		return
	}
	t.Error("it is missing")
}
