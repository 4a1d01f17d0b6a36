package engine

import "testing"

func TestATransactionTakesHalfOfTheRequests(t *testing.T) {
	for _, test := range []struct{ waiting, answered, want int }{
		{1, 0, 8}, {8, 8, 8}, {9, 8, 9}, {50, 14, 32}, {32, 32, 32}, {64, 0, 32}, {14, 50, 32},
	} {
		if got := Half(test.waiting, test.answered); got != test.want {
			t.Errorf("of %d waiting requests, with %d just answered, a transaction takes %d, want %d", test.waiting, test.answered, got, test.want)
		}
	}
	// Whoever has sent 64 requests at once, and sends each again when it is answered,
	// finds them in two equal halves.
	waiting, answered := 64, 0
	for range 8 {
		taken := min(waiting, Half(waiting, answered))
		waiting, answered = waiting-taken+answered, taken
	}
	if waiting != 32 || answered != 32 {
		t.Errorf("in the end %d requests wait while %d are written, want two halves", waiting, answered)
	}
}
