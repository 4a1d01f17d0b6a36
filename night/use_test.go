package night

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"oda"
)

// made returns random stretches of a few seconds. Many overlap or touch.
func made(random *rand.Rand, n int) []Stretch {
	all := make([]Stretch, n)
	for i := range all {
		from := oda.Instant(random.IntN(3 * n))
		all[i] = Stretch{from, from + oda.Instant(random.IntN(5))}
	}
	return all
}

func TestAUnionOfPartsCountsEachMomentOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		n := 1 + random.IntN(4000)
		all := made(random, n)
		if round%3 == 0 {
			slices.SortFunc(all, func(a, b Stretch) int { return int(a.From - b.From) })
		}
		end := oda.Instant(random.IntN(3 * n))
		isBusy := make([]bool, 3*n+5)
		parts := make([]union, 1+random.IntN(4))
		for _, one := range all {
			parts[random.IntN(len(parts))].add(one.From, oda.Elapsed(one.To-one.From))
			for at := one.From; at < one.To; at++ {
				isBusy[at] = true
			}
		}
		var joined union
		for i := range parts {
			if random.IntN(2) == 0 {
				parts[i].settle()
			}
			joined.join(&parts[i])
		}
		var want, before oda.Elapsed
		for at, busy := range isBusy {
			if busy {
				want++
				if oda.Instant(at) < end {
					before++
				}
			}
		}
		if joined.sum() != want || joined.until(end) != before || joined.calls != n {
			t.Fatalf("round %d: %d calls are busy for %d, and %d before %d; want %d and %d", round, joined.calls, joined.sum(), joined.until(end), end, want, before)
		}
	}
}

