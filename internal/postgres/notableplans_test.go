package postgres_test

import (
	"context"
	"fmt"
	"testing"

	"oda"
	"oda/internal/postgres"
)

// notableOperations returns questions for calls that failed or lasted long, and recording
// some. A fifth of the seeded calls are in the range of the questions.
func notableOperations() (all []hot) {
	ctx := context.Background()
	for _, one := range []struct {
		name    string
		asked   oda.CallRange
		buffers int
	}{
		{"", oda.CallRange{}, 200},
		{" of a block", oda.CallRange{Block: "id-8000"}, 240},
		{" of a function", oda.CallRange{Function: "f8"}, 240},
		{" with an error", oda.CallRange{Error: "E8"}, 240},
		{" of a device", oda.CallRange{Device: "d8"}, 240},
		{" with everything", oda.CallRange{Block: "id-8000", Device: "d8", Error: "E8", Function: "f8"}, 240},
	} {
		for _, one.asked.Backwards = range []bool{false, true} {
			one.asked.From, one.asked.To = 10_000_000, 15_000_000
			one.asked.Behind = &oda.CallPlace{At: 10_001_000, Block: "id-8000", Sequence: 1}
			direction := "forwards"
			if one.asked.Backwards {
				one.asked.Behind, direction = &oda.CallPlace{At: 14_999_000, Block: "id-8000", Sequence: 1}, "backwards"
			}
			asked := one.asked
			all = append(all, hot{
				"Calls that failed" + one.name + ", " + direction, "Those of a time, and then which records the current versions of their blocks have.",
				func(_ *testing.T, s *postgres.Store, _ int) error {
					for _, err := range s.FailedCalls(ctx, asked) {
						if err != nil {
							return err
						}
					}
					return nil
				}, one.buffers,
			})
			if one.name == "" {
				all = append(all, hot{
					"Long calls, " + direction, "The calls of a time that ended later than that.",
					func(_ *testing.T, s *postgres.Store, _ int) error {
						for _, err := range s.LongCalls(ctx, asked, 13_000_000) {
							if err != nil {
								return err
							}
						}
						return nil
					}, 100,
				})
			}
		}
	}
	bad := func(key string) oda.NewRecord {
		return oda.NewRecord{Key: key, Text: []byte(`{"request":"r","status":"ERROR","request_sent_at":"1970-01-01T00:00:00Z","response_received_at":"1970-01-01T00:00:09Z"}`)}
	}
	return append(all, hot{
		"Record failed calls", "One alone, and one after another in a request.",
		func(t *testing.T, s *postgres.Store, try int) error {
			for i, records := range [][]oda.NewRecord{{bad("")}, {bad(fmt.Sprint("bad-", try))}, {bad(""), bad("")}} {
				if _, err := s.Append(ctx, oda.Append{Block: "id-1000", By: "anna", At: 1, Records: records}); err != nil {
					return fmt.Errorf("%d: %w", i, err)
				}
			}
			return nil
		}, 100,
	})
}
