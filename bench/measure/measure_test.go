package measure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSpreadIsMedianAndEnds(t *testing.T) {
	for name, c := range map[string]struct {
		values []float64
		want   Spread
	}{
		"none":       {nil, Spread{}},
		"one":        {[]float64{3}, Spread{3, 3, 3}},
		"odd":        {[]float64{9, 1, 4}, Spread{4, 1, 9}},
		"even":       {[]float64{9, 1, 4, 6}, Spread{5, 1, 9}},
		"an outlier": {[]float64{2, 2, 2, 2, 1000}, Spread{2, 2, 1000}},
	} {
		t.Run(name, func(t *testing.T) {
			given := slices.Clone(c.values)
			if got := SpreadOf(c.values); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
			if !slices.Equal(given, c.values) {
				t.Error("the values were reordered")
			}
		})
	}
}

// at is a series of samples of one second with these operations.
func at(operations ...int64) Series {
	var s Series
	for _, n := range operations {
		s.Samples = append(s.Samples, Sample{
			Operations: n, Elapsed: time.Second, P99: time.Duration(n) * time.Millisecond,
		})
	}
	return s
}

func TestRatioComparesWithinARound(t *testing.T) {
	for name, c := range map[string]struct {
		a, b Series
		want Spread
	}{
		// The machine slows down to a tenth; each round still says a half.
		"bad weather":          {at(500, 50, 400), at(1000, 100, 800), Spread{0.5, 0.5, 0.5}},
		"spread":               {at(50, 80, 90), at(100, 100, 100), Spread{0.8, 0.5, 0.9}},
		"a round without b":    {at(50, 80, 90), at(100, 0, 100), Spread{0.7, 0.5, 0.9}},
		"a round is missing":   {at(50, 80), at(100, 100, 100), Spread{0.65, 0.5, 0.8}},
		"nothing measured":     {at(), at(), Spread{}},
		"nothing but failures": {at(50), at(0), Spread{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, latency := Ratio(c.a, c.b), QuantileRatio(c.a, c.b, P99)
			for _, pair := range [][2]float64{
				{got.Median, c.want.Median},
				{got.Low, c.want.Low},
				{got.High, c.want.High},
				{latency.Median, c.want.Median},
			} {
				if math.Abs(pair[0]-pair[1]) > 1e-9 {
					t.Errorf("%v and of latency %v, want %v", got, latency, c.want)
					break
				}
			}
		})
	}
}

func TestSeriesSumsUp(t *testing.T) {
	s := at(100, 300, 200)
	s.Samples = append(s.Samples, Sample{Failed: 3, FirstFailure: "status 503", Elapsed: time.Second})
	if got, want := s.Rate(), (Spread{150, 0, 300}); got != want {
		t.Errorf("rate %v, want %v", got, want)
	}
	if got, want := s.Quantile(P99), (Spread{0.2, 0.1, 0.3}); got != want {
		t.Errorf("p99 %v, want %v: a round without answers has no latency", got, want)
	}
	if s.Failed() != 3 || s.FirstFailure() != "status 503" {
		t.Errorf("failed %d, first %q", s.Failed(), s.FirstFailure())
	}
}

func TestTalliesJoin(t *testing.T) {
	a, b := NewTally(), NewTally()
	for i := 1; i <= 1000; i++ {
		tally := a
		if i%2 == 0 {
			tally = b
		}
		tally.Done(time.Duration(i)*time.Millisecond, 10)
	}
	b.Fail(errors.New("first"))
	a.Fail(errors.New("second"))
	a.FailMany(3, errors.New("third"))
	a.FailMany(0, errors.New("never"))
	s := Total(2*time.Second, a, b)
	if s.Operations != 1000 || s.Failed != 5 || s.Bytes != 10_000 || s.FirstFailure != "first" {
		t.Errorf("%+v", s)
	}
	if s.Rate() != 500 {
		t.Errorf("rate %v, want 500", s.Rate())
	}
	for name, pair := range map[string][2]time.Duration{
		"p50":  {s.P50, 500 * time.Millisecond},
		"p90":  {s.P90, 900 * time.Millisecond},
		"p99":  {s.P99, 990 * time.Millisecond},
		"p999": {s.P999, 999 * time.Millisecond},
	} {
		if off := float64(pair[0])/float64(pair[1]) - 1; math.Abs(off) > 0.01 {
			t.Errorf("%s is %v, want %v", name, pair[0], pair[1])
		}
	}
	if s.Max != time.Second {
		t.Errorf("max %v, want 1s exactly", s.Max)
	}
}

