package skuid

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"oda/internal/test/must"
)

func TestTheServiceAnswers(t *testing.T) {
	for _, c := range []struct {
		method, path string
		status       int
		media        string
		contains     string
	}{
		{"GET", "/", 200, "text/html", "Welcome to skuid"},
		{"GET", "/skuid", 200, "text/html", "Welcome to skuid"},
		{"GET", "/skuid/", 200, "text/html", "GET /skuid/ska_id/{type}"},
		{"GET", "/livez", 200, "text/plain", "ok"},
		{"GET", "/skuid/ska_id/sbd", 200, "application/json", `"ska_uid":"sbd-`},
		{"GET", "/skuid/ska_id/opj", 200, "application/json", `"generator_id":"9"`},
		{"GET", "/skuid/entity_types/get", 200, "application/json", `"sbi":"scheduling block instance"`},
		{"GET", "/skuid/ska_id/test", 404, "application/problem+json", `"status":404`},
		{"GET", "/skuid/ska_id/SBD", 404, "application/problem+json", "Unknown entity type"},
		{"GET", "/skuid/ska_id/sbd%2F..", 404, "application/problem+json", "Unknown entity type"},
		{"GET", "/skuid/ska_id/%22%0a", 404, "application/problem+json", "entity_types/get"},
		{"GET", "/skuid/ska_id/", 404, "", ""},
		{"GET", "/elsewhere", 404, "", ""},
		{"POST", "/skuid/ska_id/sbd", 405, "", ""},
		{"DELETE", "/skuid", 405, "", ""},
	} {
		t.Run(c.method+c.path, func(t *testing.T) {
			status, header, body := call(t, NewService(newGenerator(t, 9), false, quiet()), c.method, c.path)
			if status != c.status || !strings.HasPrefix(header.Get("Content-Type"), c.media) || !strings.Contains(body, c.contains) {
				t.Errorf("got %d, %s, %s", status, header.Get("Content-Type"), body)
			}
			if strings.Contains(c.media, "json") && !json.Valid([]byte(body)) {
				t.Errorf("%s is not JSON", body)
			}
			if header.Get("Cache-Control") != "no-store" {
				t.Error("a cache may repeat the answer")
			}
		})
	}
}

func TestEveryListedTypeIsServed(t *testing.T) {
	for _, twice := range []bool{false, true} {
		service := NewService(newGenerator(t, 9), twice, quiet())
		types := decodeAnswer(t, service, twice, "/skuid/entity_types/get")
		for _, word := range strings.Fields("dp eb ob obsq obsqi pb pnl pnld prj prp rvw sbd sbi sft sfta sftc sftcr txn opj opp") {
			if types[word] == "" {
				t.Errorf("%s is not listed", word)
			}
		}
		for word := range types {
			answer := decodeAnswer(t, service, twice, "/skuid/ska_id/"+word)
			if prefix, _, generator, _ := parse(t, answer["ska_uid"]); prefix != word || generator != 9 || answer["generator_id"] != "9" {
				t.Errorf("%s: got %v", word, answer)
			}
		}
	}
}

func TestAMintingFailureIsAnsweredWithoutItsCause(t *testing.T) {
	generator := newGenerator(t, 9)
	stop(t, generator)
	var log strings.Builder
	service := NewService(generator, false, slog.New(slog.NewTextHandler(&log, nil)))
	status, header, body := call(t, service, "GET", "/skuid/ska_id/sbd")
	if status != 500 || header.Get("Content-Type") != "application/problem+json" || strings.Contains(body, "closed") {
		t.Errorf("got %d, %s, %s", status, header.Get("Content-Type"), body)
	}
	if !strings.Contains(log.String(), "closed") {
		t.Errorf("the log does not say why: %s", log.String())
	}
}

func TestAServiceThatCannotStartSaysWhyAndLeavesNoFiles(t *testing.T) {
	taken := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	state := filepath.Join(t.TempDir(), "state")
	for about, c := range map[string]struct {
		config Config
		want   string
	}{
		"port in use":     {Config{Listen: taken.Addr().String(), StateFile: state}, "the address is in use"},
		"no such number":  {Config{Listen: "127.0.0.1:0", Generator: 1024, StateFile: state}, "0 to 1023"},
		"no such address": {Config{Listen: "127.0.0.1:http:x", StateFile: state}, "127.0.0.1:http:x"},
	} {
		t.Run(about, func(t *testing.T) {
			err := Run(context.Background(), c.config)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v", err)
			}
			if err := openState(t, state).lock.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func call(t *testing.T, handler http.Handler, method, path string) (int, http.Header, string) {
	t.Helper()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(method, path, nil))
	return recorder.Code, recorder.Header(), recorder.Body.String()
}

func decodeAnswer(t *testing.T, handler http.Handler, twice bool, path string) map[string]string {
	t.Helper()
	_, _, body := call(t, handler, "GET", path)
	if twice {
		var inner string
		if err := json.Unmarshal([]byte(body), &inner); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		body = inner
	}
	var document map[string]string
	if err := json.Unmarshal([]byte(body), &document); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return document
}
