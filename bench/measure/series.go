package measure

import (
	"slices"
	"time"
)

// Series is what one arm gave, round by round.
type Series struct {
	Arm     string   `json:"arm"`
	Samples []Sample `json:"samples"`
}

// Spread is the median of a few values with the smallest and the largest.
type Spread struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// SpreadOf takes the median and the ends of the values; without values it is
// zero. The median of an even number of values is the middle of the two.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	median := sorted[middle]
	if len(sorted)%2 == 0 {
		median = (sorted[middle-1] + sorted[middle]) / 2
	}
	return Spread{Median: median, Low: sorted[0], High: sorted[len(sorted)-1]}
}

// Rate is the operations in a second over the rounds.
func (s Series) Rate() Spread {
	values := make([]float64, len(s.Samples))
	for i, sample := range s.Samples {
		values[i] = sample.Rate()
	}
	return SpreadOf(values)
}

// Quantile is one latency over the rounds, in seconds. Rounds in which nothing
// succeeded have no latency and do not count.
func (s Series) Quantile(which func(Sample) time.Duration) Spread {
	values := make([]float64, 0, len(s.Samples))
	for _, sample := range s.Samples {
		if sample.Operations > 0 {
			values = append(values, which(sample).Seconds())
		}
	}
	return SpreadOf(values)
}

// Failed counts the failed operations of all rounds.
func (s Series) Failed() int64 {
	var failed int64
	for _, sample := range s.Samples {
		failed += sample.Failed
	}
	return failed
}

// FirstFailure says what failed first in the earliest round with a failure.
func (s Series) FirstFailure() string {
	for _, sample := range s.Samples {
		if sample.Failed > 0 {
			return sample.FirstFailure
		}
	}
	return ""
}

// Ratio compares the rates of two series round by round (same round, same
// weather), then takes the median.
func Ratio(a, b Series) Spread {
	return ratio(a, b, Sample.Rate)
}

// QuantileRatio does as Ratio with a latency: 2 means that a takes twice as
// long as b.
func QuantileRatio(a, b Series, which func(Sample) time.Duration) Spread {
	return ratio(a, b, func(s Sample) float64 { return which(s).Seconds() })
}

// ratio leaves out a round in which b measured nothing: no number can be made
// of it, and infinity has no place in a report.
func ratio(a, b Series, value func(Sample) float64) Spread {
	rounds := min(len(a.Samples), len(b.Samples))
	values := make([]float64, 0, rounds)
	for i := range rounds {
		if below := value(b.Samples[i]); below > 0 {
			values = append(values, value(a.Samples[i])/below)
		}
	}
	return SpreadOf(values)
}
