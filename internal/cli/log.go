package cli

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"
)

// gatherTime and gatherBytes bound what a gatheredLog keeps back.
const (
	gatherTime  = 10 * time.Millisecond
	gatherBytes = 32 << 10
)

// gatheredLog writes the lines of a log together, a moment after they were logged.
// A server that logs every request would otherwise spend a good part of its time on
// writing single lines. Warnings and errors are written at once, with all that came
// before them.
type gatheredLog struct {
	slog.Handler
	lines *lines
}

// Handle implements slog.Handler.
func (g gatheredLog) Handle(ctx context.Context, r slog.Record) error {
	err := g.Handler.Handle(ctx, r)
	if r.Level >= slog.LevelWarn {
		g.lines.flush()
	}
	return err
}

// WithAttrs implements slog.Handler.
func (g gatheredLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return gatheredLog{g.Handler.WithAttrs(attrs), g.lines}
}

// WithGroup implements slog.Handler.
func (g gatheredLog) WithGroup(name string) slog.Handler {
	return gatheredLog{g.Handler.WithGroup(name), g.lines}
}

// lines is the writer under a gatheredLog. If what it writes to is slow, those who
// log wait, so that it never holds more than about gatherBytes.
type lines struct {
	writing sync.Mutex // taken before mu
	to      io.Writer
	spare   []byte

	mu      sync.Mutex
	pending []byte
	due     bool // flush will be called
}

// Write implements io.Writer.
func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	l.pending = append(l.pending, line...)
	full := len(l.pending) >= gatherBytes
	if !full && !l.due {
		l.due = true
		time.AfterFunc(gatherTime, l.flush)
	}
	l.mu.Unlock()
	if full {
		l.flush()
	}
	return len(line), nil
}

// flush writes what was gathered. Its errors are ignored: a log cannot report that it
// cannot be written.
func (l *lines) flush() {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	text := l.pending
	l.pending, l.due = l.spare[:0], false
	l.mu.Unlock()
	if len(text) > 0 {
		_, _ = l.to.Write(text)
	}
	l.spare = text
}
