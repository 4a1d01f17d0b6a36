package sqlite

import (
	"context"
	"testing"

	"oda"
	"oda/internal/test/must"
)

// An archive opens again whatever was stored last.
func TestALogMayEndWithAStatus(t *testing.T) {
	path := archivePath(t)
	s := open(t, path)
	mustPut(t, s, put(t, "b", `{}`, 1000))
	ref := oda.Ref{Kind: oda.ExecutionBlock, ID: "b"}
	must.Get(s.Say(context.Background(), oda.NewStatus{Ref: ref, Text: "Observed", By: "anna", Now: 2000}))(t)
	must.Do(t, s.Close())

	now := must.Get(open(t, path).Status(context.Background(), ref))(t)
	if now.Text != "Observed" {
		t.Errorf("the status is %q", now.Text)
	}
}
