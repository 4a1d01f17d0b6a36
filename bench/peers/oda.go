package peers

import (
	"context"
	"path/filepath"
	"strings"
)

// Oda starts one more process of the archive, with the defaults that an
// operator gets, and one log line per request in a file.
func (l *Lab) Oda(ctx context.Context, db string, args ...string) (*Server, error) {
	args = append([]string{"serve", "--listen", "{addr}", "--db", db}, args...)
	if l.profiles != "" {
		return l.start(ctx, l.profiled(db, args))
	}
	return l.start(ctx, command{name: "oda", path: l.oda, ready: "/readyz", args: args})
}

// SQLite names a fresh archive file for the flag --db.
func (l *Lab) SQLite(name string) string {
	return "sqlite:" + filepath.Join(l.Dir, l.numbered("archive-"+name)+".db")
}

// sqlitePath is the file of such a name.
func sqlitePath(db string) string { return strings.TrimPrefix(db, "sqlite:") }
