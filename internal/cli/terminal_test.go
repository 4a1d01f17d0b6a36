package cli

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
)

// screen runs oda on a terminal of 80 columns, as a person does, and writes what the
// person sees to the file screen: with ␛ for escape, and YYYY-MM-DD HH:MM:SS for the
// times. Arguments before "oda" are what the person types, each when oda asks for
// something. With !, oda must fail; the exit code is the last line then.
func screen(ts *testscript.TestScript, neg bool, args []string) {
	at := 0
	for args[at] != "oda" {
		at++
	}
	answers, args := args[:at], args[at+1:]
	cmd := exec.Command(programOf(ts), args...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"EDITOR", "HOME", "JUPYTERHUB_USER", "NO_COLOR", "ODA_SPOOL", "ODA_TOKEN", "ODA_URL", "PATH", "TERM", "TMPDIR", "VISUAL", "WORK"} {
		if value := ts.Getenv(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	ts.Check(err)
	defer terminal.Close()
	var shown []byte
	for part := make([]byte, 4096); ; {
		n, err := terminal.Read(part)
		shown = append(shown, part[:n]...)
		if errors.Is(err, syscall.EIO) || errors.Is(err, io.EOF) { // the program has ended
			break
		}
		ts.Check(err)
		if text := string(shown); len(answers) > 0 && (strings.HasSuffix(text, "] ") || strings.HasSuffix(text, "? ")) {
			_, err := terminal.Write([]byte(answers[0] + "\n"))
			ts.Check(err)
			answers = answers[1:]
		}
	}
	err = cmd.Wait()
	text := strings.ReplaceAll(string(shown), "\r\n", "\n")
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && neg {
		text += exit.String() + "\n"
	} else if err != nil || neg {
		ts.Fatalf("oda %s: %v\n%s", strings.Join(args, " "), err, text)
	}
	ts.Check(os.WriteFile(ts.MkAbs("screen"), []byte(anywhere(ts, text)), 0o600))
}

// piped runs oda with its output in a pipe, and writes it to the file piped, as
// screen does.
func piped(ts *testscript.TestScript, neg bool, args []string) {
	err := ts.Exec("oda", args...)
	if neg != (err != nil) {
		ts.Fatalf("oda %s: %v", strings.Join(args, " "), err)
	}
	ts.Check(os.WriteFile(ts.MkAbs("piped"), []byte(anywhere(ts, ts.ReadFile("stdout"))), 0o600))
}

// programOf returns the oda of the scripts.
func programOf(ts *testscript.TestScript) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if path := filepath.Join(dir, "oda"); exists(path) {
			return path
		}
	}
	ts.Fatalf("there is no oda")
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

var (
	clocks = regexp.MustCompile(`\d{4}-\d\d-\d\d([ T])\d\d:\d\d:\d\d`)
	parts  = regexp.MustCompile(`\.\d{6}Z`)
	drafts = regexp.MustCompile(`(oda-[a-z]+-\d+)-\d+\.json`)
)

// anywhere returns a text in which nothing depends on the time and the place.
func anywhere(ts *testscript.TestScript, text string) string {
	text = strings.ReplaceAll(text, "\x1b", "␛")
	text = clocks.ReplaceAllString(text, "YYYY-MM-DD${1}HH:MM:SS")
	text = parts.ReplaceAllString(text, ".ffffffZ")
	text = drafts.ReplaceAllString(text, "$1-N.json")
	text = strings.ReplaceAll(text, ts.Getenv("WORK"), "$WORK")
	if url := ts.Getenv("ODA_URL"); url != "" {
		text = strings.ReplaceAll(text, url, "$ODA_URL")
	}
	return text
}