// Beyond the bound, a union counts whole seconds, in whichever order the calls come.
func TestTheUnionOfTooManyCallsTakesBoundedMemory(t *testing.T) {
	const second = 1_000_000
	calls := make([]Stretch, maxTimed+10)
	for i := range calls { // at the beginning of every other second, and late in some of the others
		from := oda.Instant(i%1000) * 2 * second
		calls[i] = Stretch{from - 20, from + 20}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2 {
		random.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
		var whole, half, other union
		for i, one := range calls {
			whole.add(one.From, oda.Elapsed(one.To-one.From))
			if i%2 == 0 {
				half.add(one.From, oda.Elapsed(one.To-one.From))
			} else {
				other.add(one.From, oda.Elapsed(one.To-one.From))
			}
		}
		half.join(&other)
		if want := oda.Elapsed(2000 * second); whole.sum() != want || half.sum() != want || cap(whole.stretches) > 8*maxTimed {
			t.Errorf("busy for %d and %d, want %d; %d stretches have room", whole.sum(), half.sum(), want, cap(whole.stretches))
		}
	}
}

// timed is a record of a call that took some microseconds.
func timed(request string, second, took int) string {
	return fmt.Sprintf(`{"request":%q,"request_sent_at":"1970-01-01T01:00:%02dZ","response_received_at":"1970-01-01T01:00:%02d.%06dZ"}`, request, second, second, took)
}

func TestUnusualCallsAreComparedWithTheirMedian(t *testing.T) {
	for _, test := range []struct {
		took []int
		want []int // sequences
	}{
		{[]int{10, 10, 10, 20}, nil},                        // too few
		{[]int{10, 10, 10, 10, 20}, []int{5}},               // exactly twice
		{[]int{10, 10, 10, 10, 19}, nil},                    // not twice
		{[]int{10, 10, 11, 11, 20, 21}, nil},                // the median of 6 calls is 11
		{[]int{10, 10, 10, 11, 20, 21}, []int{6}},           // it is 10.5
		{[]int{0, 0, 0, 5, 5}, nil},                         // nothing is a multiple of 0
		{[]int{30, 10, 10, 40, 10, 10, 30}, []int{4, 1, 7}}, // equal ones in the order of time
	} {
		var records []string
		for i, took := range test.took {
			records = append(records, timed("r", i, took), `{"request":"r"}`, timed("other", i, 7))
		}
		report := reportOf(Query{}, []total{sumOf(records...)})
		var got []int
		for _, c := range report.Unusual {
			got = append(got, int(c.Sequence+2)/3)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%v: %v are unusual, want %v: %+v", test.took, got, test.want, report.Unusual)
		}
	}
}

// What is unusual is the same however the blocks are divided among workers; beyond the
// bound it is not known.
func TestUnusualCallsOfParts(t *testing.T) {
	q := Query{From: 0, To: oda.Day(1).Begin()}
	random := rand.New(rand.NewPCG(1, 2))
	whole, parts := newTotal(q), []total{newTotal(q), newTotal(q), newTotal(q)}
	for n := range 60 {
		block := Block{ID: fmt.Sprint("b", n%7)}
		r := oda.Record{Sequence: int64(n + 1), RecordedOn: 1, Text: []byte(timed(fmt.Sprint("r", n%4), n, 10+random.IntN(10)*random.IntN(20)))}
		whole.add(&block, r)
		parts[n%7%3].add(&block, r)
	}
	want, _ := whole.unusual()
	if got := reportOf(q, parts).Unusual; len(want) < 3 || !slices.Equal(got, want) {
		t.Errorf("%+v\nare unusual, want\n%+v", got, want)
	}
	whole.timed = maxTimed
	whole.add(&Block{ID: "b"}, oda.Record{Sequence: 100, Text: []byte(timed("r1", 1, 1))})
	if got, usual := whole.unusual(); len(got)+len(usual) != 0 {
		t.Errorf("of too many calls, %+v are unusual", got)
	}
}

func TestErrorsAreCounted(t *testing.T) {
	q := Query{From: 0, To: oda.Day(1).Begin()}
	var parts []total
	for b := range 3 {
		s, block := newTotal(q), Block{ID: fmt.Sprint("b", b)}
		for i, text := range []string{
			`{"request":"r","status":"no","request_sent_at":"1970-01-01T02:00:00Z"}`,
			`{"request":"r","error":{"detail":"x.Gone: it"},"request_sent_at":"1970-01-01T01:00:00Z"}`,
			`{"request":"q","error":{"detail":"x.Gone: it"}}`,
			`{"request":"r"}`,
		} {
			s.add(&block, oda.Record{Sequence: int64(i + 1), RecordedOn: 7_000_000, Text: []byte(text)})
		}
		for i := range 60 {
			s.add(&block, oda.Record{Sequence: int64(i + 10), RecordedOn: 7_000_000, Text: fmt.Appendf(nil, `{"request":"r","error":{"detail":"e%02d"}}`, i)})
		}
		parts = append(parts, s)
	}
	errors := reportOf(q, parts).Errors
	if len(errors) != frequentOnes {
		t.Fatalf("%d errors are reported", len(errors))
	}
	gone, none, third := errors[0], errors[1], errors[2]
	if *gone.Type != "Gone" || *gone.Detail != "x.Gone: it" || gone.Calls != 6 || gone.Blocks != 3 || gone.First != (CallPlace{"b0", 3}) {
		t.Errorf("the most frequent is %+v", gone)
	}
	if none.Type != nil || none.Detail != nil || none.Calls != 3 || none.First != (CallPlace{"b0", 1}) || *third.Detail != "e00" {
		t.Errorf("then come %+v and %+v", none, third)
	}
}

func TestErrorsTakeBoundedMemory(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	order := random.Perm(2*maxErrors + 100)
	var records []string
	for _, i := range order {
		records = append(records, fmt.Sprintf(`{"request":"r","error":{"detail":"e%05d"}}`, i))
	}
	s := sumOf(records...)
	s.bound()
	report := reportOf(Query{}, []total{s, sumOf(records[:100]...)})
	if len(s.errors) != maxErrors || report.Failures != int64(len(records)+100) || len(report.Errors) != frequentOnes {
		t.Errorf("%d errors are kept", len(s.errors))
	}
	if _, known := s.errors[errorName{"", "e00000"}]; !known {
		t.Error("the first of the alphabet is not known")
	}
}
