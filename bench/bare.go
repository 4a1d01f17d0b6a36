package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// serveBare is the argument that turns this program into the bare server.
const serveBare = "serve-bare"

// recordAnswer is as long as the archive's answer to a record.
const recordAnswer = `{"eb_id":"eb-bare-000000","sequence":1,"metadata":{"version":1,` +
	`"created_by":"DefaultUser","created_on":"2026-01-07T00:00:00.000000Z",` +
	`"last_modified_by":"DefaultUser","last_modified_on":"2026-01-07T00:00:00.000001Z"}}`

// runBare serves as fast as net/http can: it reads the whole body of a request,
// writes as many bytes as the archive does, with the same headers, and stores
// nothing, except that it inserts records into a database if one is named.
func runBare(addr string, db ...string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { os.Exit(0) })
	insert := func(context.Context, []byte) error { return nil }
	if len(db) > 0 {
		pool, err := pgxpool.New(ctx, db[0])
		if err != nil {
			return err
		}
		insert = inserting(pool)
	}
	server := &http.Server{Addr: addr, Handler: bareHandler(insert), ReadHeaderTimeout: 10 * time.Second}
	return fmt.Errorf("serve on %s: %w", addr, server.ListenAndServe())
}

// inserting inserts the row of a record alone, as pgbench does in recordScript.
func inserting(pool *pgxpool.Pool) func(ctx context.Context, text []byte) error {
	var sequence atomic.Int64
	sequence.Store(time.Now().UnixMicro())
	return func(ctx context.Context, text []byte) error {
		_, err := pool.Exec(ctx, `INSERT INTO records (kind, identifier, sequence, version, recorded_by, recorded_on, text, digest, seal)
			VALUES (3, 'eb-bare', $1, 1, 'DefaultUser', $1, $2, `+seals+`)`, sequence.Add(1), text)
		return err
	}
}

// What an oda on SQLite sends to each of 100 followers while 64 connections record:
// so many bytes, so often.
const (
	streamBytes = 4500
	streamPause = time.Second / 60
)

// bareStreams are streams that say nothing. What they cost is the price of the
// connections.
type bareStreams struct {
	mu    sync.Mutex
	conns []net.Conn
}

// begin makes the connection of a request a stream. One goroutine serves all of them.
func (s *bareStreams) begin(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n") // send notices if it fails
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns = append(s.conns, conn); len(s.conns) == 1 {
		go s.send()
	}
}

// send writes to all streams until there is none.
func (s *bareStreams) send() {
	nothing := bytes.Repeat([]byte("\n"), streamBytes)
	for range time.Tick(streamPause) {
		s.mu.Lock()
		s.conns = slices.DeleteFunc(s.conns, func(conn net.Conn) bool {
			_, err := conn.Write(nothing)
			return err != nil && conn.Close() == nil
		})
		left := len(s.conns)
		s.mu.Unlock()
		if left == 0 {
			return
		}
	}
}

// bareHandler answers a GET with a document, a PUT with its body, and anything
// else like a record, once that is inserted.
func bareHandler(insert func(context.Context, []byte) error) http.HandlerFunc {
	document, record := document("sbd-bare-00000000"), []byte(recordAnswer)
	buffers := sync.Pool{New: func() any { return new([]byte) }}
	var streams bareStreams
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") == "text/event-stream" {
			streams.begin(w)
			return
		}
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
			if err := insert(r.Context(), body); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
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
