package app_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"oda"
	odaclient "oda/client"
	"oda/internal/auth"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

func TestThePageAboutFollowingWorks(t *testing.T) {
	text, _, _ := strings.Cut(page(t, "docs/following.md"), "## Keep a mirror")
	follow(t, text)
}

// The programs of the page keep a mirror up to date while the archive is killed,
// and while they are.
func TestTheMirrorsOfThePageSurviveRestarts(t *testing.T) {
	dir := t.TempDir()
	mirrors := mirrorsOfThePage(t, dir)
	database := "sqlite:" + filepath.Join(dir, "archive.db")
	archive := env.Oda(t, "serve", "--db", database)
	address := strings.TrimPrefix(strings.TrimSuffix(archive.URL, "/api/v1"), "http://")
	c := must.Get(odaclient.New(archive.URL))(t)
	defer c.CloseIdleConnections()
	for _, m := range mirrors {
		m.url = archive.URL
		m.start(t)
	}
	block := must.Get(c.CreateBlock(t.Context(), []byte(`{"telescope":"ska_mid"}`), ""))(t)
	for round := range 3 {
		for i := range 4 {
			must.Get(c.Create(t.Context(), oda.SBDefinition, fmt.Appendf(nil, `{"round":%d,"number":%d}`, round, i), ""))(t)
			must.Get(c.Record(t.Context(), block.ID, []byte(`{"request":"observe.scan"}`), ""))(t)
			switch {
			case round == 1 && i == 1:
				archive.Kill()
				archive = env.Oda(t, "serve", "--db", database, "--listen", address)
			case round == 2 && i == 1:
				for _, m := range mirrors {
					m.stop()
				}
			case round == 2 && i == 2:
				for _, m := range mirrors {
					m.start(t)
				}
			}
		}
		for _, m := range mirrors {
			m.await(t, c)
		}
	}
	for _, m := range mirrors {
		m.stop()
	}
}

// mirrorsOfThePage writes and builds the programs of the page.
func mirrorsOfThePage(t *testing.T, dir string) []*mirror {
	t.Helper()
	text := page(t, "docs/following.md")
	for _, program := range []struct{ language, file string }{{"bash", "mirror.sh"}, {"python", "mirror.py"}, {"go", "main.go"}} {
		write(t, filepath.Join(dir, program.file), programOf(t, text, program.language))
	}
	source := must.Get(filepath.Abs("../.."))(t)
	write(t, filepath.Join(dir, "go.mod"), "module mirror\n\ngo 1.26\n\nrequire oda v0.0.0\n\nreplace oda => "+source+"\n")
	build := exec.Command("go", "build", "-mod=mod", "-o", "mirror", ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program in Go: %v\n%s", err, out)
	}
	return []*mirror{
		{name: "curl", dir: filepath.Join(dir, "curl"), args: []string{"sh", filepath.Join(dir, "mirror.sh")}},
		{name: "Python", dir: filepath.Join(dir, "Python"), args: []string{"python3", filepath.Join(dir, "mirror.py")}},
		{name: "Go", dir: filepath.Join(dir, "Go"), args: []string{filepath.Join(dir, "mirror")}},
	}
}

// The programs wait where the archive limits their requests, and stop where it does
// not know them.
func TestTheMirrorsOfThePageKeepToLimits(t *testing.T) {
	const entities = 20 // twice as many as a caller may read at once
	dir := t.TempDir()
	mirrors := mirrorsOfThePage(t, dir)
	tokens := filepath.Join(dir, "tokens")
	token := func(name string, role auth.Role) string {
		secret := must.Get(auth.CreateToken(tokens, auth.Token{Name: name, Role: role}))(t)
		return secret
	}
	editor := token("editor", auth.Editor)
	for _, m := range mirrors {
		m.token = token(m.name, auth.Reader)
	}
	archive := env.Oda(t, "serve", "--tokens", tokens, "--caller-rate", "1")
	c := must.Get(odaclient.New(archive.URL, odaclient.WithToken(editor)))(t)
	defer c.CloseIdleConnections()
	var projects []string
	for i := range entities {
		projects = append(projects, fmt.Sprintf(`{"prj_id":"prj-%d"}`, i))
	}
	must.Get(c.StoreSeveral(t.Context(), []byte(`{"prjs":[`+strings.Join(projects, ",")+`]}`)))(t)
	for _, m := range mirrors {
		m.url = archive.URL
		m.start(t)
	}
	for _, m := range mirrors {
		want, have := strconv.Itoa(entities), ""
		for deadline := time.Now().Add(90 * time.Second); have != want; time.Sleep(50 * time.Millisecond) {
			text, _ := os.ReadFile(filepath.Join(m.dir, "position")) // it may not be there yet
			if have = strings.TrimSpace(string(text)); time.Now().After(deadline) {
				t.Fatalf("the mirror in %s has come to position %q, not %s; it says %q", m.name, have, want, m.said.String())
			}
		}
		if kept, _ := filepath.Glob(filepath.Join(m.dir, "prjs", "*.json")); len(kept) != entities {
			t.Errorf("the mirror in %s has %d entities, want %d", m.name, len(kept), entities)
		}
		m.stop()
		m.token = "oda_of_nobody"
		m.start(t)
		late := time.AfterFunc(time.Minute, func() { _ = syscall.Kill(-m.process.Process.Pid, syscall.SIGKILL) })
		if err := m.process.Wait(); !late.Stop() || err == nil || !strings.Contains(m.said.String(), "unauthenticated") {
			t.Errorf("with a wrong token the mirror in %s ends with %v and says %q", m.name, err, m.said.String())
		}
	}
}

