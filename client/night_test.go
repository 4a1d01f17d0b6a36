package client_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"oda"
	"oda/client"
	"oda/night"
)

func TestANightIsReported(t *testing.T) {
	t.Parallel()
	c := start(t, client.WithUser("ada"))
	block := must(c.CreateBlock(t.Context(), []byte(`{"telescope":"ska_mid","sbi_ref":"sbi-1"}`), ""))(t)
	must(c.Record(t.Context(), block.ID, []byte(`{"request":"scan","status":"ERROR","request_sent_at":"2026-03-01T20:00:00Z","response_received_at":"2026-03-01T20:00:01.25Z"}`), ""))(t)
	for _, which := range []client.Night{
		{Date: "2026-03-01"},
		{Date: "2026-03-01", Zone: "Africa/Johannesburg", Telescope: "ska_mid"},
		{Date: "2026-03-01", Zone: "Pacific/Honolulu"},
	} {
		got := must(c.Night(t.Context(), which))(t)
		if got.To-got.From != 24*3600*1_000_000 {
			t.Errorf("%+v lasts from %s to %s", which, got.From, got.To)
		}
		if which.Zone == "Pacific/Honolulu" {
			equal(t, "the calls before noon", got.Calls, int64(0))
			continue
		}
		telescope, sent := "ska_mid", got.From
		if err := sent.UnmarshalText([]byte("2026-03-01T20:00:00Z")); err != nil {
			t.Fatal(err)
		}
		tally := night.Tally{Calls: 1, Failures: 1, Took: 1_250_000}
		equal(t, "the night", *got, night.Report{
			From: got.From, To: got.To, Tally: tally,
			Blocks: []night.Block{{
				ID: block.ID, Telescope: &telescope, CreatedBy: "ada", FirstCall: sent, LastCall: sent, Tally: tally,
				References: []oda.Reference{{Kind: oda.SBInstance, ID: "sbi-1", Field: "sbi_ref"}},
			}},
			Slowest:           []night.SlowCall{{Block: block.ID, Sequence: 1, Request: "scan", SentAt: sent, Took: 1_250_000}},
			FailuresByRequest: []night.FailedRequest{{Request: "scan", Failures: 1, Calls: 1}},
		})
	}
	_, err := c.Night(t.Context(), client.Night{})
	refused(t, err, oda.InvalidQuery, 400)
}

func ExampleClient_Night() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"from":"2026-03-01T10:00:00.000000Z","to":"2026-03-02T10:00:00.000000Z","calls":120,"failures":2,"seconds_in_calls":3600.5,
			"blocks":[],"slowest":[],"failures_by_request":[{"request":"observe.scan","failures":2,"calls":40}]}`)
	}))
	defer server.Close()
	archive, err := client.New(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	night, err := archive.Night(bg, client.Night{Date: "2026-03-01", Zone: "Africa/Johannesburg"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d of %d calls failed\n", night.Tally.Failures, night.Calls)
	for _, r := range night.FailuresByRequest {
		fmt.Printf("%s: %d of %d\n", r.Request, r.Failures, r.Calls)
	}
	// Output:
	// 2 of 120 calls failed
	// observe.scan: 2 of 40
}
