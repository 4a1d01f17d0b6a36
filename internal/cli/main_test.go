package cli

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"oda/internal/test/env"
)

func TestMain(m *testing.M) {
	testscript.Main(cleaned{m}, map[string]func(){
		"oda": func() { os.Exit(Run(os.Args[1:], os.Stdout, os.Stderr, "1.2.3")) },
	})
}

// cleaned runs the tests and removes what they shared.
type cleaned struct{ *testing.M }

func (c cleaned) Run() int {
	code := c.M.Run()
	if err := env.Clean(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// What a person meets on the command line, as scripts. Besides the commands of
// testscript they have:
//
//	fails CODE ARG...   oda with these arguments exits with CODE, says nothing on
//	                    stdout, and says one line on stderr, which begins "oda: "
//	listens VAR         a port is in use for the rest of the tests; VAR names it
//	runs FILE           another oda has the archive in FILE open, as process PID
//	serves VAR          an archive is served for the rest of the script; VAR is
//	                    its host and port
//	answers VAR STATUS BODY  something at VAR answers every request so, and breaks off
//	many N FILE         the file has N records, one per line
//	appends FILE LINE   the file has a line more
//	made FILE           an oda has made the archive in FILE and stopped
//	sql FILE STATEMENT  changes a SQLite file behind oda's back
func TestScripts(t *testing.T) {
	env.Program(t) // building it is no part of the scripts' time
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			for _, variable := range os.Environ() {
				if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "ODA_") || name == "SKUID_URL" {
					return fmt.Errorf("%s is set; the scripts need an environment without it", name)
				}
			}
			// With the race detector a process sleeps for a second at its end,
			// unless it is told not to.
			env.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
			env.Setenv("ODA_LISTEN", "127.0.0.1:0")
			env.Setenv("ODA_SKUID_LISTEN", "127.0.0.1:0")
			return nil
		},
		// A server that starts though it should not must not run for long. On an
		// idle machine the scripts take seconds.
		Deadline: time.Now().Add(4 * time.Minute),
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"answers": answers,
			"appends": appends,
			"fails":   fails,
			"many":    many,
			"listens": func(ts *testscript.TestScript, _ bool, args []string) {
				listener, err := net.Listen("tcp", "127.0.0.1:0")
				ts.Check(err)
				ts.Defer(func() { _ = listener.Close() })
				ts.Setenv(args[0], listener.Addr().String())
			},
			"runs": func(ts *testscript.TestScript, _ bool, args []string) {
				p := env.Oda(t, "serve", "--db=sqlite:"+ts.MkAbs(args[0]))
				ts.Defer(p.Kill)
				ts.Setenv("PID", fmt.Sprint(p.PID()))
			},
			"serves": func(ts *testscript.TestScript, _ bool, args []string) {
				p := env.Oda(t, "serve")
				ts.Defer(p.Kill)
				ts.Setenv(args[0], p.Host())
			},
			"made": func(ts *testscript.TestScript, _ bool, args []string) {
				env.Oda(t, "serve", "--db=sqlite:"+ts.MkAbs(args[0])).Stop()
			},
			"sql": func(ts *testscript.TestScript, _ bool, args []string) {
				conn, err := sqlite.OpenConn(ts.MkAbs(args[0]))
				ts.Check(err)
				ts.Check(sqlitex.ExecuteScript(conn, args[1], nil))
				ts.Check(conn.Close())
			},
		},
		Condition: func(condition string) (bool, error) {
			if condition == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", condition)
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

func fails(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec("oda", args[1:]...)
	if err == nil {
		ts.Fatalf("it succeeded")
	}
	if got, want := err.Error(), "exit status "+args[0]; got != want {
		ts.Fatalf("it ended with %q, want %q", got, want)
	}
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("it says on stdout: %s", out)
	}
	line, rest, complete := strings.Cut(ts.ReadFile("stderr"), "\n")
	if !complete || rest != "" || !strings.HasPrefix(line, "oda: ") {
		ts.Fatalf("stderr is not one line that begins with oda:")
	}
}
