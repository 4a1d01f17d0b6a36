package app_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"oda"
	"oda/internal/test/env"
	"oda/internal/test/fault"
	"oda/internal/test/must"
)

// ran is what a command did.
type ran struct {
	args     []string
	code     int
	out, err string
}

// command returns a command of the program, without settings from the environment.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(env.Program(t), args...)
	cmd.Dir = t.TempDir()
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "ODA_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "HOME="+cmd.Dir, "TMPDIR="+cmd.Dir) // where there is no spool
	return cmd
}

// run runs a command of the program to its end.
func run(t *testing.T, args ...string) ran {
	t.Helper()
	cmd := command(t, args...)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return ran{args, cmd.ProcessState.ExitCode(), out.String(), stderr.String()}
}

// succeeds demands that a command did what it was asked for, and returns what it printed.
func succeeds(t *testing.T, o ran) string {
	t.Helper()
	if o.code != 0 {
		t.Fatalf("oda %s exits with %d: %s%s", strings.Join(o.args, " "), o.code, o.out, o.err)
	}
	return o.out
}

// fails demands that a command exits with a code, and says one sentence with these words.
func fails(t *testing.T, o ran, code int, words ...string) {
	t.Helper()
	if o.code != code {
		t.Errorf("oda %s exits with %d, want %d: %s%s", strings.Join(o.args, " "), o.code, code, o.out, o.err)
	}
	if strings.Count(o.err, "\n") != 1 || !strings.HasPrefix(o.err, "oda: ") {
		t.Errorf("oda %s says %q", strings.Join(o.args, " "), o.err)
	}
	for _, word := range words {
		if !strings.Contains(o.err, word) {
			t.Errorf("oda %s does not say %q: %s", strings.Join(o.args, " "), word, o.err)
		}
	}
}

// missing demands that there is no such file.
func missing(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("%s is there (%v)", path, err)
	}
}

// filled starts an archive with eight documents of a megabyte in it, which cannot be
// compressed much, and returns it with its file.
func filled(t *testing.T) (p *env.Process, path string) {
	t.Helper()
	return filledWith(t, 8)
}

func filledWith(t *testing.T, documents int) (p *env.Process, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "archive.db")
	p = env.Oda(t, "serve", "--db", "sqlite:"+path)
	random := rand.NewChaCha8([32]byte{})
	for i := range documents {
		text := make([]byte, 750_000)
		random.Read(text)
		answered(t, "PUT", fmt.Sprintf("%s/sbds/sbd-%d", p.URL, i), fmt.Sprintf(`{"note":%q}`, base64.StdEncoding.EncodeToString(text)))
	}
	return p, path
}

