package fault_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"oda/internal/test/env"
	"oda/internal/test/fault"
)

// newProxy returns a proxy to the shared cluster, and the DSNs of a database with
// a table of notes, through the proxy and directly.
func newProxy(t *testing.T) (proxy *fault.Proxy, through, past string) {
	t.Helper()
	past = env.Postgres(t)
	env.Exec(t, env.Connect(t, past), "CREATE TABLE notes (note text)")
	config, err := pgx.ParseConfig(past)
	if err != nil {
		t.Fatal(err)
	}
	proxy = env.NewProxy(t, net.JoinHostPort(config.Host, fmt.Sprint(config.Port)))
	return proxy, proxy.DSN(past), past
}

func TestAProxyPassesEverythingByDefault(t *testing.T) {
	_, through, _ := newProxy(t)
	for _, mode := range []string{"disable", "prefer"} {
		conn := env.Connect(t, strings.Replace(through, "sslmode=disable", "sslmode="+mode, 1))
		long := strings.Repeat("é", 3<<20)
		if got := env.Query[string](t, conn, "SELECT $1::text", long); got != long {
			t.Errorf("a long text came back with %d bytes, want %d", len(got), len(long))
		}
		if got := env.Query[int](t, conn, "SELECT count(*) FROM generate_series(1, 1000)"); got != 1000 {
			t.Errorf("got %d, want 1000", got)
		}
		rows, err := conn.Query(t.Context(), "SELECT generate_series(1, 100000)")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := pgx.CollectRows(rows, pgx.RowTo[int]); len(got) != 100000 || err != nil {
			t.Errorf("got %d rows, %v, want 100000", len(got), err)
		}
	}
}

func TestACommitIsCutBeforeInsideAndAfter(t *testing.T) {
	for _, test := range []struct {
		name string
		cut  fault.Cut
		want int // notes in the end
	}{
		{"before it: nothing is stored", fault.CutBefore, 0},
		{"inside it: nothing is stored", fault.CutInside, 0},
		{"before its answer: it is stored and the client does not know", fault.CutAnswer, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			proxy, through, past := newProxy(t)
			conn := env.Connect(t, through)
			proxy.OnClientMessage(func(message []byte) fault.Cut {
				if message[0] == 'Q' && bytes.Contains(message, []byte("commit")) {
					return test.cut
				}
				return fault.NoCut
			})
			env.Exec(t, conn, "begin")
			env.Exec(t, conn, "INSERT INTO notes VALUES ('x')")
			if _, err := conn.Exec(t.Context(), "commit"); err == nil {
				t.Error("the client got an answer")
			}
			if got := proxy.Cuts(); got != 1 {
				t.Errorf("%d connections were cut, want 1", got)
			}
			if got := notesAtRest(t, past); got != test.want {
				t.Errorf("%d notes are stored, want %d", got, test.want)
			}
			proxy.OnClientMessage(nil)
			env.Exec(t, env.Connect(t, through), "commit")
		})
	}
}

// A statement of the extended protocol commits at its Sync message.
func TestAPreparedStatementIsCutBeforeItsAnswer(t *testing.T) {
	proxy, through, past := newProxy(t)
	conn := env.Connect(t, through)
	const statement = "INSERT INTO notes VALUES ($1)"
	if _, err := conn.Exec(t.Context(), statement, "first"); err != nil {
		t.Fatal(err)
	}
	proxy.OnClientMessage(func(message []byte) fault.Cut {
		if message[0] == 'S' {
			return fault.CutAnswer
		}
		return fault.NoCut
	})
	if _, err := conn.Exec(t.Context(), statement, "second"); err == nil {
		t.Error("the client got an answer")
	}
	if got := notesAtRest(t, past); got != 2 {
		t.Errorf("%d notes are stored, want 2", got)
	}
}

