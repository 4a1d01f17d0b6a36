package postgres_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"oda"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// With channel binding, the server proves during the check of the password that
// nobody is in between. For that, the driver must see the TLS of the connection.
func TestTheArchiveUsesTLSWithChannelBinding(t *testing.T) {
	t.Parallel()
	cluster := env.NewCluster(t, env.ClusterOptions{})
	certificate, key := env.SelfSigned(t)
	for name, text := range map[string][]byte{"server.crt": certificate, "server.key": key} {
		writeFor(t, cluster.DataDir, name, text)
	}
	hba := must.Get(os.ReadFile(filepath.Join(cluster.DataDir, "pg_hba.conf")))(t)
	writeFor(t, cluster.DataDir, "pg_hba.conf", append([]byte("hostssl all archive 127.0.0.1/32 scram-sha-256\n"), hba...))
	root := filepath.Join(t.TempDir(), "root.crt")
	must.Do(t, os.WriteFile(root, certificate, 0o600))
	admin := connect(t, cluster.DSN("postgres"))
	do(t, admin, "ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()",
		"CREATE ROLE archive LOGIN PASSWORD 'secret'", "CREATE DATABASE archive OWNER archive")
	u := must.Get(url.Parse(with(t, cluster.DSN("archive"), "sslmode", "verify-full", "sslrootcert", root, "channel_binding", "require")))(t)
	u.User = url.UserPassword("archive", "secret")
	await(t, "the server has TLS", patience, func() bool { return query[string](t, connect(t, cluster.DSN("archive")), "SHOW ssl") == "on" })

	s, watch := open(t, u.String()), connect(t, cluster.DSN("archive"))
	if n := query[int](t, watch, "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name LIKE 'oda%' AND NOT ssl"); n != 0 {
		t.Errorf("%d connections are not encrypted", n)
	}
	m := mustPut(t, s, write(t, sbd("a"), `{}`)).Metadata
	mustPut(t, s, write(t, block("b"), `{}`))
	mustRecord(t, s, "b", "one")

	// A request whose caller goes away is given up on an encrypted connection too.
	locker := connect(t, cluster.DSN("archive"))
	do(t, locker, "BEGIN", "LOCK TABLE heads")
	for name, call := range map[string]func(ctx context.Context) error{
		"get": func(ctx context.Context) error { _, err := s.Get(ctx, sbd("a")); return err },
		"put": func(ctx context.Context) error { _, err := s.Put(ctx, []oda.Put{next(t, sbd("a"), m)}); return err },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan error, 1)
		go func() { answer <- call(ctx) }()
		await(t, name+" waits", patience, func() bool { return waiting(t, watch) == 1 })
		cancel()
		await(t, name+" is gone from the server", patience, func() bool { return waiting(t, watch) == 0 })
		if err := <-answer; !errors.Is(err, context.Canceled) {
			t.Errorf("%s answers %v", name, err)
		}
	}
}

// writeFor writes a file that only the owner of its directory may read.
func writeFor(t *testing.T, dir, name string, text []byte) {
	t.Helper()
	info := must.Get(os.Stat(dir))(t)
	owner := info.Sys().(*syscall.Stat_t)
	path := filepath.Join(dir, name)
	must.Do(t, errors.Join(os.WriteFile(path, text, 0o600), os.Chown(path, int(owner.Uid), int(owner.Gid))))
}
