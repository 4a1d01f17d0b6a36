package contract_test

import (
	"fmt"
	"strings"
	"testing"

	"oda/internal/rawjson"
	"oda/summary"
)

func BenchmarkCheckBody(b *testing.B) {
	var targets strings.Builder
	for i := range 24 {
		fmt.Fprintf(&targets, `{"target_id": "calibrator number %d", "reference_coordinate": {"kind": "equatorial",
			"ra": "19:39:25.026%d", "dec": "-63:42:45.63", "unit": ["hourangle", "deg"]}, "rate": 0.35e9, "tied": null},
			`, i, i)
	}
	body := []byte(`{"sbd_id": "sbd-1k5v3r8m0q", "interface": "1", "targets": [` + targets.String() + `{}],
		"metadata": {"version": 1, "created_by": "mary", "created_on": "2026-03-01T20:59:58.000000Z",
			"last_modified_by": "john", "last_modified_on": "2026-03-01T22:15:00.250000Z"}}`)
	op := load(b).Operation("storeSBD")
	for name, watch := range map[string]rawjson.Watch{"checked": nil, "and noted": summary.Watched} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := op.CheckWatched(body, maxDepth, watch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCheckRecord(b *testing.B) {
	body := []byte(`{"request": "observe", "request_args": {"kwargs": {"scan": "calibrator"}}, "status": "OK",
		"request_sent_at": "2026-03-01T21:04:05.5Z", "response_received_at": "2026-03-01T21:04:05.9Z", "response": {"result": "done"}}`)
	op := load(b).Operation("recordPost")
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := op.CheckBody(body, maxDepth); err != nil {
			b.Fatal(err)
		}
	}
}
