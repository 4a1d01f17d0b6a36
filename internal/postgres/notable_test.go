package postgres_test

import (
	"testing"

	"oda"
	"oda/internal/test/must"
)

func TestPeopleSeeCallsThatFailed(t *testing.T) {
	t.Parallel()
	s, conn, _ := fresh(t)
	mustPut(t, s, write(t, block("b"), `{"telescope":"ska_mid"}`))
	must.Get(s.Append(t.Context(), oda.Append{Block: "b", By: "anna", At: 1, Records: []oda.NewRecord{
		{Text: []byte(`{"request":"r"}`)}, {Text: []byte(`{"request":"a.scan","request_sent_at":"2026-03-01T00:00:00Z","error":{"detail":"late"},"request_args":{"dish":"SKA001"}}`)},
	}}))(t)
	got := query[string](t, conn, "SELECT concat_ws(' ', eb_id, sequence, at AT TIME ZONE 'UTC', sent_at AT TIME ZONE 'UTC', received_at, request, function, error, detail, device, telescope, recorded_by) FROM calls_that_failed")
	if want := "b 2 2026-03-01 00:00:00 2026-03-01 00:00:00 a.scan scan late SKA001 ska_mid anna"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// If there is no index, nothing can touch it.
func TestOtherRecordsDoNotTouchTheIndexesOfNotableCalls(t *testing.T) {
	t.Parallel()
	s, conn, _ := fresh(t)
	do(t, conn, "DROP TABLE failed_calls, long_calls CASCADE")
	mustPut(t, s, write(t, block("b"), `{"request_responses":[{"request":"r"}]}`))
	for range 3 {
		mustRecordOn(t, s, "b", "2026-03-01")
	}
	for _, text := range []string{`{"request":"r","status":"ERROR"}`, `{"request":"r","request_sent_at":"2026-03-01","response_received_at":"2026-03-02"}`} {
		if _, err := s.Append(t.Context(), oda.Append{Block: "b", By: "anna", At: 1, Records: []oda.NewRecord{{Text: []byte(text)}}}); err == nil {
			t.Errorf("%s did not need an index", text)
		}
	}
}
