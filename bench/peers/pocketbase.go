package peers

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"path/filepath"
	"strings"

	"oda/bench/load"
)

// PocketBaseSettings is how PocketBase is run, for the report.
const PocketBaseSettings = "its defaults: SQLite in WAL with synchronous NORMAL, so that a commit survives the end of the process but not that of the machine, and its request log on; rules open to everybody; the batch API switched on, for up to 100 requests"

// PocketBase renders requests for PocketBase, where a document is the JSON
// field of a row. All are answered 200.
type PocketBase struct{}

const pocketBaseRecords = "/api/collections/records/records"

// Create stores a new document.
func (PocketBase) Create(id string, document []byte) []byte {
	body := fmt.Appendf(nil, `{"id":%q,"document":%s}`, id, document)
	return load.Request(nil, "POST", "/api/collections/sbds/records", jsonHeader(), body)
}

// Get reads a document.
func (PocketBase) Get(id string) []byte {
	return load.Request(nil, "GET", "/api/collections/sbds/records/"+id, nil, nil)
}

// Update stores a document again. The one before is lost: PocketBase keeps no
// versions and compares nothing.
func (PocketBase) Update(id string, document []byte) []byte {
	body := fmt.Appendf(nil, `{"document":%s}`, document)
	return load.Request(nil, "PATCH", "/api/collections/sbds/records/"+id, jsonHeader(), body)
}

// Record adds a record to a block: a row that names it.
func (PocketBase) Record(block string, record []byte) []byte {
	return load.Request(nil, "POST", pocketBaseRecords, jsonHeader(), pocketBaseRecord(nil, block, record))
}

// Batch adds up to 100 records to a block in one transaction.
func (PocketBase) Batch(block string, records [][]byte) []byte {
	var body bytes.Buffer
	body.WriteString(`{"requests":[`)
	for i, record := range records {
		if i > 0 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, `{"method":"POST","url":%q,"body":%s}`, pocketBaseRecords, pocketBaseRecord(nil, block, record))
	}
	body.WriteString(`]}`)
	return load.Request(nil, "POST", "/api/batch", jsonHeader(), body.Bytes())
}

func pocketBaseRecord(buf []byte, block string, record []byte) []byte {
	return fmt.Appendf(buf, `{"eb_id":%q,"document":%s}`, block, record)
}

// PocketBase starts a PocketBase with empty collections. It is built the first
// time; errors.Is(err, ErrUnavailable) if that fails.
func (l *Lab) PocketBase(ctx context.Context) (*Server, error) {
	program, err := l.buildPocketBase(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: build PocketBase: %w", ErrUnavailable, err)
	}
	return l.start(ctx, command{
		name: "PocketBase", path: program, ready: "/api/health",
		args: []string{"serve", "--http", "{addr}", "--dir", filepath.Join(l.Dir, l.numbered("PocketBase-data"))},
	})
}

func (l *Lab) buildPocketBase(ctx context.Context) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pocketBase != "" {
		return l.pocketBase, nil
	}
	l.say("building PocketBase")
	program := filepath.Join(l.Dir, "bin", "pocketbase")
	module, err := moduleDir(ctx, "oda/bench")
	if err != nil {
		return "", err
	}
	if err := l.build(ctx, filepath.Join(module, "peers", "pocketbase"), ".", program); err != nil {
		return "", err
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return "", err
	}
	_, version, _ := strings.Cut(dependency(info, "github.com/pocketbase/pocketbase"), " ")
	l.pocketBase, l.versions["PocketBase"] = program, version
	return program, nil
}