func TestLatenciesBeyondTheBoundsCount(t *testing.T) {
	tally := NewTally()
	tally.Done(0, 0)
	tally.Done(2*longest, 0)
	s := Total(time.Second, tally)
	if s.Operations != 2 || s.Max != 2*longest {
		t.Errorf("%+v", s)
	}
}

func TestSampleWithoutTimeHasNoRate(t *testing.T) {
	if got := (Sample{Operations: 5}).Rate(); got != 0 {
		t.Errorf("%v", got)
	}
}

func TestSampleKeepsItsNamesInJSON(t *testing.T) {
	text, err := json.Marshal(Series{Arm: "a", Samples: []Sample{{P50: 1, Elapsed: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{`"arm"`, `"samples"`, `"operations"`, `"failed"`, `"elapsed_ns":2`, `"p50_ns":1`, `"p999_ns"`, `"max_ns"`, `"bytes"`} {
		if !strings.Contains(string(text), name) {
			t.Errorf("%s is missing in %s", name, text)
		}
	}
}

func TestArmsAreMeasuredInTurn(t *testing.T) {
	var order []string
	arm := func(name string, rate int64) Arm {
		return Arm{name, func(_ context.Context, length time.Duration) (Sample, error) {
			order = append(order, name+" "+length.String())
			return Sample{Operations: rate, Elapsed: time.Second}, nil
		}}
	}
	plan := Plan{Warm: time.Second, Length: 2 * time.Second, Rounds: 2}
	var progress bytes.Buffer
	series, err := Interleave(t.Context(), plan, []Arm{arm("a", 10), arm("b", 20)}, &progress)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a 1s", "b 1s", "a 2s", "b 2s", "a 2s", "b 2s"}; !slices.Equal(order, want) {
		t.Errorf("order %q, want %q", order, want)
	}
	if len(series) != 2 || series[0].Arm != "a" || series[1].Arm != "b" || len(series[1].Samples) != 2 {
		t.Fatalf("series %+v", series)
	}
	if series[1].Rate().Median != 20 {
		t.Errorf("rate of b %v, want 20: the warm-up must not count", series[1].Rate())
	}
	if !strings.Contains(progress.String(), "2 of 2  b: 20/s") {
		t.Errorf("progress does not say what ran:\n%s", &progress)
	}
}

func TestInterleaveEndsWithTheFirstError(t *testing.T) {
	broken := errors.New("no server")
	good := Arm{"good", func(context.Context, time.Duration) (Sample, error) {
		return Sample{Operations: 1, Elapsed: 1}, nil
	}}
	bad := Arm{"bad", func(context.Context, time.Duration) (Sample, error) {
		return Sample{}, broken
	}}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx     context.Context
		plan    Plan
		arms    []Arm
		want    error
		samples int
	}{
		"an arm fails":     {t.Context(), Plan{Length: 1, Rounds: 3}, []Arm{good, bad}, broken, 1},
		"a warm-up fails":  {t.Context(), Plan{Warm: 1, Length: 1, Rounds: 3}, []Arm{good, bad}, broken, 0},
		"the caller stops": {cancelled, Plan{Length: 1, Rounds: 3}, []Arm{good}, context.Canceled, 0},
	} {
		t.Run(name, func(t *testing.T) {
			series, err := Interleave(c.ctx, c.plan, c.arms, new(bytes.Buffer))
			if !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if got := len(series[0].Samples); got != c.samples {
				t.Errorf("%d samples of the good arm, want %d", got, c.samples)
			}
		})
	}
	if _, err := Interleave(t.Context(), Plan{Length: 1}, []Arm{good}, new(bytes.Buffer)); err == nil {
		t.Error("a plan without rounds is taken")
	}
}
