package cli

import (
	"bufio"
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oda/internal/test/env"
	"oda/internal/test/must"
)

// What a running program pipes in is stored while it runs. Whoever interrupts the
// command learns what is stored, and how to send the rest.
func TestRecordsOfARunningProgramAreStoredAsTheyCome(t *testing.T) {
	p := env.Oda(t, "serve")
	if status, answer := env.Send(t, "PUT", p.URL+"/ebs/eb-1", `{}`); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	calls := followed(t, p.Host(), false, "ebs", "records", "eb-1", "-f")
	command := exec.CommandContext(t.Context(), env.Program(t), "ebs", "record", "eb-1", "-", "--url", p.Host())
	pipe := must.Get(command.StdinPipe())(t)
	var said bytes.Buffer
	command.Stderr = &said
	must.Do(t, command.Start())
	out := bufio.NewWriter(pipe)
	for _, request := range []string{"one", "two"} {
		out.WriteString(`{"request":"` + request + `"}` + "\n")
		must.Do(t, out.Flush())
		calls.want(`"request":"` + request + `"`)
	}
	must.Do(t, command.Process.Signal(os.Interrupt))
	ended := time.AfterFunc(30*time.Second, func() { _ = command.Process.Kill() })
	err := command.Wait()
	ended.Stop()
	if command.ProcessState.ExitCode() != exitFailed || !strings.Contains(said.String(), "oda: stdin: interrupted [records stored: 2; to send the file again and store each record once, add --key=") {
		t.Errorf("the end: %v, %q", err, said.String())
	}
	calls.interrupt()
}

// What an archive answers commands no terminal, and a token is sent only where the
// settings of the caller say.
func TestASpoolIsDrainedCarefully(t *testing.T) {
	var heard []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard = append(heard, r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"type":"urn:oda:problem:not-authenticated","title":"x","status":401,"detail":"No.\u001b]0;owned\u0007\u202e"}`))
	}))
	defer server.Close()
	t.Setenv("ODA_TOKEN", "secret")
	t.Setenv("ODA_URL", "http://127.0.0.1:1")
	spool := t.TempDir()
	session := filepath.Join(spool, "eb-1.0123456789abcdef")
	for name, text := range map[string]string{
		"block.json":   `{"spool":2,"eb_id":"eb-1","url":"` + server.URL + `/api/v1","create":null}`,
		"00000001.log": "a663ea7e 0123456789abcdef-1 record {\"request\":\"scan\"}\n",
	} {
		must.Do(t, errors.Join(os.MkdirAll(session, 0o700), os.WriteFile(filepath.Join(session, name), []byte(text), 0o600)))
	}
	var out, said bytes.Buffer
	if code := Run([]string{"record", "drain", spool}, &out, &said, "1.2.3"); code != exitFailed {
		t.Errorf("the exit code is %d", code)
	}
	if len(heard) != 1 || heard[0] != "" {
		t.Errorf("a server that only the spool names was sent %q", heard)
	}
	all := out.String() + said.String()
	if strings.ContainsFunc(strings.ReplaceAll(all, "\n", ""), hides) || !strings.Contains(all, `No.\u001b]0;owned\u0007\u202e`) {
		t.Errorf("it prints %q", all)
	}
	if !strings.Contains(all, "no token was sent to "+server.URL) {
		t.Errorf("it does not say why: %s", all)
	}
}
