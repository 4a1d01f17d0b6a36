package app_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"oda/internal/test/env"
)

// The tour in the README works as written: its commands run in a shell, from
// top to bottom, and the answers look like those shown.
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

// So do the commands of pages that have a whole example.
func TestThePageAboutNightsWorks(t *testing.T)    { follow(t, page(t, "docs/night.md")) }
func TestThePageAboutSearchingWorks(t *testing.T) { follow(t, page(t, "docs/searching.md")) }

// page reads a page of the repository.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// follow runs the commands of a text against a new archive.
func follow(t *testing.T, text string) {
	t.Helper()
	p := env.Oda(t, "serve")
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
	script = strings.ReplaceAll(script, "/tmp/", t.TempDir()+"/")
	command := exec.Command("sh", "-c", script)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("the commands fail: %v\n%s", err, output)
	}
	rest := string(output)
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
		{`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\\.[0-9]{6}Z`, `[-0-9T:.]+Z`},
	} {
		p = regexp.MustCompile(r[0]).ReplaceAllLiteralString(p, r[1])
	}
	return p
}
