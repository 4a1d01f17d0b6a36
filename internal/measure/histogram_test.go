package measure

import (
	"slices"
	"sync"
	"testing"
	"time"
)

func TestAValueCountsUpToItsBound(t *testing.T) {
	h := NewHistogram(1, 10, 100)
	for _, value := range []int64{0, 1, 2, 10, 11, 100, 101, 5000} {
		h.Note(value)
	}
	got := h.Read()
	if !slices.Equal(got.Each, []int64{2, 2, 2, 2}) || got.Sum != 5225 || !slices.Equal(got.Bounds, []int64{1, 10, 100}) {
		t.Errorf("got %+v", got)
	}
}

func TestNothingIsLostWhenManyCount(t *testing.T) {
	h := NewHistogram(Durations...)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range 1000 {
				h.Note(int64(i) * int64(time.Millisecond))
			}
		})
	}
	group.Wait()
	if n := h.Read().Total(); n != 8000 {
		t.Errorf("%d of 8000 values were counted", n)
	}
}

func BenchmarkNote(b *testing.B) {
	h := NewHistogram(Durations...)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			h.Note(int64(300 * time.Microsecond))
		}
	})
}
