package httpapi

import (
	"strings"
	"testing"

	"oda/api"
	"oda/internal/admission"
	"oda/internal/auth"
	"oda/internal/contract"
	"oda/internal/test/must"
)

// Every operation says who may call it: to read it takes a reader, or an admin to
// read everything at once, and to write at least a recorder.
func TestEveryRouteHasARole(t *testing.T) {
	description := must.Get(contract.Load(api.JSON(), "Record"))(t)
	a := &API{contract: description}
	for _, rt := range a.routes() {
		op := description.Operation(rt.operation)
		switch {
		case op.Method == "GET" && rt.role != auth.Reader && rt.operation != "backup" && rt.operation != "export":
			t.Errorf("%s is a GET and needs the role %q", rt.operation, rt.role)
		case op.Method != "GET" && rt.role < auth.Recorder:
			t.Errorf("%s writes and needs the role %q", rt.operation, rt.role)
		}
	}
}

// An interface with a route without a role does not start.
func TestARouteWithoutARoleIsRefused(t *testing.T) {
	if err := (route{role: auth.Anyone}).check("GET", "/open"); err != nil {
		t.Errorf("a route with a role is refused: %v", err)
	}
	if err := (route{}).check("GET", "/bare"); err == nil || !strings.Contains(err.Error(), "GET /bare has no role") {
		t.Errorf("got %v", err)
	}
}

// Who the caller is takes no search to tell, so it is told also while there are too many.
func TestWhoamiDoesNotWaitForSearches(t *testing.T) {
	for _, rt := range new(API).routes() {
		if rt.operation == "whoami" && rt.classOf() == admission.Searching {
			t.Error("it counts as a search")
		}
	}
}
