package skuid

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oda"
	"oda/internal/test/must"
)

func TestNumbersAreWrittenInCrockfordBase32WithoutPadding(t *testing.T) {
	for _, c := range []struct {
		about             string
		at, number, extra uint64
		want              string
	}{
		{"nothing at all", 0, 0, 0, "0"},
		{"the last digit", 0, 0, 31, "z"},
		{"two digits", 0, 0, 32, "10"},
		{"generator 1 is 2 x 32^2", 0, 1, 0, "200"},
		{"one millisecond is 2 x 32^4", 1, 0, 0, "20000"},
		{"all of generator and suffix", 0, 1023, 2047, "1zzzz"},
		{"one second is (32^2 + 30 x 32 + 16) x 32^4", 1000, 0, 0, "1yg0000"},
		{"every bit of 63", 1<<42 - 1, 1023, 2047, "7zzzzzzzzzzzz"},
	} {
		if got := encode(c.at<<21 | c.number<<11 | c.extra); got != c.want {
			t.Errorf("%s: got %q, want %q", c.about, got, c.want)
		}
	}
}

func TestAnIdentifierOfTheOriginalServiceHasTheSameLayout(t *testing.T) {
	// It is also known as sbd-986-20260218-6txs9jhxnk7.
	prefix, at, generator, _ := parse(t, "sbd-6txs9jhxnk7")
	if day := at.Format(time.DateOnly); prefix != "sbd" || generator != 986 || day != "2026-02-18" {
		t.Errorf("got %s, generator %d, day %s", prefix, generator, day)
	}
}

func TestAnIdentifierSaysItsKindTimeAndGenerator(t *testing.T) {
	now := time.Date(2026, 11, 15, 3, 39, 8, 123e6, time.UTC)
	for _, number := range []uint16{0, 1, 512, 1023} {
		g := newGenerator(t, number, withClock(func() time.Time { return now }))
		for _, kind := range oda.Kinds {
			id := must.Get(g.Mint(context.Background(), kind))(t)
			prefix, at, generator, _ := parse(t, id)
			if prefix != kind.Prefix() || !at.Equal(now) || generator != uint64(number) {
				t.Errorf("%s of generator %d: %q says %s, %s, %d", kind, number, id, prefix, at, generator)
			}
			if !oda.ValidID(id) {
				t.Errorf("%q is not a valid identifier", id)
			}
		}
	}
}

func TestGeneratorNumbersAreBounded(t *testing.T) {
	if _, err := NewGenerator(1024); err == nil || !strings.Contains(err.Error(), "0 to 1023") {
		t.Errorf("generator 1024: got %v", err)
	}
	if n := newGenerator(t, DefaultGenerator()).Number(); n > 1023 {
		t.Errorf("the default generator is %d", n)
	}
}

func TestDefaultGeneratorsSpreadOverHostsAndProcesses(t *testing.T) {
	seen := make(map[uint16]bool)
	for pid := range 1024 {
		seen[generatorFor("host-a", pid)] = true
		seen[generatorFor("host-b", pid)] = true
	}
	// 2048 random draws of 1024 numbers hit about 885 of them.
	if len(seen) < 800 {
		t.Errorf("2048 processes share %d generator numbers", len(seen))
	}
}

func TestAMillionIdentifiersFromEightGoroutinesAreDifferent(t *testing.T) {
	const goroutines, each = 8, 125_000
	g := newGenerator(t, 3)
	numbers := make([][]string, goroutines)
	var wait sync.WaitGroup
	for i := range goroutines {
		wait.Go(func() {
			prefix := oda.Kinds[i%len(oda.Kinds)].Prefix()
			for range each {
				id, err := g.Next(prefix)
				if err != nil {
					t.Error(err)
					return
				}
				numbers[i] = append(numbers[i], id[len(prefix):])
			}
		})
	}
	wait.Wait()
	all := slices.Concat(numbers...)
	if len(all) != goroutines*each {
		t.Fatalf("%d identifiers, want %d", len(all), goroutines*each)
	}
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != goroutines*each {
		t.Errorf("%d of %d numbers are different", n, goroutines*each)
	}
}

