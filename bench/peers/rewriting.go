package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oda/bench/load"
)

// Rewriting renders requests for the server that rewrites a whole block for
// each record.
type Rewriting struct{}

// Create stores an empty block.
func (Rewriting) Create(id string) []byte {
	return load.Request(nil, "PUT", "/ebs/"+id, jsonHeader(), EmptyBlock(id))
}

// Record adds a record to a block.
func (Rewriting) Record(id string, record []byte) []byte {
	return load.Request(nil, "PATCH", "/ebs/"+id+"/request_response", jsonHeader(), record)
}

// Get reads a block.
func (Rewriting) Get(id string) []byte { return load.Request(nil, "GET", "/ebs/"+id, nil, nil) }

// jsonHeader says what a body is.
func jsonHeader() []string { return []string{"Content-Type", "application/json"} }

// Rewriting starts a server that records in the way of the service that the
// archive replaced: a block is one document in a jsonb column, and each record
// means to read all of it, append, and write all of it. It is a kind
// re-creation: in Go instead of Python, with an index, without a data model to
// parse into, with a row lock so that no record is lost, the row updated in
// place instead of a new one for each version, and a short answer instead of
// the whole block.
func (l *Lab) Rewriting(ctx context.Context, dsn string) (*Server, error) {
	return l.startChild(ctx, "rewriting", serveRewriting, dsn)
}

const rewritingSchema = `CREATE TABLE IF NOT EXISTS tab_oda_eb (
	id serial PRIMARY KEY, eb_id text NOT NULL UNIQUE, info jsonb NOT NULL, version integer NOT NULL,
	created_by text NOT NULL, created_on timestamptz NOT NULL, last_modified_by text NOT NULL, last_modified_on timestamptz NOT NULL)`

// runRewriting serves until the context ends.
func runRewriting(ctx context.Context, addr, dsn string) error {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return fmt.Errorf("read the DSN: %w", err)
	}
	config.MaxConns = 16
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, rewritingSchema); err != nil {
		return fmt.Errorf("make the table of blocks: %w", err)
	}
	b := blocks{pool}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.Handle("PUT /ebs/{id}", answering(b.create))
	mux.Handle("GET /ebs/{id}", answering(b.get))
	mux.Handle("PATCH /ebs/{id}/request_response", answering(b.record))
	return serve(ctx, addr, mux)
}

// blocks are those in the database.
type blocks struct{ pool *pgxpool.Pool }

// answering makes a handler of a function that takes the identifier and the
// body, and gives the answer.
func answering(do func(ctx context.Context, id string, body []byte) ([]byte, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<20))
		var answer []byte
		if err == nil {
			answer, err = do(r.Context(), r.PathValue("id"), body)
		}
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			http.Error(w, "the block could not be found", http.StatusNotFound)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(answer) // the client may be gone
		}
	})
}

func (b blocks) create(ctx context.Context, id string, body []byte) ([]byte, error) {
	_, err := b.pool.Exec(ctx, `INSERT INTO tab_oda_eb (eb_id, info, version, created_by, created_on, last_modified_by, last_modified_on)
		VALUES ($1, $2, 1, 'DefaultUser', now(), 'DefaultUser', now())`, id, body)
	return body, err
}

func (b blocks) get(ctx context.Context, id string, _ []byte) (body []byte, err error) {
	err = b.pool.QueryRow(ctx, "SELECT info FROM tab_oda_eb WHERE eb_id = $1", id).Scan(&body)
	return body, err
}

// block is a block as far as recording must know it.
type block map[string]json.RawMessage

func (b blocks) record(ctx context.Context, id string, record []byte) (answer []byte, err error) {
	err = pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
		var stored []byte
		if err := tx.QueryRow(ctx, "SELECT info FROM tab_oda_eb WHERE eb_id = $1 FOR UPDATE", id).Scan(&stored); err != nil {
			return err
		}
		var whole block
		if err := json.Unmarshal(stored, &whole); err != nil {
			return err
		}
		var records []json.RawMessage
		if err := json.Unmarshal(whole["request_responses"], &records); err != nil {
			return err
		}
		records = append(records, record)
		var err error
		if whole["request_responses"], err = json.Marshal(records); err != nil {
			return err
		}
		rewritten, err := json.Marshal(whole)
		if err != nil {
			return err
		}
		now := time.Now().UTC()
		answer = fmt.Appendf(nil, `{"eb_id":%q,"sequence":%d,"metadata":{"version":1,"created_by":"DefaultUser","last_modified_by":"DefaultUser","last_modified_on":%q}}`,
			id, len(records), now.Format("2006-01-02T15:04:05.000000Z"))
		_, err = tx.Exec(ctx, "UPDATE tab_oda_eb SET info = $2, last_modified_by = 'DefaultUser', last_modified_on = $3 WHERE eb_id = $1", id, rewritten, now)
		return err
	})
	return answer, err
}
