package env

import (
	"bytes"
	"log/slog"
	"sync"
)

// Journal is a log that can be read while it is written.
type Journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (j *Journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

// String returns what was written so far.
func (j *Journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// Logger returns a logger that writes to the journal.
func (j *Journal) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }
