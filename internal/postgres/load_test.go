package postgres_test

import (
	"testing"
	"time"

	"oda"
	"oda/internal/test/env"
	"oda/internal/test/history"
	"oda/internal/test/load"
)

// startLoad begins to write to the stores, each behind a server of its own.
func startLoad(t *testing.T, stores ...oda.Engine) *env.Load {
	t.Helper()
	var hosts []string
	for _, store := range stores {
		hosts = append(hosts, serve(t, store))
	}
	return env.NewLoad(t, load.Options{Pace: 50 * time.Millisecond}, hosts...)
}

// serve serves an archive on a store until the test ends, and returns its address.
func serve(t *testing.T, store oda.Engine) string {
	t.Helper()
	server := history.NewServer(t, store)
	t.Cleanup(server.Close)
	return server.Host()
}

// wantStored ends a load, and demands that the store, in the database of that DSN, has
// every acknowledged write once, and no damage.
func wantStored(t *testing.T, l *env.Load, store oda.Engine, dsn string) {
	t.Helper()
	l.Whole(serve(t, store))
	wantWhole(t, dsn)
}