// The file of a backup is for its owner, appears when it is complete, and is not
// replaced by accident.
func TestABackupReplacesNothing(t *testing.T) {
	t.Parallel()
	p, path := filled(t)
	file := filepath.Join(t.TempDir(), "oda.backup")
	if out := succeeds(t, run(t, "backup", "-o", file, "--url", p.URL)); !strings.Contains(out, "8 entities up to position 8") {
		t.Errorf("it prints %s", out)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != fs.FileMode(0o600) {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	first := must.Get(os.ReadFile(file))(t)
	fails(t, run(t, "backup", "-o", file, "--url", p.URL), 1, "exists already", "--force")
	if second, err := os.ReadFile(file); err != nil || !bytes.Equal(first, second) {
		t.Errorf("the file was changed (%v)", err)
	}
	succeeds(t, run(t, "backup", "-o", file, "--url", p.URL, "--force"))
	fails(t, run(t, "backup", "-o", file+"2", "--db", "sqlite:"+path), 1, "leave --db out")
	missing(t, file+"2")
	fails(t, run(t, "backup", "-o", file+"2", "--url", "http://127.0.0.1:1"), 1, "no answer")
	missing(t, file+"2.part")
	p.MustStop()
	succeeds(t, run(t, "backup", "-o", file+"3", "--db", "sqlite:"+path))
	target := "sqlite:" + filepath.Join(t.TempDir(), "archive.db")
	if out := succeeds(t, run(t, "restore", file+"3", "--db", target)); !strings.Contains(out, "oda verify --db "+target) {
		t.Errorf("it prints %s", out)
	}
	wantWhole(t, target)
	fails(t, run(t, "restore", file, "--db", target), 1, "already there")
	fails(t, run(t, "restore", path, "--db", target+"2"), 1, "not a backup", "SQLite database")
}

func TestPostgreSQLIsBackedUpWithItsOwnTools(t *testing.T) {
	t.Parallel()
	database := env.Postgres(t)
	p := env.Oda(t, "serve", "--db", database)
	file := filepath.Join(t.TempDir(), "oda.backup")
	fails(t, run(t, "backup", "-o", file, "--url", p.URL), 1, "pg_dump", "docs/backup.md has the commands. (no-such-path)\n") // the address is right
	fails(t, run(t, "backup", "-o", file, "--db", database), 1, "pg_dump", "docs/backup.md")
	missing(t, file)
	must.Do(t, os.WriteFile(file, []byte("oda backup 2\n"), 0o600))
	fails(t, run(t, "restore", file, "--db", database), 1, "pg_dump", "docs/backup.md")
}

// copying are the commands that copy a running archive into a file, and how an archive
// is made of the file again.
var copying = map[string]func(t *testing.T, file string) (database string){
	"backup": func(t *testing.T, file string) string {
		target := "sqlite:" + filepath.Join(t.TempDir(), "archive.db")
		succeeds(t, run(t, "restore", file, "--db", target))
		return target
	},
	"export": func(t *testing.T, file string) string {
		target := "sqlite:" + filepath.Join(t.TempDir(), "archive.db")
		succeeds(t, run(t, "import", file, "--preserve", "--db", target))
		wantSame(t, file, exported(t, target, oda.Scope{}))
		return target
	},
}

// A connection that is cut anywhere leaves no file, and the next try is whole. So does one
// that ends in order, as if that was all.
func TestWhatIsCutOffLeavesNoFile(t *testing.T) {
	t.Parallel()
	for command, again := range copying {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			p, _ := filled(t)
			proxy := must.Get(fault.NewProxy(p.Host()))(t)
			defer proxy.Close()
			file := filepath.Join(t.TempDir(), "oda."+command)
			for _, after := range []int{1000, 3 << 20, 5 << 20} {
				proxy.CutAfter(fault.ToClient, after)
				o := run(t, command, "-o", file, "--url", "http://"+proxy.Addr())
				if o.code == 0 && after > 1000 { // a beginning that is cut off is asked for again
					t.Errorf("%s that was cut off after %d bytes is taken for whole", command, after)
				} else if o.code != 0 {
					fails(t, o, 1, command)
					missing(t, file)
				} else if err := os.Remove(file); err != nil {
					t.Error(err)
				}
				missing(t, file+".part")
			}
			for spoiled, spoil := range map[string]func([]byte) []byte{
				"its end is missing":       func(content []byte) []byte { return content[:len(content)/2] },
				"its beginning is missing": func(content []byte) []byte { return content[200:] },
				"only its end is there":    func(content []byte) []byte { return content[len(content)-200:] },
				"a part is missing":        func(content []byte) []byte { return slices.Delete(content, len(content)/2, len(content)/2+2000) },
				"it comes twice":           func(content []byte) []byte { return append(content, content...) },
				"a bit has flipped": func(content []byte) []byte {
					content[len(content)/2] ^= 1
					return content
				},
			} {
				between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					response, err := http.Get("http://" + p.Host() + r.URL.RequestURI())
					if err != nil {
						panic(err)
					}
					defer response.Body.Close()
					content, err := io.ReadAll(response.Body)
					if err != nil {
						panic(err)
					}
					_, _ = w.Write(spoil(content)) // the client has noticed before the end
				}))
				defer between.Close()
				o := run(t, command, "-o", file, "--url", between.URL)
				fails(t, o, 1, command)
				if !strings.Contains(o.err, "is not a ") && !strings.Contains(o.err, "did not send a complete ") {
					t.Errorf("it says %s", o.err)
				}
				missing(t, file)
				missing(t, file+".part")
				if t.Failed() {
					t.Fatal(spoiled)
				}
			}

			answered(t, "PUT", p.URL+"/sbds/after", `{}`)
			if out := succeeds(t, run(t, command, "-o", file, "--url", "http://"+proxy.Addr())); !strings.Contains(out, "9 ") {
				t.Errorf("it prints %s", out)
			}
			wantWhole(t, again(t, file))
		})
	}
}

// awaitSize waits until a file has at least this many bytes.
func awaitSize(t *testing.T, path string, bytes int64) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if info, err := os.Stat(path); err == nil && info.Size() >= bytes {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s never has %d bytes", path, bytes)
		}
	}
}

// Killed in the middle, a backup or an export leaves no file, and the next one is whole.
// So does a server that is killed.
func TestACopyThatIsKilledIsMadeAgain(t *testing.T) {
	t.Parallel()
	for command := range copying {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			isMadeAgain(t, command)
		})
	}
}

