package skuid

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oda/internal/test/must"
)

// childVariable turns the test binary into an identifier service.
const childVariable = "ODA_TEST_SKUID_CHILD"

// child configures a child process.
type child struct {
	Listen    string
	Generator uint16
	StateFile string
	Twice     bool
	Frozen    time.Time // if set, the clock always shows this instant
}

func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(childVariable); ok {
		if err := runChild(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func runChild(text string) error {
	var c child
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	config := Config{Listen: c.Listen, Generator: c.Generator, StateFile: c.StateFile, Twice: c.Twice}
	if !c.Frozen.IsZero() {
		config.clock = func() time.Time { return c.Frozen }
	}
	running, err := Listen(ctx, config)
	if err != nil {
		return err
	}
	fmt.Println(running.Addr())
	return running.Wait()
}

// process is an identifier service in its own process.
type process struct {
	addr string
	cmd  *exec.Cmd
}

func startProcess(t *testing.T, c child) *process {
	t.Helper()
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	cmd, stdout := childCommand(t, c)
	must.Do(t, cmd.Start())
	line, err := stdout.ReadString('\n')
	if err != nil {
		cmd.Wait()
		t.Fatalf("the service did not start: %v: %s", err, cmd.Stderr)
	}
	p := &process{addr: strings.TrimSpace(line), cmd: cmd}
	t.Cleanup(p.kill)
	return p
}

func childCommand(t *testing.T, c child) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	text := must.Get(json.Marshal(c))(t)
	self := must.Get(os.Executable())(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	cmd.Stderr = new(strings.Builder)
	stdout := must.Get(cmd.StdoutPipe())(t)
	return cmd, bufio.NewReader(stdout)
}

// kill ends the process like kill -9.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// parse parses an identifier.
func parse(t *testing.T, id string) (prefix string, at time.Time, generator, suffix uint64) {
	t.Helper()
	prefix, digits, ok := strings.Cut(id, "-")
	if !ok {
		t.Fatalf("identifier %q has no hyphen", id)
	}
	n := decode(t, digits)
	return prefix, time.UnixMilli(epoch + int64(n>>21)).UTC(), n >> 11 & 1023, n & 2047
}

func decode(t *testing.T, digits string) uint64 {
	t.Helper()
	var n uint64
	for _, c := range digits {
		i := strings.IndexRune("0123456789abcdefghjkmnpqrstvwxyz", c)
		if i < 0 || n>>59 != 0 || digits == "" {
			t.Fatalf("%q is not a number in Crockford base 32", digits)
		}
		n = n<<5 | uint64(i)
	}
	return n
}
