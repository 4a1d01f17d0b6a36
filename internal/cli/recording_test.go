package cli

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"oda/internal/test/env"
)

// What a running program pipes in is stored while it runs. Whoever interrupts the
// command learns what is stored, and how to send the rest.
func TestRecordsOfARunningProgramAreStoredAsTheyCome(t *testing.T) {
	p := env.Oda(t, "serve")
	if status, answer := send(t, "PUT", p.URL+"/ebs/eb-1", `{}`); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	calls := followed(t, p.Host(), false, "ebs", "records", "eb-1", "-f")
	command := exec.CommandContext(t.Context(), env.Program(t), "ebs", "record", "eb-1", "-", "--url", p.Host())
	pipe, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	command.Stderr = &said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewWriter(pipe)
	for _, request := range []string{"one", "two"} {
		out.WriteString(`{"request":"` + request + `"}` + "\n")
		if err := out.Flush(); err != nil {
			t.Fatal(err)
		}
		calls.want(`"request":"` + request + `"`)
	}
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	ended := time.AfterFunc(30*time.Second, func() { _ = command.Process.Kill() })
	err = command.Wait()
	ended.Stop()
	if command.ProcessState.ExitCode() != exitFailed || !strings.Contains(said.String(), "oda: stdin: interrupted [records stored: 2; to send the file again and store each record once, add --key=") {
		t.Errorf("the end: %v, %q", err, said.String())
	}
	calls.interrupt()
}
