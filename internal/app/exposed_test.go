package app_test

import (
	"path/filepath"
	"strings"
	"testing"

	"oda/internal/app"
	"oda/internal/auth"
	"oda/internal/test/env"
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
	if _, err := auth.CreateToken(file, auth.Token{Name: "a", Role: auth.Reader}); err != nil {
		t.Fatal(err)
	}
	known := env.Start(t, everywhere, func(cfg *app.Config) { cfg.Auth.Tokens = file })
	here := env.Start(t, func(cfg *app.Config) { cfg.Listen = "localhost:0" })
	for _, a := range []*env.Archive{known, here} {
		if strings.Contains(a.LogText(), warning) {
			t.Errorf("the log warns without cause: %s", a.LogText())
		}
	}
}
