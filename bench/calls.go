package main

import (
	"context"
	"fmt"
	"time"
)

// Details of arms.
const (
	yearFailed  = ", failures of a year"
	yearError   = ", failures of a year with a rare error"
	inProgress  = ", in progress at an instant"
	tallyFirst  = ", tally of a night, first"
	tallyAgain  = ", tally of a night, again"
	callsPerDay = 2000 // in a block of the year
)

// year is when the calls of a large archive begin. They end before the night.
var year = time.Date(2025, 2, 28, 0, 0, 0, 0, time.UTC)

// callOf returns a call of a block: one in a hundred failed, one in fifty is long.
func callOf(block, blocks, n int) []byte {
	at := year.AddDate(0, 0, block*365/blocks).Add(time.Duration(n) * 40 * time.Second)
	took, status, failure := 530*time.Millisecond, "OK", ""
	if n%50 == 0 {
		took = 100 * time.Second
	}
	if n%100 == 7 {
		kind := "ConnectionError"
		if n == 7 && block%100 == 0 {
			kind = "CalibrationError"
		}
		status, failure = "ERROR", fmt.Sprintf(`,"error":{"detail":"%s: no answer from the receptor"}`, kind)
	}
	const form = "2006-01-02T15:04:05.000000Z"
	return fmt.Appendf(nil, `{"request":"ska_oso_scripting.functions.%s","request_args":{"args":[],"kwargs":{"device":"SKA%03d","scan_id":%d}},"status":%q%s,"request_sent_at":%q,"response_received_at":%q}`,
		calls[n%len(calls)], n%64, n, status, failure, at.Format(form), at.Add(took).Format(form))
}

// storeYear fills an archive with calls of a year.
func (srv *server) storeYear(ctx context.Context, count int) error {
	blocks := max(count/callsPerDay, 1)
	ids, err := srv.storeBlocks(ctx, "eb-year", blocks)
	if err != nil {
		return err
	}
	return parallel(ctx, blocks, func(ctx context.Context, i int) error {
		some := make([][]byte, min(count, callsPerDay))
		for n := range some {
			some[n] = callOf(i, blocks, n)
		}
		_, err := srv.do(ctx, "POST", api+"/ebs/"+ids[i]+"/request_responses", batch(some))
		return err
	})
}

// runCalls asks for calls of a large archive, and counts those of a night.
func runCalls(ctx context.Context, s *stage) error {
	arms, err := s.arms(ctx, func(ctx context.Context, srv *server) ([]arm, error) {
		begin := time.Now()
		if err := srv.storeYear(ctx, s.plan.records); err != nil {
			return nil, err
		}
		if _, err := reportNight(ctx, srv, 1); err != nil {
			return nil, err
		}
		s.say("  %s: filled in %v", srv.arm(""), time.Since(begin).Round(time.Second))
		const failed = api + "/calls?outcome=failed&from=2025-02-28&to=2026-02-28"
		var instants []request
		for day := range 300 {
			at := year.AddDate(0, 0, day).Add(time.Duration(day) * 200 * time.Second)
			instants = append(instants, get(api+"/calls?at="+at.Format(time.RFC3339)))
		}
		const tally = api + "/calls/tally?by=request&from=2026-03-01&to=2026-03-02T00:00:00"
		first := numbered(1, func(n int) request { return get(fmt.Sprintf("%s.%06dZ", tally, n)) })
		return []arm{
			loadArm(srv, yearFailed, shuffled(1, get(failed)), 1),
			loadArm(srv, yearError, shuffled(1, get(failed+"&error=CalibrationError")), 1),
			loadArm(srv, inProgress, shuffled(1, instants...), 1),
			loadArm(srv, tallyFirst, first, 1),
			loadArm(srv, tallyAgain, shuffled(1, get(tally+"Z")), 1),
		}, nil
	})
	if err != nil {
		return err
	}
	return s.measure(ctx, table{Title: "The first page, or the tally, over one connection", Columns: plain(p50, p99, rate)}, arms)
}

// callBudgets are those of questions about calls.
func callBudgets() []budget {
	var all []budget
	for _, engine := range []string{onSQLite, onPostgres} {
		all = append(all,
			atMost("failures of a year at 10,000,000 records, p99", engine+yearFailed, over(p99), 0.050),
			atMost("failures of a year with a rare error at 10,000,000 records, p99", engine+yearError, over(p99), 0.050),
			atMost("calls in progress at an instant, p99", engine+inProgress, over(p99), 0.100),
			atMost("tally of a night of 200,000 calls, p50", engine+tallyFirst, over(p50), 1),
			atMost("the same tally again, p99", engine+tallyAgain, over(p99), 0.050),
		)
	}
	return all
}
