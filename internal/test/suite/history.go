package suite

import (
	"testing"

	"oda/internal/test/history"
	"oda/internal/test/must"
)

var histories = []scenario{
	{"concurrent callers see one history of each entity", func(t *testing.T, d *desk) {
		report := must.Get(history.Play(t.Context(), history.Serve(t, d.engine), history.Options{Teams: 3, Players: 4, Turns: 40, Games: 5}))(t)
		t.Log(report)
		err := report.Enough("read done", "store done", "store mismatch", "store precondition", "several done", "several mismatch",
			"record done", "repeat done")
		if err != nil {
			t.Error(err)
		}
	}},
}
