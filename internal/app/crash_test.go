package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oda/internal/test/env"
)

// How the crash test kills, and how much it wants to have happened: a test in
// which hardly anything was written would prove little.
const (
	kills       = 20
	shortLife   = 200 * time.Millisecond
	longLife    = 500 * time.Millisecond
	fewestAcks  = 1000 // over all lives
	fewestLost  = 5    // requests that were under way at a kill
	loadWriters = 3    // of each sort
)

// A process under load is killed again and again. What it acknowledged is there
// afterwards, once, and in order; what was under way is there as a whole or not
// at all.
func TestEveryAcknowledgedWriteSurvivesKill9OnceAndInOrder(t *testing.T) {
	db := "--db=sqlite:" + filepath.Join(t.TempDir(), "archive.db")
	p := env.Oda(t, "serve", db)
	l := &load{t: t}
	var writers []writer
	for i := range loadWriters {
		block := fmt.Sprintf("eb-shared-%d", i)
		must(t, "PUT", p.URL+"/ebs/"+block, `{"request_responses":[]}`)
		writers = append(writers,
			&recorder{history: history{name: fmt.Sprintf("plain%d", i)}, block: block, method: "POST"},
			&recorder{history: history{name: fmt.Sprintf("keyed%d", i), keyed: true}, block: block, method: "PATCH"},
			&creator{history: history{name: fmt.Sprintf("creator%d", i)}},
			&creator{history: history{name: fmt.Sprintf("keyed-creator%d", i), keyed: true}},
			&chain{collections: []string{"sbds"}, ids: []string{fmt.Sprintf("sbd-chain-%d", i)}},
			&chain{several: true, collections: []string{"sbds", "sbis", "prjs"}, ids: []string{
				fmt.Sprintf("sbd-several-%d", i), fmt.Sprintf("sbi-several-%d", i), fmt.Sprintf("prj-several-%d", i),
			}},
		)
	}
	for range kills {
		l.live(p, writers, shortLife+rand.N(longLife-shortLife))
		p = env.Oda(t, "serve", db)
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d writes were acknowledged, %d were under way at a kill", l.acks.Load(), l.lost.Load())
	if l.acks.Load() < fewestAcks || l.lost.Load() < fewestLost {
		t.Errorf("that is too little to prove anything; want %d and %d", fewestAcks, fewestLost)
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
	checkFile(t, db[len("--db=sqlite:"):], writers)
}

// writer is one client. It writes one thing after the other, and goes on after
// a kill where it was.
type writer interface {
	// write sends one write. It returns an error where no answer came.
	write(l *load, url string) error
	// judge complains about what is stored. The created blocks are given by
	// their markers.
	judge(l *load, url string, created map[string][]string) []string
}

// load is what all writers share.
type load struct {
	t          *testing.T
	acks, lost atomic.Int64
}

// live lets the writers write for a time, and kills the process under them.
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

// recorder records into a block that another recorder writes to as well.
type recorder struct {
	history
	block, method string
	sequences     []int64 // of the acknowledged records
}

func (r *recorder) write(l *load, url string) error {
	marker := r.begin()
	var headers []string
	if r.keyed {
		headers = []string{"Idempotency-Key", marker}
	}
	var answer struct{ Sequence int64 }
	if err := l.send(&answer, r.method, url+"/ebs/"+r.block+"/request_response", `{"request":"`+marker+`"}`, headers...); err != nil {
		return err
	}
	r.acknowledge()
	r.sequences = append(r.sequences, answer.Sequence)
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
	complaints := r.check(all)
	for i, sequence := range r.sequences {
		if sequence < 1 || sequence > int64(len(all)) || all[sequence-1] != r.acked[i] {
			complaints = append(complaints, fmt.Sprintf("%s: %s was acknowledged as record %d of %s, which it is not", r.name, r.acked[i], sequence, r.block))
		}
	}
	return complaints
}

// creator creates blocks, each with a marker in it.
type creator struct {
	history
	ids []string // of the acknowledged blocks
}

func (c *creator) write(l *load, url string) error {
	marker := c.begin()
	var headers []string
	if c.keyed {
		headers = []string{"Idempotency-Key", marker}
	}
	var answer struct {
		ID string `json:"eb_id"`
	}
	if err := l.send(&answer, "POST", url+"/ebs/create", `{"marker":"`+marker+`"}`, headers...); err != nil {
		return err
	}
	c.acknowledge()
	c.ids = append(c.ids, answer.ID)
	time.Sleep(2 * time.Millisecond) // blocks are read one by one at the end
	return nil
}

func (c *creator) judge(_ *load, _ string, created map[string][]string) []string {
	var found, complaints []string
	for _, marker := range c.all() {
		for range created[marker] {
			found = append(found, marker)
		}
	}
	complaints = c.check(found)
	for i, id := range c.ids {
		if stored := created[c.acked[i]]; len(stored) != 1 || stored[0] != id {
			complaints = append(complaints, fmt.Sprintf("%s: %s was acknowledged as %s, but %v has it", c.name, c.acked[i], id, stored))
		}
	}
	return complaints
}

// readCreated gives the identifiers of all blocks that were created, by marker.
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
