package alignment

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"oda/internal/test/fault"
	"oda/internal/test/proof"
)

// callsOf makes calls of a text with a word for each: the function, what it was called with
// behind a colon, and an exclamation mark if it failed.
func callsOf(text string) []Call {
	var calls []Call
	for _, word := range strings.Fields(text) {
		name, said, _ := strings.Cut(strings.TrimSuffix(word, "!"), ":")
		c := Call{Function: int32(name[0]), Failed: strings.HasSuffix(word, "!"), Took: -1}
		for _, r := range said {
			c.Said = c.Said*31 + uint64(r)
		}
		calls = append(calls, c)
	}
	return calls
}

// written writes rows as the two texts above each other.
func written(rows []Row, from, to string) string {
	var out []string
	word := func(text string, i int) string {
		if i < 0 {
			return "-"
		}
		return strings.Fields(text)[i]
	}
	for _, r := range rows {
		out = append(out, word(from, r.From)+"|"+word(to, r.To))
	}
	return strings.Join(out, " ")
}

func TestCallsAreAlignedByFunctionAndOrder(t *testing.T) {
	for _, test := range []struct{ from, to, want string }{
		{"", "", ""},
		{"a b", "", "a|- b|-"},
		{"", "a b", "-|a -|b"},
		{"a b c", "a b c", "a|a b|b c|c"},
		{"a:1 b:1", "a:2 b:2", "a:1|a:2 b:1|b:2"},                           // the same steps, said otherwise
		{"a t:1 t:2 s", "a t:2 t:1 s", "a|a t:1|t:2 t:2|t:1 s|s"},           // parallel calls came in another order
		{"a t:1 t:2 t:3 s", "a t:2 t:3 s", "a|a t:1|- t:2|t:2 t:3|t:3 s|s"}, // the one that is missing
		{"a s", "a t:1 t:2 s", "a|a -|t:1 -|t:2 s|s"},                       // extra
		{"c s e", "c c c s e", "c|c -|c -|c s|s e|e"},                       // tried again
		{"a c s x r", "a c s e r", "a|a c|c s|s x|- -|e r|r"},               // another function
		{"a:1 b:1 c:1", "c:1 a:1 b:1", "-|c:1 a:1|a:1 b:1|b:1 c:1|-"},       // moved
		{"a b! c", "a! b c", "a|a! b!|b c|c"},                               // failing is no other step
	} {
		rows, isBest := Calls(callsOf(test.from), callsOf(test.to))
		if got := written(rows, test.from, test.to); got != test.want || !isBest {
			t.Errorf("%q next to %q is %q, want %q (best: %v)", test.from, test.to, got, test.want, isBest)
		}
	}
}

// best is the model: how many pairs the best alignment has, and how many of them are the same.
func best(from, to []Call) [2]int {
	known := map[Row][2]int{}
	var of func(i, j int) [2]int
	of = func(i, j int) (most [2]int) {
		if i == len(from) || j == len(to) {
			return most
		}
		if sum, ok := known[Row{i, j}]; ok {
			return sum
		}
		all := [][2]int{of(i+1, j), of(i, j+1)}
		if from[i].Function == to[j].Function {
			sum := of(i+1, j+1)
			sum[0]++
			if from[i].Said == to[j].Said {
				sum[1]++
			}
			all = append(all, sum)
		}
		for _, sum := range all {
			if sum[0] > most[0] || sum[0] == most[0] && sum[1] > most[1] {
				most = sum
			}
		}
		known[Row{i, j}] = most
		return most
	}
	return of(0, 0)
}

// madeUp makes up a run, and another with some calls changed, left out and added.
func madeUp(random *rand.Rand, n, functions, unlike int) (from, to []Call) {
	call := func() Call {
		return Call{Function: int32(random.IntN(functions)), Said: uint64(random.IntN(3)), Failed: random.IntN(9) == 0, Took: -1}
	}
	for range n {
		c := call()
		switch other := random.IntN(100); {
		case other >= unlike:
			from, to = append(from, c), append(to, c)
		case other%4 == 0:
			from = append(from, c)
		case other%4 == 1:
			to = append(to, c)
		case other%4 == 2:
			from, to = append(from, c), append(to, Call{Function: c.Function, Said: 7})
		default:
			from, to = append(from, c), append(to, call())
		}
	}
	return from, to
}

