package sqlite

import (
	"fmt"
	"testing"
	"time"

	"oda"
	"oda/internal/test/fault"
)

// listed returns the Put of a block with a list of n different records.
func listed(t *testing.T, text string, n int) oda.Put {
	t.Helper()
	p := put(t, "long", text, 1)
	p.Listed, p.Records = true, make([][]byte, n)
	for i := range p.Records {
		p.Records[i] = fmt.Appendf(nil, `{"request":"r%d"}`, i)
	}
	return p
}

// Nobody else can write while a list is written. The test measures processor time,
// so that a busy machine does not matter.
func TestTheLongestListIsWrittenQuickly(t *testing.T) {
	if underRace {
		t.Skip("the race detector takes most of the time")
	}
	const most = time.Second
	s := fresh(t)
	p := listed(t, `{"request_responses":[]}`, oda.MaxNewRecords)
	before := fault.ProcessorTime()
	mustPut(t, s, p)
	if took := fault.ProcessorTime() - before; took > most {
		t.Errorf("%d records took %v of processor time, want at most %v", len(p.Records), took, most)
	}
}

// A block may have more records than a request may bring, because most of them are
// already stored. So a client can store again what it has read.
func TestABlockLongerThanTheBoundCanBeStoredAgain(t *testing.T) {
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
	// Each record that differs from the stored one is new.
	other := listed(t, nextText(e), oda.MaxNewRecords+more)
	for i := range other.Records[:oda.MaxNewRecords+1] {
		other.Records[i] = fmt.Appendf(nil, `{"request":"s%d"}`, i)
	}
	if _, err := s.Put(t.Context(), []oda.Put{other}); oda.CodeOf(err) != oda.InvalidRequest {
		t.Errorf("got %v", err)
	}
	// The metadata is checked first: its error says what to do.
	other.Expected.Version--
	if _, err := s.Put(t.Context(), []oda.Put{other}); oda.CodeOf(err) != oda.MetadataMismatch {
		t.Errorf("got %v", err)
	}
}
