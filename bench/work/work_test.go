package work

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"oda/bench/measure"
	"oda/bench/peers"
	"oda/bench/report"
)

func TestIdentifiersAllHaveTheSameLength(t *testing.T) {
	for _, id := range []string{
		identifier("sbd-big", 0), identifier("sbd-new", 999_999_999), identifier("key-rec", 42), blank(0), blank(4_999),
	} {
		if len(id) != identifierLength {
			t.Errorf("%s has %d characters, not %d", id, len(id), identifierLength)
		}
	}
}

func TestFormPutsEachIdentifierInItsPlacesOnly(t *testing.T) {
	f := severalForm(3, 2_000)
	for i := range 3 {
		f.set(i, identifier("sbd-big", int64(i)))
	}
	first := bytes.Clone(f.body)
	f.set(1, identifier("sbd-big", 77))
	if bytes.Contains(f.body, []byte("~")) {
		t.Errorf("a blank is left in %.200s", f.body)
	}
	want := bytes.ReplaceAll(first, []byte(identifier("sbd-big", 1)), []byte(identifier("sbd-big", 77)))
	if !bytes.Equal(f.body, want) {
		t.Errorf("the form is\n%s\nnot\n%s", f.body, want)
	}
	for i, id := range []string{identifier("sbd-big", 0), identifier("sbd-big", 77), identifier("sbd-big", 2)} {
		if !bytes.Contains(f.body, []byte(`"`+id+`"`)) {
			t.Errorf("identifier %d is missing", i)
		}
	}
}

func TestCreatorNamesTheEntityAlikeInPathAndBody(t *testing.T) {
	var number atomic.Int64
	w := newCreator(createRequest(2_000), "sbd-new", &number, 200)
	w.Next(nil)
	request := w.Next(nil)
	id := identifier("sbd-new", 2)
	if got := bytes.Count(request, []byte(id)); got != 2 {
		t.Errorf("%s stands %d times in the request, not in path and body: %.300s", id, got, request)
	}
	if !bytes.HasSuffix(request, bytes.ReplaceAll(peers.Document(2_000, blank(0)), []byte(blank(0)), []byte(id))) {
		t.Error("the request does not end with the document")
	}
}

func TestBatcherNeverUsesAKeyTwice(t *testing.T) {
	var number atomic.Int64
	a, b := newBatcher("eb-1", 20, &number), newBatcher("eb-2", 20, &number)
	seen := map[string]bool{}
	for range 3 {
		for _, request := range [][]byte{a.Next(nil), b.Next(nil)} {
			for _, part := range bytes.Split(request, []byte(`{"key":"`))[1:] {
				key := string(part[:identifierLength])
				if seen[key] {
					t.Fatalf("the key %s came twice", key)
				}
				seen[key] = true
			}
		}
	}
	if len(seen) != 120 {
		t.Errorf("%d keys, not 120", len(seen))
	}
}

func TestPoolMovesOnWhenABlockHasTwiceItsRecords(t *testing.T) {
	p := newPool(10, [][]byte{[]byte("a"), []byte("b"), []byte("c")})
	counts := map[string]int{}
	for range 30 {
		counts[string(p.next())]++
	}
	for block, n := range counts {
		if n < 9 || n > 11 {
			t.Errorf("%s got %d records, not about 10", block, n)
		}
	}
	if len(counts) != 3 {
		t.Errorf("%d blocks were used, not 3", len(counts))
	}
}

func TestPlansCanBeFilledInWholeRequests(t *testing.T) {
	for name, p := range map[string]plan{"full": full(), "quick": quick()} {
		whole := append([]int{updated(p.busy), p.hot}, p.sizes...)
		for _, n := range whole {
			if n%min(n, p.several) != 0 {
				t.Errorf("%s: %d entities are no multiple of %d", name, n, p.several)
			}
		}
		for _, n := range append([]int{p.longBlock}, p.lengths...) {
			if n%min(n, p.scaleBatch) != 0 {
				t.Errorf("%s: %d records are no multiple of %d", name, n, p.scaleBatch)
			}
		}
		if p.sizes[0] < p.busy {
			t.Errorf("%s: the smallest archive has fewer entities than there are connections to update them", name)
		}
		if rewriteLengths(p) == 0 || rewriteLengths(p) > len(p.lengths) {
			t.Errorf("%s: the rewriting peer gets %d of %d lengths", name, rewriteLengths(p), len(p.lengths))
		}
	}
}

