package postgres_test

import (
	"bytes"
	"fmt"
	"net"
	"net/url"
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
	"oda/internal/test/fault"
	"oda/internal/test/must"
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
	must.Do(t, err)
	address, err = fault.FreeAddr()
	must.Do(t, err)
	_, own, _ := net.SplitHostPort(address)

	dir := must.Get(os.MkdirTemp("", "oda-bouncer-"))(t)
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
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	must.Do(t, os.Chmod(dir, 0o755))
	var log bytes.Buffer
	cmd := exec.Command(program, filepath.Join(dir, "pgbouncer.ini"))
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: nobody(t), Pdeathsig: syscall.SIGKILL}
	must.Do(t, cmd.Start())
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
	account := must.Get(user.Lookup("nobody"))(t)
	uid, uidErr := strconv.ParseUint(account.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(account.Gid, 10, 32)
	if uidErr != nil || gidErr != nil {
		t.Fatalf("the user nobody has the numbers %s and %s", account.Uid, account.Gid)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// behindBouncer makes roles without further rights in a database, each with a schema
// of its name and with the settings of a session. It returns the DSN of each through
// pgbouncer.
func behindBouncer(t *testing.T, database string, count int) (dsns []string) {
	t.Helper()
	admin := connect(t, database)
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
	address := bouncer(t, address(t, database), users)
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
	return dsns
}

// collated makes a database with the collation of a language, in which "a" sorts
// before "B", and "_" is ignored.
func collated(t *testing.T) (dsn string) {
	t.Helper()
	server := env.Postgres(t)
	admin := connect(t, server)
	if query[int](t, admin, "SELECT current_setting('server_version_num')::int") < 150000 {
		t.Skip("this needs PostgreSQL 15, in which a database can have the collation of a language on any machine")
	}
	name := "collated_" + query[string](t, admin, "SELECT current_database()")
	do(t, admin, "CREATE DATABASE "+name+" TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C'")
	t.Cleanup(func() { do(t, admin, "DROP DATABASE "+name+" WITH (FORCE)") })
	u := must.Get(url.Parse(server))(t)
	u.Path = "/" + name
	if !query[bool](t, connect(t, u.String()), "SELECT 'a' < 'B'") {
		t.Fatal("the database has the collation of bytes")
	}
	return u.String()
}

// Where everything is against it, the engine is a store all the same: the database has
// the collation of a language, while the order of the archive is always that of bytes;
// many archives share it, each in a schema of its own; they are served with the rights
// that the documentation gives, and no others, through pgbouncer in transaction mode.
//
// Without prepared statements, every statement is planned again, so the longest
// scenarios would take a minute. They prove nothing new here. Of the others, only "make
// proof" runs all, and the tests every fourth.
func TestTheEngineIsAStoreBehindPgbouncerWithAnyCollationAndOnlyTheDocumentedRights(t *testing.T) {
	t.Parallel()
	database := collated(t)
	dsns := behindBouncer(t, database, 200) // more than the suite has scenarios
	var archives, scenarios atomic.Int32
	suite.Run(t, func(tb testing.TB) oda.Engine {
		if n := scenarios.Add(1); n%4 != 0 && !env.InProof() {
			tb.Skip(`"make proof" runs this scenario behind pgbouncer`)
		}
		for _, long := range []string{"/20,000_identifiers", "/properties/", "/nights/a_night_is_the_sum", "/progress/the_progress_of_200"} {
			if strings.Contains(tb.Name(), long) {
				tb.Skip("too slow without prepared statements")
			}
		}
		if strings.Contains(tb.Name(), "/histories/") {
			// Players give up requests, and so cancel statements. PgBouncer 1.18 sometimes
			// crashes if the client that cancels has gone: "bad client state: 0".
			tb.Skip("PgBouncer does not survive the players")
		}
		dsn := dsns[archives.Add(1)-1]
		service := must.Get(pgx.ParseConfig(dsn))(tb)
		role := service.User
		owner := with(tb, database, "search_path", role)
		admin := connect(tb, owner)
		do(tb, admin, "ALTER SCHEMA "+role+" OWNER TO CURRENT_USER")
		must.Do(tb, postgres.Prepare(tb.Context(), owner))
		do(tb, admin, documentedGrants(tb, role, role)...)
		return open(tb, dsn)
	})
}

func TestBehindPgbouncerTheRoleHasTheSettingsOfASessionAndCanMakeTheTables(t *testing.T) {
	t.Parallel()
	dsn := behindBouncer(t, env.Postgres(t), 1)[0]
	open(t, dsn)
	conn := connect(t, dsn)
	for setting, want := range sessionSettings {
		if got := query[string](t, conn, "SELECT current_setting($1)", pgx.QueryExecModeExec, setting); setting != "application_name" && got != want {
			t.Errorf("%s is %s, want %s", setting, got, want)
		}
	}
}
