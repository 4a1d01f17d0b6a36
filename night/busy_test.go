package night

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"oda"
)

func TestBusyTimeCountsEachMomentOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		var busy busyTime
		isBusy, want := [60]bool{}, oda.Elapsed(0)
		closedUntil := 0
		for range random.IntN(30) {
			from := closedUntil + random.IntN(50-closedUntil)
			to := from + random.IntN(10)
			c := oda.CallOf(fmt.Appendf(nil, `{"request_sent_at":"1970-01-01T00:00:%02dZ","response_received_at":"1970-01-01T00:00:%02dZ"}`, from, to))
			busy.add(&c)
			for second := from; second < to; second++ {
				isBusy[second] = true
			}
			if random.IntN(5) == 0 {
				busy.close(random.IntN(3))
				if closedUntil = int(busy.until / 1_000_000); closedUntil >= 50 {
					break
				}
			}
		}
		for _, one := range isBusy {
			if one {
				want += 1_000_000
			}
		}
		if got := busy.sum(); got != want || busy.late {
			t.Fatalf("round %d: busy for %d, want %d; late: %t", round, got, want, busy.late)
		}
	}
}

func TestACallBeforeWhatIsClosedIsNoticed(t *testing.T) {
	var busy busyTime
	for _, sent := range []string{"10", "30", "05"} {
		c := oda.CallOf([]byte(`{"request_sent_at":"1970-01-01T00:00:` + sent + `Z","response_received_at":"1970-01-01T00:00:40Z"}`))
		if sent == "10" {
			c = oda.CallOf([]byte(`{"request_sent_at":"1970-01-01T00:00:10Z","response_received_at":"1970-01-01T00:00:20Z"}`))
		}
		busy.add(&c)
		if sent == "30" {
			busy.close(1)
		}
	}
	if !busy.late || busy.sum() != 30_000_000 {
		t.Errorf("late: %t, busy for %d", busy.late, busy.sum())
	}
}
