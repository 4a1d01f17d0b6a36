package postgres_test

import (
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oda/internal/postgres"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// The file is read for every connection, so the password can be changed while the
// archive runs.
func TestThePasswordIsReadFromAFile(t *testing.T) {
	t.Parallel()
	cluster := env.NewCluster(t, env.ClusterOptions{})
	hba := must.Get(os.ReadFile(filepath.Join(cluster.DataDir, "pg_hba.conf")))(t)
	writeFor(t, cluster.DataDir, "pg_hba.conf", append([]byte("host all archive 127.0.0.1/32 scram-sha-256\n"), hba...))
	admin := connect(t, cluster.DSN("postgres"))
	do(t, admin, "SELECT pg_reload_conf()", "CREATE ROLE archive LOGIN PASSWORD 'first'", "CREATE DATABASE archive OWNER archive")
	file := filepath.Join(t.TempDir(), "password")
	set := func(text string) {
		t.Helper()
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	}
	u := must.Get(url.Parse(with(t, cluster.DSN("archive"), "password_file", file)))(t)
	u.User = url.User("archive")
	refused := func(says string) {
		t.Helper()
		if s, err := postgres.Open(t.Context(), u.String(), slog.New(slog.DiscardHandler)); err == nil {
			_ = s.Close()
			t.Fatal("the archive was opened")
		} else if !strings.Contains(err.Error(), says) {
			t.Errorf("the error is %q, want %q", err, says)
		}
	}
	refused("cannot read the password of the database (password_file in --db)")
	set("\n")
	refused("is empty")
	set("wrong\n")
	refused("password authentication failed")
	set("first\n")
	s := open(t, u.String())
	mustPut(t, s, write(t, sbd("a"), `{}`))

	do(t, admin, "ALTER ROLE archive PASSWORD 'second'")
	set("second")
	do(t, admin, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'archive'")
	await(t, "the archive connects with the new password", patience, func() bool { return s.Ping(t.Context()) == nil })
	mustPut(t, s, write(t, sbd("b"), `{}`))
	if err := postgres.Check(u.String()); err != nil {
		t.Errorf("the address is checked with %v", err)
	}
}
