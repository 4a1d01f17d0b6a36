package recorder_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"oda/client/recorder"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// The archive is told how far behind the recorder is, even with records that it
// refuses.
func TestTheArchiveIsToldTheLag(t *testing.T) {
	t.Parallel()
	archive := env.Start(t)
	between := newSwitchboard(t, archive.Forward())
	rec, _ := opened(t, clientOf(t, between.URL), recorder.Options{})
	said := make(chan string, 100)
	between.set(func(w http.ResponseWriter, r *http.Request) {
		select {
		case said <- r.Header.Get("Recorder-Lag"):
		default:
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	recordNumbers(t, rec, 1, 5)
	env.Await(t, "the recorder tells what waits", func() bool {
		var records int
		var seconds float64
		_, err := fmt.Sscanf(<-said, "records=%d, seconds=%f", &records, &seconds)
		return err == nil && records == 5 && seconds > 0
	})
	between.set(nil)
	must.Do(t, rec.Flush(patient(t)))
	metrics := archive.Do("GET", archive.Origin()+"/metrics", "").Text()
	for _, line := range []string{"\noda_recorders 1\n", "\noda_recorder_lag_records 5\n", "\noda_recorder_lag_seconds 0."} {
		if !strings.Contains(metrics, line) {
			t.Errorf("the metrics have no %q", line)
		}
	}
	closeRecorder(t, rec)
}
