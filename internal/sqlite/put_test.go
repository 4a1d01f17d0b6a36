package sqlite

import (
	"context"
	"fmt"
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

// The longest list takes a few tenths of a second on a machine that does nothing
// else. The bound here is for one that does much else.
func TestTheLongestListDoesNotKeepOthersWaiting(t *testing.T) {
	const bound = 5 * time.Second
	s := fresh(t)
	mustPut(t, s, put(t, "other", `{}`, 1))
	done := make(chan error)
	go func() {
		_, err := s.Put(context.Background(), []oda.Put{listed(t, `{"request_responses":[]}`, oda.MaxNewRecords)})
		done <- err
	}()
	for i := 0; ; i++ {
		started := time.Now()
		if _, err := record(s, "other", `{"request":"r"}`); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(started); waited > bound {
			t.Errorf("record %d waited %v", i, waited)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}

// A block may be longer than a request may bring: then most of its records are
// stored already, and a reader can store again what it has read.
func TestABlockLongerThanARequestMayBringIsStoredAgain(t *testing.T) {
	s := fresh(t)
	const more = 1000
	e := mustPut(t, s, listed(t, `{"request_responses":[]}`, oda.MaxNewRecords))
	longer := listed(t, nextText(e), oda.MaxNewRecords+more)
	e = mustPut(t, s, longer)
	e = mustPut(t, s, listed(t, nextText(e), oda.MaxNewRecords+more))
	if e.Metadata.Version != 3 {
		t.Errorf("the version is %d", e.Metadata.Version)
	}
	recordings, _, err := s.Recordings(t.Context(), "long", oda.MaxNewRecords+more-2, 10)
	if err != nil || len(recordings) != 2 || string(recordings[1].Record) != string(longer.Records[oda.MaxNewRecords+more-1]) {
		t.Errorf("the end of the list is %d records, %v", len(recordings), err)
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
