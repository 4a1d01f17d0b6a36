package app_test

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"oda/internal/test/env"
	"oda/internal/test/load"
)

// How the crash test kills, and how much must have happened: with hardly any
// writes the test would prove little.
const (
	kills      = 12
	proofKills = 200 // in "make proof"
	longLife   = 200 * time.Millisecond
	fewestAcks = 200 // in each life
	fewestLost = 5   // unanswered requests at a kill
)

// A process under load is killed again and again. Afterwards every acknowledged
// write is there, once and in order; every unanswered one is there completely
// or not at all.
func TestEveryAcknowledgedWriteSurvivesKill9OnceAndInOrder(t *testing.T) {
	t.Parallel()
	database := "sqlite:" + filepath.Join(t.TempDir(), "archive.db")
	p := env.Oda(t, "serve", "--db", database)
	l := env.NewLoad(t, load.Options{Pace: time.Millisecond}, p.Host())
	times := kills
	if env.InProof() {
		times = proofKills
	}
	for i := range times {
		before := l.Acknowledged()
		env.Await(t, "writes are acknowledged", func() bool { return l.Acknowledged() >= before+fewestAcks })
		if i%2 == 0 {
			time.Sleep(rand.N(longLife)) // the kill comes at any moment
		} else {
			<-l.Next() // or when what was just acknowledged may not be on disk
		}
		p.Kill()
		l.Use()
		if i == 0 { // with what the kill has left of the write-ahead log
			wantWhole(t, database)
		}
		p = env.Oda(t, "serve", "--db", database)
		l.Use(p.Host())
	}
	l.Whole(p.Host(), load.Everything...)
	if lost := l.Count("unclear"); lost < fewestLost {
		t.Errorf("%d requests were unanswered, which is too little to prove anything; want %d", lost, fewestLost)
	}
	p.MustStop()
	wantWhole(t, database)
}
