package main

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestSilenceIsTheLongestTimeBetweenTwoWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tally := newTally()
		time.Sleep(2 * time.Second)
		tally.success(recording(0), time.Now())
		time.Sleep(3 * time.Second)
		tally.success(storing(1), time.Now())
		time.Sleep(time.Second)
		tally.end()
		want := map[path]time.Duration{recording(0): 4 * time.Second, storing(1): 5 * time.Second, paths: 3 * time.Second}
		for i, w := range want {
			if got := tally.quiet[i].longest; got != w {
				t.Errorf("silence of %v: %v, want %v", i, got, w)
			}
		}
	})
}

func TestAWriteSentBeforeAnEventIsNotTheFirstAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tally := newTally()
		before := time.Now()
		time.Sleep(time.Second)
		w := tally.watch()
		time.Sleep(time.Second)
		tally.success(recording(0), before)
		if got := tally.firsts(w); got != ([paths]time.Duration{}) {
			t.Errorf("firsts: %v, want none", got)
		}
		sent := time.Now()
		time.Sleep(time.Second)
		tally.success(storing(1), sent)
		time.Sleep(time.Second)
		tally.success(storing(1), time.Now())
		var want [paths]time.Duration
		want[storing(1)] = 2 * time.Second
		if got := tally.firsts(w); got != want {
			t.Errorf("firsts: %v, want %v", got, want)
		}
	})
}
