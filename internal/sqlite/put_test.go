package sqlite

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"oda"
)

// listed is the write of a block with a list of n records, each another one.
func listed(t *testing.T, text string, n int) oda.Put {
	t.Helper()
	p := put(t, "long", text, 1)
	p.Listed, p.Records = true, make([][]byte, n)
	for i := range p.Records {
		p.Records[i] = fmt.Appendf(nil, `{"request":"r%d"}`, i)
	}
	return p
}

// Nobody else writes while a list is written. The time is that of the processor,
// since a busy machine says nothing about the list.
func TestTheLongestListDoesNotKeepOthersWaiting(t *testing.T) {
	if underRace {
		t.Skip("the race detector takes its own time")
	}
	const most = time.Second
	s := fresh(t)
	p := listed(t, `{"request_responses":[]}`, oda.MaxNewRecords)
	before := processorTime(t)
	mustPut(t, s, p)
	if took := processorTime(t) - before; took > most {
		t.Errorf("%d records took %v of the processor, want at most %v", len(p.Records), took, most)
	}
}

// processorTime is what this process has used of the processors.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// A block may be longer than a request may bring: then most of its records are
// stored already, and a reader can store again what it has read.
func TestABlockLongerThanARequestMayBringIsStoredAgain(t *testing.T) {
	if underRace {
		t.Skip("it takes a minute with the race detector")
	}
	s := fresh(t)
	const more = 1000
	e := mustPut(t, s, listed(t, `{"request_responses":[]}`, oda.MaxNewRecords))
	longer := listed(t, nextText(e), oda.MaxNewRecords+more)
	e = mustPut(t, s, longer)
	e = mustPut(t, s, listed(t, nextText(e), oda.MaxNewRecords+more))
	if e.Metadata.Version != 3 {
		t.Errorf("the version is %d", e.Metadata.Version)
	}
	page, err := s.Records(t.Context(), "long", oda.MaxNewRecords+more-2, 10)
	if err != nil || len(page.Records) != 2 || string(page.Records[1].Text) != string(longer.Records[oda.MaxNewRecords+more-1]) {
		t.Errorf("the end of the list is %d records, %v", len(page.Records), err)
	}
	// Each record that differs from what is stored is a new one.
	other := listed(t, nextText(e), oda.MaxNewRecords+more)
	for i := range other.Records[:oda.MaxNewRecords+1] {
		other.Records[i] = fmt.Appendf(nil, `{"request":"s%d"}`, i)
	}
	if _, err := s.Put(t.Context(), []oda.Put{other}); oda.CodeOf(err) != oda.InvalidRequest {
		t.Errorf("got %v", err)
	}
	// A refusal by the metadata comes first: it says what to do.
	other.Expected.Version--
	if _, err := s.Put(t.Context(), []oda.Put{other}); oda.CodeOf(err) != oda.MetadataMismatch {
		t.Errorf("got %v", err)
	}
}
