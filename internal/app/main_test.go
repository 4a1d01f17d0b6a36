package app_test

import (
	"net/http"
	"os"
	"testing"
	"time"

	"oda/internal/test/env"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m)) }

// client sends requests to a process.
var client = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 32}}

// answered sends a request that must be answered 200, and returns the body.
func answered(t *testing.T, method, url, body string, headers ...string) string {
	t.Helper()
	status, text := env.Send(t, method, url, body, headers...)
	if status != http.StatusOK {
		t.Fatalf("%s %s: status %d: %s", method, url, status, text)
	}
	return text
}
