package client_test

import (
	"fmt"
	"iter"
	"strings"
	"testing"

	"oda"
	"oda/client"
	"oda/internal/test/must"
)

// collect reads a sequence to its end.
func collect[T any](t *testing.T, seq iter.Seq2[T, error]) []T {
	t.Helper()
	var list []T
	for one, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, one)
	}
	return list
}

func TestALongBlockIsReadPageByPage(t *testing.T) {
	t.Parallel()
	c := start(t)
	block := must.Get(c.CreateBlock(t.Context(), nil, ""))(t)
	const n = 2500
	records := make([]oda.NewRecord, n)
	for i := range records {
		records[i].Text = fmt.Appendf(nil, `{"request":"scan","n":%d}`, i+1)
	}
	if sequences := must.Get(c.RecordBatch(t.Context(), block.ID, records))(t); sequences[n-1] != n {
		t.Errorf("the last is at %d", sequences[n-1])
	}
	next := int64(101)
	for r, err := range c.Records(t.Context(), block.ID, 100) {
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf(`{"request":"scan","n":%d}`, next); r.Sequence != next || string(r.Text) != want {
			t.Fatalf("at %d is %s, want %s at %d", r.Sequence, r.Text, want, next)
		}
		next++
	}
	if next != n+1 {
		t.Errorf("the records ended before %d", next)
	}
	for range c.Records(t.Context(), block.ID, 0) { // a caller may stop early
		break
	}
}

func TestTheErrorSaysWhatIsWrongWithARecord(t *testing.T) {
	t.Parallel()
	c := start(t)
	block := must.Get(c.CreateBlock(t.Context(), nil, ""))(t)
	_, err := c.Record(t.Context(), "eb-none", []byte(`{"request":"a"}`), "")
	refused(t, err, oda.NotFound, 404)
	_, err = c.RecordBatch(t.Context(), "eb-none", []oda.NewRecord{{Text: []byte(`{"request":"a"}`)}})
	refused(t, err, oda.NotFound, 404)
	for _, err := range c.Records(t.Context(), "eb-none", 0) {
		refused(t, err, oda.NotFound, 404)
	}
	_, err = c.Record(t.Context(), block.ID, []byte(`{"request":""}`), "")
	refused(t, err, oda.InvalidRequest, 400)
	_, err = c.Record(t.Context(), block.ID, []byte(`{"request":"a"}`), "a\nb")
	refused(t, err, oda.InvalidRequest, 0) // it was never sent
	_, err = c.RecordBatch(t.Context(), block.ID, nil)
	refused(t, err, oda.InvalidRequest, 400)
	_, err = c.RecordBatch(t.Context(), block.ID, make([]oda.NewRecord, 1))
	refused(t, err, oda.InvalidJSON, 0)
	// A text that is not a record must not pass for two records.
	_, err = c.RecordBatch(t.Context(), block.ID, []oda.NewRecord{{Text: []byte(`{"request":"a"}},{"key":"x","record":{"request":"b"}`)}})
	refused(t, err, oda.InvalidJSON, 0)
	if n := len(collect(t, c.Records(t.Context(), block.ID, 0))); n != 0 {
		t.Errorf("%d records were stored", n)
	}
	too := make([]oda.NewRecord, client.MaxBatch+1)
	for i := range too {
		too[i].Text = []byte(`{"request":"a"}`)
	}
	_, err = c.RecordBatch(t.Context(), block.ID, too)
	refused(t, err, oda.InvalidRequest, 400)
	if err != nil && !strings.Contains(err.Error(), "5000") {
		t.Errorf("the error does not name the bound: %v", err)
	}
	must.Get(c.RecordBatch(t.Context(), block.ID, too[1:]))(t)
}