func TestTheFullPlanKeepsToItsTime(t *testing.T) {
	var sum time.Duration
	for _, sc := range scenarios() {
		sum += sc.takes(full())
	}
	if sum > 45*time.Minute {
		t.Errorf("the plan takes %v, which leaves too little of an hour for starting and filling", sum)
	}
}

func TestScaleBlocksHoldAllRecords(t *testing.T) {
	s := &stage{plan: full()}
	sum, shortest, longest := 0, math.MaxInt, 0
	blocks := s.scaleBlocks()
	for _, b := range blocks[:len(blocks)-1] {
		sum, shortest, longest = sum+b.length, min(shortest, b.length), max(longest, b.length)
	}
	sum += blocks[len(blocks)-1].length
	if sum != s.plan.scaleRecords || shortest != s.plan.scaleShortest || longest != s.plan.scaleLongest {
		t.Errorf("%d records in blocks of %d to %d", sum, shortest, longest)
	}
}

func TestTenthsAreTenAlsoWhenOneBatchFillsSeveral(t *testing.T) {
	marks := &tenths{total: 100, last: time.Now()}
	for range 4 {
		time.Sleep(time.Millisecond)
		marks.add(25)
	}
	if len(marks.rates) != 10 {
		t.Fatalf("%d tenths", len(marks.rates))
	}
	for i, rate := range marks.rates {
		if math.IsInf(rate, 0) || math.IsNaN(rate) || rate <= 0 {
			t.Errorf("tenth %d has the rate %v", i+1, rate)
		}
	}
}

func TestInParallelDoesAllAndStopsAtTheFirstError(t *testing.T) {
	var done atomic.Int64
	count := func(context.Context, int, int) error { done.Add(1); return nil }
	if err := inParallel(t.Context(), 4, 100, count); err != nil || done.Load() != 100 {
		t.Errorf("%d of 100 were done, %v", done.Load(), err)
	}
	broken := errors.New("broken")
	done.Store(0)
	err := inParallel(t.Context(), 4, 1_000_000, func(_ context.Context, _, i int) error {
		done.Add(1)
		if i == 10 {
			return fmt.Errorf("number %d: %w", i, broken)
		}
		return nil
	})
	if !errors.Is(err, broken) || done.Load() == 1_000_000 {
		t.Errorf("it went on to %d and returned %v", done.Load(), err)
	}
}

func TestRatiosOfWhatWasNotMeasuredAreUnknown(t *testing.T) {
	c := compared{series: []measure.Series{{Arm: bare, Samples: []measure.Sample{{Operations: 10, Elapsed: time.Second}}}}}
	if got := c.ratio(onSQLite, bare).Median; !math.IsNaN(got) {
		t.Errorf("the ratio is %v", got)
	}
	if got := c.ratio(bare, bare).Median; got != 1 {
		t.Errorf("the ratio to itself is %v", got)
	}
}

func TestMergeReplacesWhatWasMeasuredAgain(t *testing.T) {
	spread := func(v float64) measure.Spread { return measure.Spread{Median: v} }
	earlier := &report.Result{
		Version:  "1",
		Sections: []report.Section{{ID: "a", Title: "old"}, {ID: "b", Title: "old"}},
		Budgets:  []report.Budget{{Work: "w", Engine: "SQLite", Value: spread(1)}, {Work: "w", Engine: "PostgreSQL", Value: spread(1)}},
		Peers:    map[string]string{"oda": "1"},
	}
	later := &report.Result{
		Started:  time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Sections: []report.Section{{ID: "b", Title: "new"}, {ID: "c", Title: "new"}},
		Budgets:  []report.Budget{{Work: "w", Engine: "PostgreSQL", Value: spread(2)}},
		Peers:    map[string]string{"PocketBase": "2"},
	}
	merged := Merge(earlier, later)
	var titles []string
	for _, s := range merged.Sections {
		titles = append(titles, s.ID+s.Title)
	}
	if got := fmt.Sprint(titles); got != "[aold bnew cnew]" {
		t.Errorf("sections are %s", got)
	}
	if len(merged.Budgets) != 2 || merged.Budgets[0].Value.Median != 1 || merged.Budgets[1].Value.Median != 2 {
		t.Errorf("budgets are %+v", merged.Budgets)
	}
	if len(merged.Peers) != 2 || merged.Version != "1" || earlier.Sections[1].Title != "old" {
		t.Errorf("merged into %+v from %+v", merged, earlier)
	}
}
