package main

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAWriteSentBeforeAnEventIsNotTheFirstAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watch{servers: [serverCount]string{"a", "b"}}
		before := time.Now()
		time.Sleep(time.Second)
		w.begin()
		time.Sleep(time.Second)
		w.success("a", true, before)
		if got := w.firsts(); got != ([paths]time.Duration{}) {
			t.Errorf("firsts: %v, want none", got)
		}
		sent := time.Now()
		time.Sleep(time.Second)
		w.success("b", false, sent)
		time.Sleep(time.Second)
		w.success("b", false, time.Now())
		var want [paths]time.Duration
		want[path(serverCount+1)] = 2 * time.Second
		if got := w.firsts(); got != want {
			t.Errorf("firsts: %v, want %v", got, want)
		}
	})
}