// mistake says what is wrong with rows, whatever they align: they have each call once and in
// order, and only calls of the same function next to each other.
func mistake(rows []Row, from, to []Call) string {
	i, j := 0, 0
	for _, r := range rows {
		if r.From >= 0 && r.From != i || r.To >= 0 && r.To != j || r.From < 0 && r.To < 0 {
			return fmt.Sprintf("%v comes after %d and %d calls", r, i, j)
		}
		if r.From >= 0 && r.To >= 0 && from[r.From].Function != to[r.To].Function {
			return fmt.Sprintf("%v has two functions", r)
		}
		i, j = i+min(1, r.From+1), j+min(1, r.To+1)
	}
	if i != len(from) || j != len(to) {
		return fmt.Sprintf("%d and %d calls are missing", len(from)-i, len(to)-j)
	}
	return ""
}

// What is said to be best is as good as the model, within bounds that are small enough to be
// met as well as left, and all else is an alignment still.
func TestAnAlignmentIsTheBest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	seen := map[bool]int{}
	for round := range 2000 {
		from, to := madeUp(random, random.IntN(60), 1+random.IntN(5), random.IntN(101))
		a := aligner{from: from, to: to, table: 50 + random.IntN(2000), left: 3000, window: 2 + random.IntN(6), isBest: true}
		a.all()
		if wrong := mistake(a.rows, from, to); wrong != "" {
			t.Fatalf("round %d: %s", round, wrong)
		}
		seen[a.isBest]++
		s := SumOf(a.rows, from, to)
		same := 0
		for _, r := range a.rows {
			if r.From >= 0 && r.To >= 0 && from[r.From].Said == to[r.To].Said {
				same++
			}
		}
		if want := best(from, to); a.isBest && [2]int{s.Steps, same} != want {
			t.Fatalf("round %d: %d pairs, of which %d are the same, want %v", round, s.Steps, same, want)
		}
		if s.Of[Extra]+s.Steps != len(to) || s.Of[Missing]+s.Steps != len(from) {
			t.Fatalf("round %d: %+v does not add up to %d and %d calls", round, s, len(from), len(to))
		}
	}
	if seen[true] < 300 || seen[false] < 300 {
		t.Errorf("the bounds were met %d times and left %d times", seen[true], seen[false])
	}
}

// Long runs that are much alike are aligned as well as can be, and long runs of which nothing
// is alike soon; a long part that only one run has shifts nothing that follows.
func TestLongRunsAreAlignedSoon(t *testing.T) {
	many := proof.Rounds(30_000, 100_000)
	random := rand.New(rand.NewPCG(3, 4))
	alike := func(n, unlike int) [2][]Call {
		from, to := madeUp(random, n, 12, unlike)
		return [2][]Call{from, to}
	}
	few := alike(many, 0)
	for at := many / 10; at < many; at += many / 10 {
		few[1] = slices.Insert(slices.Clone(few[1]), at, Call{Function: 99})
	}
	var long [2][]Call // half alike, with a call every now and then that is made once
	for i := range 100 {
		once, part := Call{Function: 50, Said: uint64(i)}, alike(many/100, 50)
		for run := range long {
			long[run] = append(append(long[run], part[run]...), once)
		}
	}
	extra := alike(5000, 0)[0]
	long[1] = slices.Insert(long[1], many/4, extra...)
	for name, test := range map[string]struct {
		runs   [2][]Call
		isBest bool
		least  float64 // share of the calls that are aligned
	}{
		"the same":      {alike(many, 0), true, 1},
		"9 extra":       {few, true, 0.999},
		"half alike":    {alike(many, 50), false, 0.7},
		"nothing alike": {alike(many, 100), false, 0.4},
		"a long part":   {long, false, 0.7},
		"one call":      {[2][]Call{few[0], {{Function: 1}}}, true, 0},
	} {
		from, to := test.runs[0], test.runs[1]
		start := fault.ProcessorTime()
		rows, isBest := Calls(from, to)
		took := fault.ProcessorTime() - start
		s := SumOf(rows, from, to)
		t.Logf("%-14s %6d and %6d calls in %v: %d steps, best %v", name, len(from), len(to), took.Round(time.Millisecond), s.Steps, isBest)
		if wrong := mistake(rows, from, to); wrong != "" || isBest != test.isBest || float64(s.Steps) < test.least*float64(min(len(from), len(to))) {
			t.Errorf("%s: %d steps of %d and %d calls, best %v %s", name, s.Steps, len(from), len(to), isBest, wrong)
		}
		if took > 5*time.Second {
			t.Errorf("%s takes %v", name, took)
		}
	}
}
