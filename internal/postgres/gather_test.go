package postgres

import (
	"testing"
	"time"

	"oda"
	"oda/internal/test/fault"
)

// gathering runs a gatherer whose transactions do this, until end is called.
func gathering(send func()) (g *gatherer, queue chan<- *waiting, end func()) {
	requests, ended := make(chan *waiting, batches), make(chan struct{})
	g = &gatherer{queue: requests, busy: make(map[string]bool), wake: make(chan struct{}, 1), send: func([]*waiting) []*waiting {
		send()
		return nil
	}}
	go func() {
		defer close(ended)
		g.run()
	}()
	return g, requests, func() {
		close(requests)
		<-ended
	}
}

// While as many transactions are under way as there may be, the gatherer waits for one
// of them to end, and takes no processor time meanwhile.
func TestTheGathererWaitsInPeaceForSlowTransactions(t *testing.T) {
	slowly := make(chan struct{})
	g, queue, end := gathering(func() { <-slowly })
	running := func() int {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.underWay
	}
	for n := range batches {
		queue <- newWaiting(oda.Append{Block: string(rune('a' + n))})
		for running() <= n {
			time.Sleep(time.Millisecond)
		}
	}
	time.Sleep(2 * slow)
	const length = 300 * time.Millisecond
	before := fault.ProcessorTime()
	time.Sleep(length)
	if spent := fault.ProcessorTime() - before; spent > length/10 {
		t.Errorf("waiting for %v took %v of processor time", length, spent)
	}
	close(slowly)
	end()
}

// A transaction with many records gets the time that these take. Another one beside it
// would read past the keys that it is adding.
func TestManyRecordsGetTheirTime(t *testing.T) {
	slowly, sent := make(chan struct{}), make(chan time.Time, 2)
	_, queue, end := gathering(func() {
		sent <- time.Now()
		<-slowly
	})
	queue <- newWaiting(oda.Append{Block: "a", Records: make([]oda.NewRecord, 1000)})
	first := <-sent
	queue <- newWaiting(oda.Append{Block: "b", Records: make([]oda.NewRecord, 1)})
	if took, least := (<-sent).Sub(first), slow+(999-2*batchRecords)*slowRecord; took < least {
		t.Errorf("another transaction was sent after %v, want %v or more", took, least)
	}
	close(slowly)
	end()
}
