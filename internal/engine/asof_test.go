package engine

import (
	"math/rand/v2"
	"testing"

	"oda"
)

func TestTheNeighboursOfAnInstantAreFoundAtAnyRate(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, rate := range map[string]struct {
		gap   func(i int) int64
		steps int // bound for 10,000 numbers; halving alone takes 14
	}{
		"steady":    {func(int) int64 { return 1000 }, 5},
		"uneven":    {func(int) int64 { return 1 + random.Int64N(2000) }, 12},
		"in bursts": {func(i int) int64 { return []int64{1, 1_000_000_000}[max(0, 1-i%100)] }, 60},
		"slower":    {func(i int) int64 { return 1 + int64(i)*int64(i) }, 60},
		"stopped":   {func(i int) int64 { return []int64{1, 1 << 50}[i/9999] }, 60},
	} {
		t.Run(name, func(t *testing.T) {
			on := []oda.Instant{5}
			for i := 1; i < 10_000; i++ {
				on = append(on, on[i-1]+oda.Instant(rate.gap(i)))
			}
			last := int64(len(on)) - 1
			for range 2000 {
				at := on[random.Int64N(last)] + oda.Instant(random.Int64N(3)-1)
				if random.IntN(2) == 0 {
					at = 5 + oda.Instant(random.Int64N(int64(on[last]-5)))
				}
				at = max(at, 5)
				steps := 0
				low, high, err := Around(at, Mark{0, on[0]}, Mark{last + 1, on[last] + 1}, func(n int64) (oda.Instant, error) {
					steps++
					return on[n], nil
				})
				if err != nil || high.Number != low.Number+1 || on[low.Number] > at || high.Number <= last && on[high.Number] <= at {
					t.Fatalf("%d lies between %+v and %+v, %v", at, low, high, err)
				}
				if steps > rate.steps {
					t.Fatalf("Around takes %d steps to find %d", steps, at)
				}
			}
		})
	}
}
