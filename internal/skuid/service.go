package skuid

import (
	"encoding/json"
	"fmt"
	"html"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Service is the HTTP API of an identifier service.
type Service struct {
	generator *Generator
	twice     bool
	logger    *slog.Logger
	mux       *http.ServeMux
	page      []byte
}

// NewService returns a service for this generator. If twice is set, JSON
// answers are JSON strings that contain the document, as clients of the first
// identifier service expect.
func NewService(generator *Generator, twice bool, logger *slog.Logger) *Service {
	s := &Service{
		generator: generator,
		twice:     twice,
		logger:    logger,
		mux:       http.NewServeMux(),
		page:      welcomePage(),
	}
	s.mux.HandleFunc("GET /{$}", s.welcome)
	s.mux.HandleFunc("GET /skuid", s.welcome)
	s.mux.HandleFunc("GET /skuid/{$}", s.welcome)
	s.mux.HandleFunc("GET /skuid/ska_id/{type}", s.mint)
	s.mux.HandleFunc("GET /skuid/entity_types/get", s.types)
	s.mux.HandleFunc("GET /livez", s.alive)
	return s
}

// ServeHTTP answers one request.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A cached identifier would not be unique.
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	s.mux.ServeHTTP(w, r)
}

func (s *Service) mint(w http.ResponseWriter, r *http.Request) {
	word := r.PathValue("type")
	if _, ok := entityTypes[word]; !ok {
		s.problem(w, r, http.StatusNotFound, "Unknown entity type; GET /skuid/entity_types/get lists them.")
		return
	}
	id, err := s.generator.Next(word)
	if err != nil {
		s.logger.ErrorContext(r.Context(), "no identifier available", "type", word, "error", err)
		s.problem(w, r, http.StatusInternalServerError, "No identifier available; see the log of this service.")
		return
	}
	s.answer(w, r, map[string]string{
		"ska_uid":      id,
		"generator_id": strconv.Itoa(int(s.generator.Number())),
	})
}

func (s *Service) types(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, entityTypes)
}

func (s *Service) welcome(w http.ResponseWriter, r *http.Request) {
	s.send(w, r, http.StatusOK, "text/html; charset=utf-8", s.page)
}

func (s *Service) alive(w http.ResponseWriter, r *http.Request) {
	s.send(w, r, http.StatusOK, "text/plain; charset=utf-8", []byte("ok\n"))
}

func (s *Service) answer(w http.ResponseWriter, r *http.Request, document map[string]string) {
	text, err := json.Marshal(document)
	if err == nil && s.twice {
		text, err = json.Marshal(string(text))
	}
	if err != nil {
		s.logger.ErrorContext(r.Context(), "an answer could not be encoded", "error", err)
		s.problem(w, r, http.StatusInternalServerError, "The answer could not be encoded.")
		return
	}
	s.send(w, r, http.StatusOK, "application/json", append(text, '\n'))
}

// problem answers with a problem document. The detail is a constant sentence
// that needs no escaping beyond Go's own.
func (s *Service) problem(w http.ResponseWriter, r *http.Request, status int, detail string) {
	text := fmt.Sprintf(`{"type":"about:blank","title":%q,"status":%d,"detail":%q}`+"\n", http.StatusText(status), status, detail)
	s.send(w, r, status, "application/problem+json", []byte(text))
}

func (s *Service) send(w http.ResponseWriter, r *http.Request, status int, media string, body []byte) {
	w.Header().Set("Content-Type", media)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil {
		s.logger.DebugContext(r.Context(), "the caller went away", "error", err)
	}
}

func welcomePage() []byte {
	var b strings.Builder
	b.WriteString(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>skuid</title>
<h1>Welcome to skuid</h1>
<p>This service gives out identifiers. Each is given out once.</p>
<ul>
<li><code>GET /skuid/ska_id/{type}</code>: a new identifier of that type, as <code>ska_uid</code></li>
<li><code>GET /skuid/entity_types/get</code>: the types, as JSON</li>
<li><code>GET /livez</code>: whether the service answers</li>
</ul>
<table>
<tr><th>type</th><th>entity</th></tr>
`)
	for _, word := range slices.Sorted(maps.Keys(entityTypes)) {
		fmt.Fprintf(&b, "<tr><td>%s</td><td>%s</td></tr>\n", word, html.EscapeString(entityTypes[word]))
	}
	b.WriteString("</table>\n</html>\n")
	return []byte(b.String())
}