// programOf returns the program of a page in a language.
func programOf(t *testing.T, page, language string) string {
	t.Helper()
	code := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindStringSubmatch(page)
	if code == nil {
		t.Fatalf("the page has no program in %s", language)
	}
	return code[1]
}

// If the line is cut in the middle of an answer, what has arrived holds no position.
func TestAMirrorAsksAgainForAnAnswerThatWasCutOff(t *testing.T) {
	text, dir := page(t, "docs/following.md"), t.TempDir()
	for language, m := range map[string]*mirror{"bash": {args: []string{"sh"}}, "python": {args: []string{"python3"}}} {
		asked := make(chan string, 3)
		first := true
		archive := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- r.URL.Query().Get("after")
			if first {
				first = false
				w.Header().Set("Content-Length", "1000") // so the connection is closed after less
				_, _ = w.Write([]byte(`{"changes":[{"position":1,`))
				return
			}
			_, _ = w.Write([]byte(`{"changes":[],"next":7}`))
		}))
		program := filepath.Join(dir, language)
		write(t, program, programOf(t, text, language))
		m.name, m.url, m.dir, m.args = language, archive.URL, filepath.Join(dir, "mirror-"+language), append(m.args, program)
		m.start(t)
		for _, want := range []string{"0", "0", "7"} {
			select {
			case got := <-asked:
				if got != want {
					t.Errorf("the mirror in %s asks for changes after %q, want %q", language, got, want)
				}
			case <-time.After(time.Minute):
				t.Fatalf("the mirror in %s does not ask again; it says %q", language, m.said.String())
			}
		}
		m.stop()
		archive.CloseClientConnections()
	}
}

// mirror is a program that keeps a copy of an archive.
type mirror struct {
	name, url, dir string
	token          string
	args           []string
	process        *exec.Cmd
	said           bytes.Buffer
}

func (m *mirror) start(t *testing.T) {
	t.Helper()
	m.process = exec.Command(m.args[0], append(m.args[1:], m.url, m.dir)...)
	m.process.Env, m.process.Stderr = append(os.Environ(), "ODA_TOKEN="+m.token), &m.said
	m.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // with what it runs
	if err := m.process.Start(); err != nil {
		t.Fatalf("start the mirror in %s: %v", m.name, err)
	}
	t.Cleanup(m.stop)
}

// stop kills the program, wherever it is.
func (m *mirror) stop() {
	_ = syscall.Kill(-m.process.Process.Pid, syscall.SIGKILL)
	_ = m.process.Wait() // it was killed
}

// await waits until the mirror has everything that the archive has.
func (m *mirror) await(t *testing.T, c *odaclient.Client) {
	t.Helper()
	lacks := "everything"
	for deadline := time.Now().Add(90 * time.Second); lacks != ""; time.Sleep(5 * time.Millisecond) {
		if lacks = m.lacks(t, c); time.Now().After(deadline) {
			t.Fatalf("the mirror in %s lacks %s; it says %q", m.name, lacks, m.said.String())
		}
	}
}

// lacks names a document that the mirror does not have as it is.
func (m *mirror) lacks(t *testing.T, c *odaclient.Client) string {
	t.Helper()
	for _, kind := range oda.Kinds {
		for id, err := range c.List(t.Context(), oda.Query{Kind: kind, Order: oda.ByCreation, After: new(oda.Instant)}) {
			must.Do(t, err)
			document := must.Get(c.Get(t.Context(), kind, id))(t)
			kept, err := os.ReadFile(filepath.Join(m.dir, kind.Collection(), id+".json"))
			if err != nil || !bytes.Equal(kept, document.Body) {
				return kind.Collection() + "/" + id
			}
		}
	}
	return ""
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
}
