package app_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"

	"oda/internal/test/env"
	"oda/internal/test/must"
)

// The tour in the README works as written: its commands run in a shell, from
// top to bottom, and the terminal shows what the README does.
func TestTheTourInTheREADMEWorks(t *testing.T) { follow(t, tour(t)) }

func tour(t *testing.T) string {
	t.Helper()
	_, tour, ok := strings.Cut(page(t, "README.md"), "## A tour in five minutes")
	if !ok {
		t.Fatal("the README has no tour")
	}
	tour, _, _ = strings.Cut(tour, "\n## ")
	return tour
}

// The page about the past goes on where the tour ends.
func TestThePageAboutHistoryWorks(t *testing.T) { follow(t, tour(t)+page(t, "docs/history.md")) }

// The Python in the README records something when it is pasted, and reads it again.
func TestThePythonInTheREADMERecordsSomething(t *testing.T) {
	p := env.Oda(t, "serve")
	script := ""
	for _, block := range regexp.MustCompile("(?s)```python\n(.*?)```").FindAllStringSubmatch(page(t, "README.md"), -1) {
		script += strings.ReplaceAll(block[1], "http://127.0.0.1:8080", p.URL)
	}
	sources := must.Get(filepath.Abs("../../python/src"))(t)
	command := exec.Command("python3", "-c", script)
	command.Env = append(os.Environ(), "PYTHONPATH="+sources, "PYTHONDONTWRITEBYTECODE=1", "ODA_URL="+p.URL, "ODA_SPOOL="+t.TempDir())
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if want := "1 __main__.scan {'args': ['M101'], 'kwargs': {'seconds': 30}}"; !strings.Contains(string(output), want) {
		t.Errorf("it prints %s, want %s", output, want)
	}
}

// So do the commands of pages that have a whole example.
func TestThePageAboutNightsWorks(t *testing.T)    { follow(t, page(t, "docs/night.md")) }
func TestThePageAboutCallsWorks(t *testing.T)     { follow(t, page(t, "docs/calls.md")) }
func TestThePageAboutSearchingWorks(t *testing.T) { follow(t, page(t, "docs/searching.md")) }

// page reads a page of the repository.
func page(t *testing.T, name string) string {
	t.Helper()
	text := must.Get(os.ReadFile("../../" + name))(t)
	return string(text)
}

// follow runs the commands of a text against a new archive.
func follow(t *testing.T, text string) {
	t.Helper()
	p := env.Oda(t, "serve")
	text = strings.ReplaceAll(text, "/tmp/", t.TempDir()+"/")
	script := "set -eu\n"
	var shown []string // answers shown on the page, as patterns, in order
	for _, block := range regexp.MustCompile("(?s)```(sh|json|text)\n(.*?)```").FindAllStringSubmatch(text, -1) {
		if block[1] == "sh" {
			script += block[2]
			continue
		}
		for line := range strings.Lines(block[2]) {
			shown = append(shown, pattern(strings.TrimSpace(line)))
		}
	}
	script = strings.ReplaceAll(script, "http://127.0.0.1:8080/api/v1", p.URL)
	script = strings.ReplaceAll(script, "bin/oda", env.Program(t))
	command := exec.Command("sh", "-c", script)
	command.Env = append(os.Environ(), "ODA_URL="+p.URL, "NO_COLOR=1")
	terminal := must.Get(pty.StartWithSize(command, &pty.Winsize{Rows: 50, Cols: 400}))(t)
	defer terminal.Close()
	shownThere, _ := io.ReadAll(terminal) // it ends with an error
	output := strings.ReplaceAll(string(shownThere), "\r\n", "\n")
	if err := command.Wait(); err != nil {
		t.Fatalf("the commands fail: %v\n%s", err, output)
	}
	rest := output
	for _, want := range shown {
		at := regexp.MustCompile("(?m)^ *" + want + "$").FindStringIndex(rest)
		if at == nil {
			t.Fatalf("the text shows an answer that did not arrive:\n%s\ngot:\n%s", want, rest)
		}
		rest = rest[at[1]:]
	}
}

// pattern turns a shown answer into a pattern for a real one: an ellipsis
// matches anything, and identifiers and times may differ.
func pattern(line string) string {
	p := regexp.QuoteMeta(line)
	for _, r := range [][2]string{
		{`…`, `.*`},
		{`eb-1j8w4r0q3t6m`, `eb-[0-9a-z]+`},
		{`-tour-[0-9]+`, `-tour-[0-9]+`},
		{`[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}`, `[-0-9]+ [0-9:]+`},
		{`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\\.[0-9]{6}Z`, `[-0-9T:.]+Z`},
	} {
		p = regexp.MustCompile(r[0]).ReplaceAllLiteralString(p, r[1])
	}
	return p
}