// notesAtRest counts the notes once the server has noticed the end of all other
// sessions.
func notesAtRest(t *testing.T, dsn string) int {
	t.Helper()
	conn := env.Connect(t, dsn)
	err := fault.Poll(t.Context(), 10*time.Second, "the end of the other sessions", func() (bool, error) {
		var others int
		err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL`).Scan(&others)
		return others == 0, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return env.Query[int](t, conn, "SELECT count(*) FROM notes")
}

func TestAnAnswerOrARequestIsCutInside(t *testing.T) {
	for name, direction := range map[string]fault.Direction{"answer": fault.ToClient, "request": fault.ToServer} {
		t.Run(name, func(t *testing.T) {
			proxy, through, _ := newProxy(t)
			conn := env.Connect(t, through)
			const long = "SELECT length($1), $1::text"
			text := strings.Repeat("x", 100_000)
			proxy.CutAfter(direction, 50_000)
			if _, err := conn.Exec(t.Context(), long, text); err == nil {
				t.Error("the whole answer arrived")
			}
			if got := proxy.Cuts(); got != 1 {
				t.Errorf("%d connections were cut, want 1", got)
			}
			again := env.Connect(t, through)
			if _, err := again.Exec(t.Context(), long, text); err != nil {
				t.Errorf("the proxy cuts again: %v", err)
			}
		})
	}
}

func TestCutAllResetsConnectionsAndAcceptsNewOnes(t *testing.T) {
	proxy, through, _ := newProxy(t)
	first, second := env.Connect(t, through), env.Connect(t, through)
	proxy.CutAll()
	for _, conn := range []*pgx.Conn{first, second} {
		if err := conn.Ping(t.Context()); err == nil {
			t.Error("the connection still works")
		}
	}
	env.Query[int](t, env.Connect(t, through), "SELECT 1")
}

func TestNewConnectionsAreRefusedAndOldOnesStay(t *testing.T) {
	proxy, through, _ := newProxy(t)
	old := env.Connect(t, through)
	proxy.Refuse(true)
	if conn, err := pgx.Connect(t.Context(), through); err == nil {
		_ = conn.Close(t.Context())
		t.Error("a new connection was accepted")
	}
	env.Query[int](t, old, "SELECT 1")
	proxy.Refuse(false)
	env.Query[int](t, env.Connect(t, through), "SELECT 1")
}

func TestStalledBytesArriveLaterAndNoneIsLost(t *testing.T) {
	proxy, through, _ := newProxy(t)
	conn := env.Connect(t, through)
	proxy.Stall(true)
	answers := make(chan int, 1)
	go func() {
		var answer int
		_ = conn.QueryRow(context.Background(), "SELECT 42").Scan(&answer) // 0 is noticed
		answers <- answer
	}()
	select {
	case <-answers:
		t.Error("an answer arrived")
	case <-time.After(200 * time.Millisecond):
	}
	proxy.Stall(false)
	if got := <-answers; got != 42 {
		t.Errorf("the answer is %d, want 42", got)
	}
}

func TestConnectionsGoToTheCurrentTarget(t *testing.T) {
	_, _, past := newProxy(t)
	config, err := pgx.ParseConfig(past)
	if err != nil {
		t.Fatal(err)
	}
	port, err := fault.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	proxy := env.NewProxy(t, net.JoinHostPort("127.0.0.1", fmt.Sprint(port)))
	if conn, err := pgx.Connect(t.Context(), proxy.DSN(past)); err == nil {
		_ = conn.Close(t.Context())
		t.Error("a connection to a stopped server was made")
	}
	proxy.SetTarget(net.JoinHostPort(config.Host, fmt.Sprint(config.Port)))
	env.Query[int](t, env.Connect(t, proxy.DSN(past)), "SELECT 1")
}

func TestAProxyEndsWithItsTestEvenIfStalled(t *testing.T) {
	past := env.Postgres(t)
	before := goleak.IgnoreCurrent()
	t.Run("stalled with open connections", func(t *testing.T) {
		config, err := pgx.ParseConfig(past)
		if err != nil {
			t.Fatal(err)
		}
		proxy := env.NewProxy(t, net.JoinHostPort(config.Host, fmt.Sprint(config.Port)))
		conn := env.Connect(t, proxy.DSN(past))
		proxy.Stall(true)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := conn.Exec(ctx, "SELECT 1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want no answer", err)
		}
	})
	goleak.VerifyNone(t, before)
}