func isMadeAgain(t *testing.T, name string) {
	t.Helper()
	p, path := filledWith(t, 32) // more than a connection holds
	file := filepath.Join(t.TempDir(), "oda."+name)
	resume := make(chan struct{})
	// It passes on the first two megabytes, and the rest when it is told to.
	relay := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, p.URL+"/"+name, nil)
		if err != nil {
			panic(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer response.Body.Close()
		if _, err := io.CopyN(w, response.Body, 2<<20); err != nil {
			panic(http.ErrAbortHandler)
		}
		select {
		case <-resume:
		case <-r.Context().Done():
		}
		if _, err := io.Copy(w, response.Body); err != nil {
			panic(http.ErrAbortHandler)
		}
	}))
	defer relay.Close()
	begun := func() *exec.Cmd {
		cmd := command(t, name, "-o", file, "--url", relay.URL)
		must.Do(t, cmd.Start())
		awaitSize(t, file+".part", 1<<20)
		return cmd
	}

	cmd := begun()
	must.Do(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	missing(t, file)
	succeeds(t, run(t, name, "-o", file, "--url", p.URL))
	missing(t, file+".part")
	wantWhole(t, copying[name](t, file))
	must.Do(t, os.Remove(file))

	// An interrupt is an orderly end.
	cmd = begun()
	must.Do(t, cmd.Process.Signal(syscall.SIGINT))
	if err := cmd.Wait(); err == nil {
		t.Errorf("a %s that was interrupted exits with 0", name)
	}
	missing(t, file)
	missing(t, file+".part")

	cmd = begun()
	p.Kill()
	close(resume)
	if err := cmd.Wait(); err == nil {
		t.Errorf("a %s of a server that was killed is taken for whole", name)
	}
	missing(t, file)
	missing(t, file+".part")
	wantWhole(t, "sqlite:"+path)
}

// Killed in the middle, a restore leaves no archive, and the next one makes it. A damaged backup
// is refused with the place.
func TestARestoreThatIsKilledIsDoneAgain(t *testing.T) {
	t.Parallel()
	p, _ := filled(t)
	file := filepath.Join(t.TempDir(), "oda.backup")
	succeeds(t, run(t, "backup", "-o", file, "--url", p.URL))
	content := must.Get(os.ReadFile(file))(t)
	// It reads from a pipe that has only half of it.
	pipe := filepath.Join(t.TempDir(), "pipe")
	must.Do(t, syscall.Mkfifo(pipe, 0o600))
	target := filepath.Join(t.TempDir(), "new", "archive.db")
	cmd := command(t, "restore", pipe, "--db", "sqlite:"+target)
	must.Do(t, cmd.Start())
	half := must.Get(os.OpenFile(pipe, os.O_WRONLY, 0))(t)
	defer half.Close()
	must.Get(half.Write(content[:len(content)/2]))(t)
	awaitSize(t, target+".restoring", 1<<20)
	must.Do(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	missing(t, target)
	succeeds(t, run(t, "restore", file, "--db", "sqlite:"+target))
	wantWhole(t, "sqlite:"+target)
	missing(t, target+".restoring")

	changed, other := bytes.Clone(content), filepath.Join(t.TempDir(), "other", "archive.db")
	changed[5<<20] ^= 1
	for place, damaged := range map[string][]byte{"at byte 4": changed, fmt.Sprintf("at byte %d: it ends there", 6<<20): content[:6<<20]} {
		fails(t, run(t, "restore", written(t, "damaged", string(damaged)), "--db", "sqlite:"+other), 1, "the backup is damaged", place)
		missing(t, filepath.Dir(other))
	}
}

// A disk that is full is one clear sentence, and what was begun is removed.
func TestACopyToAFullDisk(t *testing.T) {
	t.Parallel()
	p, path := filled(t)
	small := env.SmallDisk(t, 4<<20)
	for command := range copying {
		fails(t, run(t, command, "-o", filepath.Join(small, "oda."+command), "--url", p.URL), 1, "no room for the "+command)
	}
	file := filepath.Join(t.TempDir(), "oda.backup")
	succeeds(t, run(t, "backup", "-o", file, "--url", p.URL))
	fails(t, run(t, "restore", file, "--db", "sqlite:"+filepath.Join(small, "archive.db")), 1, "no room for the archive")
	if left, err := os.ReadDir(small); err != nil || len(left) > 0 {
		t.Errorf("the disk has %v, %v", left, err)
	}
	answered(t, "PUT", p.URL+"/sbds/after", `{}`)
	p.MustStop()
	for command := range copying {
		fails(t, run(t, command, "-o", filepath.Join(small, "oda."+command), "--db", "sqlite:"+path), 1, "no room for the "+command)
	}
	if left, err := os.ReadDir(small); err != nil || len(left) > 0 {
		t.Errorf("the disk has %v, %v", left, err)
	}
}