func TestWhileTheClockStandsStillEverySuffixIsUsedOncePerMillisecond(t *testing.T) {
	const at, number = 1000, 5
	g := newGenerator(t, number, withClock(func() time.Time { return time.UnixMilli(epoch + at) }))
	for step := range uint64(3) {
		got := make([]uint64, 2048)
		for i := range got {
			got[i] = next(t, g)
		}
		slices.Sort(got)
		for suffix, n := range got {
			if want := (at+step)<<21 | number<<11 | uint64(suffix); n != want {
				t.Fatalf("millisecond %d, suffix %d: got %d, want %d", at+step, suffix, n, want)
			}
		}
	}
}

func TestSuffixesAreRandom(t *testing.T) {
	first := make(map[uint64]bool)
	for range 64 {
		g := newGenerator(t, 5, withClock(func() time.Time { return time.UnixMilli(epoch) }))
		first[next(t, g)] = true
	}
	if len(first) < 32 {
		t.Errorf("64 generators began with %d different suffixes", len(first))
	}
}

func TestNoIdentifierIsRepeatedAfterTheClockIsSetBack(t *testing.T) {
	now := int64(10_000)
	g := newGenerator(t, 5, withClock(func() time.Time { return time.UnixMilli(epoch + now) }))
	seen := make(map[uint64]bool)
	var latest uint64
	for _, clock := range []int64{10_000, 10_001, 9_000, 9_999, 10_000, 10_001, 10_002, -5, 10_001, 10_003} {
		now = clock
		for range 1500 {
			n := next(t, g)
			if seen[n] {
				t.Fatalf("clock at %d: %d was repeated", clock, n)
			}
			seen[n] = true
			if n>>21 < latest {
				t.Fatalf("clock at %d: time went back from %d to %d", clock, latest, n>>21)
			}
			latest = n >> 21
		}
	}
	// 15,000 identifiers need 8 milliseconds, and the clock provides some of them.
	if latest > 10_010 {
		t.Errorf("time ran ahead to %d", latest)
	}
}

func TestAClockBeforeTheFirstMillisecondCountsAsTheFirst(t *testing.T) {
	g := newGenerator(t, 0, withClock(func() time.Time { return time.Unix(0, 0) }))
	if at := next(t, g) >> 21; at != 0 {
		t.Errorf("got millisecond %d", at)
	}
}

func TestMintingFailsAtTheEndOfTime(t *testing.T) {
	now := time.UnixMilli(epoch + lastMillisecond)
	g := newGenerator(t, 1023, withClock(func() time.Time { return now }))
	for range 2048 {
		if n := next(t, g); n>>63 != 0 {
			t.Fatalf("%d has more than 63 bits", n)
		}
	}
	_, err := g.Mint(context.Background(), oda.Project)
	if oda.CodeOf(err) != oda.IdentifierService {
		t.Errorf("got %v", err)
	}
}

func TestGeneratorsWithDifferentNumbersNeverClash(t *testing.T) {
	clock := withClock(func() time.Time { return time.UnixMilli(epoch + 77) })
	seen := make(map[uint64]bool)
	for _, number := range []uint16{0, 1, 1022, 1023} {
		g := newGenerator(t, number, clock)
		for range 5000 {
			n := next(t, g)
			if seen[n] {
				t.Fatalf("generator %d returned %d, as another did before", number, n)
			}
			seen[n] = true
		}
	}
}

func TestAClosedGeneratorDoesNotMint(t *testing.T) {
	g := newGenerator(t, 0)
	for range 2 {
		must.Do(t, g.Close())
	}
	if id, err := g.Next("sbd"); err == nil {
		t.Errorf("got %q", id)
	}
}

func BenchmarkMint(b *testing.B) {
	g, err := NewGenerator(1)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := g.Mint(b.Context(), oda.ExecutionBlock); err != nil {
			b.Fatal(err)
		}
	}
}

func newGenerator(t *testing.T, number uint16, options ...func(*Generator)) *Generator {
	t.Helper()
	g := must.Get(NewGenerator(number))(t)
	for _, option := range options {
		option(g)
	}
	return g
}

func withClock(clock func() time.Time) func(*Generator) {
	return func(g *Generator) { g.clock = clock }
}

func next(t *testing.T, g *Generator) uint64 {
	t.Helper()
	n := must.Get(g.next())(t)
	return n
}
