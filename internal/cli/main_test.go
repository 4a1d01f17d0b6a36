package cli

import (
	"context"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"oda/client"
	"oda/internal/test/env"
)

func TestMain(m *testing.M) {
	syscall.Umask(0o022) // spools are folders that the tests make
	testscript.Main(cleaned{m}, map[string]func(){
		"oda": func() { os.Exit(Run(os.Args[1:], os.Stdout, os.Stderr, "1.2.3")) },
	})
}

// cleaned runs the tests and removes the files they share.
type cleaned struct{ *testing.M }

func (c cleaned) Run() int {
	code := c.M.Run()
	if err := env.Clean(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// The scripts show what a person sees on the command line. Besides the commands
// of testscript they have:
//
//	fails CODE ARG...   run oda with these arguments; it must exit with CODE,
//	                    print nothing on stdout, and one line on stderr that
//	                    begins with "oda: "
//	listens VAR         occupy a port for the rest of the tests, and store it in VAR
//	runs FILE           open the archive in FILE in another oda, with process id PID
//	serves VAR FLAG...  serve an archive for the rest of the script, and store its
//	                    host and port in VAR
//	answers VAR STATUS BODY  answer every request at VAR with this, and break off
//	many N FILE         write N records to FILE, one per line
//	appends FILE LINE   append LINE to FILE
//	made FILE           create an archive in FILE
//	screen ANSWER... oda ARG...  run oda on a terminal; what is seen is in the file screen
//	piped ARG...        run oda in a pipe; what it prints is in the file piped
//	sql FILE STATEMENT  change a SQLite file without oda's knowledge
func TestScripts(t *testing.T) {
	env.Program(t) // build it now, outside the scripts' time limit
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			for _, variable := range os.Environ() {
				if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "ODA_") && name != "ODA_BIN" || name == "SKUID_URL" {
					return fmt.Errorf("%s is set; the scripts need an environment without it", name)
				}
			}
			// With the race detector a process sleeps for a second before it
			// exits, unless told not to.
			env.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
			env.Setenv("ODA_LISTEN", "127.0.0.1:0")
			env.Setenv("ODA_SKUID_LISTEN", "127.0.0.1:0")
			return nil
		},
		// A server that starts although it should not must not run for long. On
		// an idle machine the scripts take seconds.
		Deadline: time.Now().Add(8 * time.Minute),
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"answers": answers,
			"appends": appends,
			"begins":  begins,
			"fails":   fails,
			"many":    many,
			"piped":   piped,
			"screen":  screen,
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
				ts.Setenv("HOST", p.Host())
			},
			"serves": func(ts *testscript.TestScript, _ bool, args []string) {
				p := env.Oda(t, append([]string{"serve"}, args[1:]...)...)
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

// slowOpening is what a server logs if this machine is so busy that opening takes long.
var slowOpening = regexp.MustCompile(`(?m)^time=\S+ level=INFO msg="opening the archive takes long".*\n`)

// begins says that a call is running: host, block, key, device.
func begins(ts *testscript.TestScript, _ bool, args []string) {
	c, err := client.New(args[0], client.WithUser("mid"))
	ts.Check(err)
	ts.Check(c.Begin(context.Background(), args[1], args[2], client.NewRunning{
		Request: "scan", Arguments: []byte(`{"kwargs":{"device":"` + args[3] + `"}}`), SentAt: time.Date(2026, 3, 1, 21, 4, 11, 0, time.UTC),
	}))
}

// fails runs a command that must fail with an exit code and one line on stderr.
func fails(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec("oda", args[1:]...)
	if err == nil {
		ts.Fatalf("the command succeeded")
	}
	if got, want := err.Error(), "exit status "+args[0]; got != want {
		ts.Fatalf("the command ended with %q, want %q", got, want)
	}
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("the command printed on stdout: %s", out)
	}
	said := slowOpening.ReplaceAllString(ts.ReadFile("stderr"), "")
	line, rest, complete := strings.Cut(said, "\n")
	if !complete || rest != "" || !strings.HasPrefix(line, "oda: ") {
		ts.Fatalf("stderr is not one line that begins with oda:")
	}
}
