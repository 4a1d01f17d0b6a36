package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oda/internal/test/env"
	"oda/internal/test/history"
)

// How the crash test kills, and how much must have happened: with hardly any
// writes the test would prove little.
const (
	kills       = 20
	proofKills  = 200 // in "make proof"
	shortLife   = 200 * time.Millisecond
	longLife    = 500 * time.Millisecond
	fewestAcks  = 1000 // over all lives
	fewestLost  = 5    // unanswered requests at a kill
	loadWriters = 3    // of each type
)

// A process under load is killed again and again. Afterwards every acknowledged
// write is there, once and in order; every unanswered one is there completely
// or not at all.
func TestEveryAcknowledgedWriteSurvivesKill9OnceAndInOrder(t *testing.T) {
	database := "sqlite:" + filepath.Join(t.TempDir(), "archive.db")
	db := "--db=" + database
	p := env.Oda(t, "serve", db)
	l := &load{t: t}
	var writers []writer
	for i := range loadWriters {
		block, writes := fmt.Sprintf("eb-shared-%d", i), &history.Writes{}
		must(t, "PUT", p.URL+"/ebs/"+block, `{"request_responses":[]}`)
		writers = append(writers,
			&recorder{series: series{name: fmt.Sprintf("plain%d", i)}, block: block, method: "POST", writes: writes},
			&recorder{series: series{name: fmt.Sprintf("keyed%d", i), keyed: true}, block: block, method: "PATCH", writes: writes},
			&creator{series: series{name: fmt.Sprintf("creator%d", i)}, ids: map[string]string{}},
			&creator{series: series{name: fmt.Sprintf("keyed-creator%d", i), keyed: true}, ids: map[string]string{}},
			&chain{collections: []string{"sbds"}, ids: []string{fmt.Sprintf("sbd-chain-%d", i)}},
			&chain{several: true, collections: []string{"sbds", "sbis", "prjs"}, ids: []string{
				fmt.Sprintf("sbd-several-%d", i), fmt.Sprintf("sbi-several-%d", i), fmt.Sprintf("prj-several-%d", i),
			}},
		)
	}
	times := kills
	if env.InProof() {
		times = proofKills
	}
	for i := range times {
		l.live(p, writers, shortLife+rand.N(longLife-shortLife))
		if i == 0 { // with what the kill has left of the write-ahead log
			wantWhole(t, database)
		}
		p = env.Oda(t, "serve", db)
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d writes were acknowledged, %d were unanswered at a kill", l.acks.Load(), l.lost.Load())
	if l.acks.Load() < fewestAcks || l.lost.Load() < fewestLost {
		t.Errorf("this is too little to prove anything; want %d and %d", fewestAcks, fewestLost)
	}
	created := readCreated(t, p.URL)
	for _, w := range writers {
		for _, complaint := range w.judge(l, p.URL, created) {
			t.Error(complaint)
		}
	}
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	wantWhole(t, database)
	checkFile(t, db[len("--db=sqlite:"):], writers)
}

// writer is a client that makes one write after the other, and continues after
// a kill.
type writer interface {
	// write sends one write. It returns an error if no answer arrives.
	write(l *load, url string) error
	// judge complains about what is stored. It gets the identifiers of the
	// created blocks by marker.
	judge(l *load, url string, created map[string][]string) []string
}

// load is shared by all writers.
type load struct {
	t          *testing.T
	acks, lost atomic.Int64
}

// live lets the writers write for a while, then kills the process.
func (l *load) live(p *env.Process, writers []writer, length time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	for _, w := range writers {
		wait.Go(func() {
			for ctx.Err() == nil {
				if w.write(l, p.URL) != nil {
					l.lost.Add(1)
					return
				}
				l.acks.Add(1)
			}
		})
	}
	time.Sleep(length)
	p.Kill()
	cancel()
	wait.Wait()
	client.CloseIdleConnections()
}

// send sends a write. Only a missing answer is an error: the archive has no
// reason to refuse anything.
func (l *load) send(into any, method, url, body string, headers ...string) error {
	status, text, err := try(method, url, body, headers...)
	if err != nil {
		return err
	}
	if status != 200 {
		l.t.Errorf("%s %s: status %d: %s", method, url, status, text)
		return nil
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		l.t.Errorf("%s %s: %v: %s", method, url, err, text)
	}
	return nil
}

// series counts the writes of one writer. A write without a key is not
// repeated: if its answer is lost, it may or may not be stored. A write with a
// key is repeated until it is answered.
type series struct {
	name  string
	keyed bool
	last  int
	open  bool // the last write was not answered
}

// next returns the number of the next write, and the headers to send with it.
func (s *series) next() (n int, headers []string) {
	if !s.keyed || !s.open {
		s.last++
	}
	s.open = true
	if s.keyed {
		headers = []string{"Idempotency-Key", history.Mark(s.name, s.last)}
	}
	return s.last, headers
}

// recorder records into a block that a second recorder shares.
type recorder struct {
	series
	block, method string
	writes        *history.Writes // of both recorders
}

func (r *recorder) write(l *load, url string) error {
	n, headers := r.next()
	mark := r.writes.Begin(r.name, n)
	var answer struct{ Sequence int64 }
	if err := l.send(&answer, r.method, url+"/ebs/"+r.block+"/request_response", `{"request":"`+mark+`"}`, headers...); err != nil {
		return err
	}
	r.open = false
	r.writes.Acknowledge(mark, answer.Sequence)
	return nil
}

func (r *recorder) judge(l *load, url string, _ map[string][]string) []string {
	var block struct {
		Records []struct{ Request string } `json:"request_responses"`
	}
	if err := l.send(&block, "GET", url+"/ebs/"+r.block, ""); err != nil {
		return []string{err.Error()}
	}
	all := make([]string, len(block.Records))
	for i, record := range block.Records {
		all[i] = record.Request
	}
	return r.writes.Judge(r.block, all).Faults
}

// creator creates blocks, each with a mark in it.
type creator struct {
	series
	ids map[string]string // acknowledged blocks by mark
}

func (c *creator) write(l *load, url string) error {
	n, headers := c.next()
	mark := history.Mark(c.name, n)
	var answer struct {
		ID string `json:"eb_id"`
	}
	if err := l.send(&answer, "POST", url+"/ebs/create", `{"marker":"`+mark+`"}`, headers...); err != nil {
		return err
	}
	c.open = false
	c.ids[mark] = answer.ID
	time.Sleep(2 * time.Millisecond) // blocks are read one by one at the end
	return nil
}

func (c *creator) judge(_ *load, _ string, created map[string][]string) []string {
	var complaints []string
	for n := range c.last {
		mark := history.Mark(c.name, n+1)
		stored, id := created[mark], c.ids[mark]
		if id == "" && len(stored) > 1 || id != "" && !slices.Equal(stored, []string{id}) {
			complaints = append(complaints, fmt.Sprintf("%s was acknowledged as %q, but is in %v", mark, id, stored))
		}
	}
	return complaints
}

// readCreated returns the identifiers of all created blocks by marker.
func readCreated(t *testing.T, url string) map[string][]string {
	t.Helper()
	var ids []string
	if err := json.Unmarshal([]byte(must(t, "GET", url+"/ebs?created_after=2026-01-01", "")), &ids); err != nil {
		t.Fatal(err)
	}
	created := make(map[string][]string)
	for _, id := range ids {
		var block struct{ Marker string }
		if err := json.Unmarshal([]byte(must(t, "GET", url+"/ebs/"+id, "")), &block); err != nil {
			t.Fatal(err)
		}
		if block.Marker != "" {
			created[block.Marker] = append(created[block.Marker], id)
		}
	}
	return created
}
