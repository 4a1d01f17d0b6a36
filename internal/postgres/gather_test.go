package postgres

import (
	"testing"
	"time"

	"oda"
	"oda/internal/test/fault"
)

// While as many transactions are under way as there may be, the gatherer waits for one
// of them to end, and takes no processor time meanwhile.
func TestTheGathererWaitsInPeaceForSlowTransactions(t *testing.T) {
	queue, slowly := make(chan *waiting, batches), make(chan struct{})
	g := &gatherer{queue: queue, busy: make(map[string]bool), wake: make(chan struct{}, 1), send: func([]*waiting) []*waiting {
		<-slowly
		return nil
	}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.run()
	}()
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
	close(queue)
	<-ended
}
