package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// serveBare is the argument that turns this program into the bare server.
const serveBare = "serve-bare"

// recordAnswer is as long as the archive's answer to a record.
const recordAnswer = `{"eb_id":"eb-bare-000000","sequence":1,"metadata":{"version":1,` +
	`"created_by":"DefaultUser","created_on":"2026-01-07T00:00:00.000000Z",` +
	`"last_modified_by":"DefaultUser","last_modified_on":"2026-01-07T00:00:00.000001Z"}}`

// runBare serves as fast as net/http can: it reads the whole body of a request,
// writes as many bytes as the archive does, with the same headers, and stores
// nothing.
func runBare(addr string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { os.Exit(0) })
	server := &http.Server{Addr: addr, Handler: bareHandler(), ReadHeaderTimeout: 10 * time.Second}
	return fmt.Errorf("serve on %s: %w", addr, server.ListenAndServe())
}

// bareHandler answers a GET with a document, a PUT with its body, and anything
// else like a record.
func bareHandler() http.HandlerFunc {
	document, record := document("sbd-bare-00000000"), []byte(recordAnswer)
	buffers := sync.Pool{New: func() any { return new([]byte) }}
	return func(w http.ResponseWriter, r *http.Request) {
		buffer := buffers.Get().(*[]byte)
		defer buffers.Put(buffer)
		n := int(max(0, r.ContentLength))
		if cap(*buffer) < n {
			*buffer = make([]byte, n)
		}
		body := (*buffer)[:n]
		if _, err := io.ReadFull(r.Body, body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var answer []byte
		h := w.Header()
		switch r.Method {
		case http.MethodGet:
			answer = document
		case http.MethodPut:
			answer = body
		default:
			answer = record
		}
		h["Content-Type"] = []string{"application/json"}
		h["Content-Length"] = []string{strconv.Itoa(len(answer))}
		h["Vary"] = []string{"Accept-Encoding"}
		h["X-Content-Type-Options"] = []string{"nosniff"}
		h["X-Request-Id"] = []string{"AAAAAAAAAAAAAAAAAAAAAAAAAA"}
		if r.Method != http.MethodPost {
			h["Etag"] = []string{`"1-1767744000000000"`}
		}
		_, _ = w.Write(answer) // the client may be gone
	}
}
