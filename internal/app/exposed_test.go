package app_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"oda/internal/app"
	"oda/internal/auth"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// Beyond this machine an archive serves only if it knows its callers, or if the
// operator wants it open, which the log says.
func TestBeyondLoopbackTheArchiveKnowsItsCallers(t *testing.T) {
	const warning = "everybody who can reach this address may read and write"
	everywhere := func(cfg *app.Config) { cfg.Listen = "0.0.0.0:0" }
	insecure := env.Start(t, everywhere, func(cfg *app.Config) { cfg.Auth.Insecure = true })
	if !strings.Contains(insecure.LogText(), warning) {
		t.Errorf("the log does not warn: %s", insecure.LogText())
	}
	file := filepath.Join(t.TempDir(), "tokens")
	must.Get(auth.CreateToken(file, auth.Token{Name: "a", Role: auth.Reader}))(t)
	known := env.Start(t, everywhere, func(cfg *app.Config) { cfg.Auth.Tokens = file })
	here := env.Start(t, func(cfg *app.Config) { cfg.Listen = "localhost:0" })
	for _, a := range []*env.Archive{known, here} {
		if strings.Contains(a.LogText(), warning) {
			t.Errorf("the log warns without cause: %s", a.LogText())
		}
	}
}

// A web page can let its own name lead to 127.0.0.1. Browsers then take the archive for a
// part of that page, so an archive that knows nobody must look at the name.
func TestAnOpenArchiveIsCalledByAnotherName(t *testing.T) {
	t.Parallel()
	public := func(cfg *app.Config) { cfg.PublicURL = "https://archive.example/oda" }
	insecure := func(cfg *app.Config) { cfg.Auth.Insecure = true }
	open, named, forAll := env.Start(t), env.Start(t, public), env.Start(t, insecure)
	for _, test := range []struct {
		archive *env.Archive
		host    string
		status  int
	}{
		{open, "127.0.0.1:8080", 200},
		{open, "localhost", 200},
		{open, "[::1]:8080", 200},
		{open, "oda.localhost:8080", 200},
		{open, "workstation:8080", 200},
		{open, "attacker.example:8080", 403},
		{open, "127.0.0.1.attacker.example", 403},
		{open, "localhost.attacker.example:8080", 403},
		{open, "archive.example", 403},
		{named, "archive.example", 200},
		{named, "Archive.example", 200},
		{named, "attacker.example", 403},
		{forAll, "attacker.example", 200},
	} {
		for _, path := range []string{"/api/v1/whoami", "/sbds", "/metrics", "/readyz"} {
			request := must.Get(http.NewRequest("GET", test.archive.Origin()+path, nil))(t)
			request.Host = test.host
			response := must.Get(http.DefaultClient.Do(request))(t)
			response.Body.Close()
			want := test.status
			if path == "/readyz" {
				want = 200
			}
			if response.StatusCode != want {
				t.Errorf("%s of %s is answered %d, want %d", path, test.host, response.StatusCode, want)
			}
		}
	}
}
