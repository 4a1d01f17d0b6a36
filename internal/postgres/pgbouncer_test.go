package postgres_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"oda"
	"oda/internal/postgres"
	"oda/internal/test/env"
	"oda/internal/test/suite"
)

// sessionSettings has the settings that pgbouncer does not pass on. It is configured
// to ignore them, and the role of the archive has them instead.
var sessionSettings = postgres.SessionSettings()

// bouncer starts a pgbouncer in transaction mode in front of a server.
func bouncer(t *testing.T, server string, users []string) (address string) {
	t.Helper()
	program, err := exec.LookPath("/usr/sbin/pgbouncer")
	if err != nil {
		t.Fatal(`this test needs pgbouncer: run "make setup", which installs Debian's package pgbouncer`)
	}
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = listener.Addr().String()
	_, own, _ := net.SplitHostPort(address)
	_ = listener.Close()

	dir, err := os.MkdirTemp("", "oda-bouncer-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	var ignored, accounts strings.Builder
	for name := range sessionSettings {
		if name != "application_name" { // pgbouncer passes this one on
			fmt.Fprintf(&ignored, ",%s", name)
		}
	}
	for _, name := range users {
		fmt.Fprintf(&accounts, "\"%s\" \"\"\n", name)
	}
	config := fmt.Sprintf(`[databases]
* = host=%s port=%s

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = trust
auth_file = %s/users
pool_mode = transaction
default_pool_size = 4
server_idle_timeout = 5
max_client_conn = 1000
ignore_startup_parameters = extra_float_digits%s
`, host, port, own, dir, ignored.String())
	for name, text := range map[string]string{"pgbouncer.ini": config, "users": accounts.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.Command(program, filepath.Join(dir, "pgbouncer.ini"))
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: nobody(t), Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("pgbouncer logged:\n%.4000s", log.String())
		}
	})
	await(t, "pgbouncer takes connections", patience, func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return address
}

// nobody returns a user for pgbouncer, which refuses to run as root.
func nobody(t *testing.T) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	account, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, uidErr := strconv.ParseUint(account.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(account.Gid, 10, 32)
	if uidErr != nil || gidErr != nil {
		t.Fatalf("the user nobody has the numbers %s and %s", account.Uid, account.Gid)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// behindBouncer makes roles without further rights, each with a schema and with the
// settings of a session. It returns the DSN of each through pgbouncer.
func behindBouncer(t *testing.T, count int) (dsns []string, past string) {
	t.Helper()
	past = env.Postgres(t)
	admin := connect(t, past)
	name := query[string](t, admin, "SELECT current_database()")
	var users []string
	for i := range count {
		users = append(users, fmt.Sprintf("%s_%d", name, i))
	}
	t.Cleanup(func() {
		for _, u := range users {
			do(t, admin, "DROP OWNED BY "+u+" CASCADE; DROP ROLE "+u)
		}
	})
	address := bouncer(t, address(t, past), users)
	var script strings.Builder
	for _, u := range users {
		fmt.Fprintf(&script, "CREATE ROLE %[1]s LOGIN; CREATE SCHEMA %[1]s AUTHORIZATION %[1]s; ALTER ROLE %[1]s SET search_path = %[1]s;", u)
		for setting, value := range sessionSettings {
			if setting != "application_name" {
				fmt.Fprintf(&script, "ALTER ROLE %s SET %s = '%s';", u, setting, value)
			}
		}
		dsns = append(dsns, fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable&default_query_exec_mode=exec", u, address, name))
	}
	do(t, admin, script.String())
	return dsns, past
}

// Without prepared statements, every statement is planned again, so the two longest
// scenarios would take most of a minute. They prove nothing new here.
func TestTheEngineIsAStoreBehindPgbouncerInTransactionMode(t *testing.T) {
	t.Parallel()
	dsns, _ := behindBouncer(t, 150)
	var archives atomic.Int32
	suite.Run(t, func(tb testing.TB) oda.Engine {
		if strings.Contains(tb.Name(), "/20,000_identifiers") || strings.Contains(tb.Name(), "/properties/") {
			tb.Skip("too slow without prepared statements")
		}
		if strings.Contains(tb.Name(), "/histories/") {
			// Players give up requests, and so cancel statements. PgBouncer 1.18 sometimes
			// crashes if the client that cancels has gone: "bad client state: 0".
			tb.Skip("PgBouncer does not survive the players")
		}
		return open(tb, dsns[archives.Add(1)-1])
	})
}

func TestBehindPgbouncerTheRoleHasTheSettingsOfASession(t *testing.T) {
	t.Parallel()
	dsns, _ := behindBouncer(t, 1)
	conn := connect(t, dsns[0])
	for setting, want := range sessionSettings {
		if got := query[string](t, conn, "SELECT current_setting($1)", pgx.QueryExecModeExec, setting); setting != "application_name" && got != want {
			t.Errorf("%s is %s, want %s", setting, got, want)
		}
	}
}
