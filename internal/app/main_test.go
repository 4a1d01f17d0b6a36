package app_test

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"oda/internal/test/env"
	"oda/internal/test/must"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m)) }

// client sends requests to a process.
var client = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 32}}

// try sends a request and returns status and body. Headers are pairs.
func try(method, url, body string, headers ...string) (int, string, error) {
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// send is like try, but fails the test if there is no answer.
func send(t *testing.T, method, url, body string, headers ...string) (int, string) {
	t.Helper()
	status, text, err := try(method, url, body, headers...)
	must.Do(t, err)
	return status, text
}

// answered is like send, but fails the test unless the status is 200.
func answered(t *testing.T, method, url, body string, headers ...string) string {
	t.Helper()
	status, text := send(t, method, url, body, headers...)
	if status != http.StatusOK {
		t.Fatalf("%s %s: status %d: %s", method, url, status, text)
	}
	return text
}
