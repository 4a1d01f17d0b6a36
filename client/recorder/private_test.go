package recorder_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"oda/client"
	"oda/client/recorder"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// another is a user who has nothing to do with the tests.
const another = 65_432

// giveAway makes another user the owner of a file, which only root can do.
func giveAway(t *testing.T, path string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file to another user")
	}
	must.Do(t, os.Lchown(path, another, another))
}

// Whoever can make a name in a folder, as everybody can among the temporary files, or
// can write to the spool, must not be able to have anything written or sent.
func TestASpoolThatOthersCanWriteToIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		make func(t *testing.T, spool, elsewhere string)
		says string
	}{
		"a link":            {func(t *testing.T, spool, elsewhere string) { must.Do(t, os.Symlink(elsewhere, spool)) }, "is a link"},
		"a link to nothing": {func(t *testing.T, spool, elsewhere string) { must.Do(t, os.Symlink(elsewhere+"x", spool)) }, ""},
		"a file":            {func(t *testing.T, spool, _ string) { must.Do(t, os.WriteFile(spool, nil, 0o600)) }, "is not a folder"},
		"a pipe":            {func(t *testing.T, spool, _ string) { must.Do(t, syscall.Mkfifo(spool, 0o600)) }, "is not a folder"},
		"of the group":      {func(t *testing.T, spool, _ string) { must.Do(t, os.Mkdir(spool, 0o700), os.Chmod(spool, 0o770)) }, "chmod go-w"},
		"of everybody":      {func(t *testing.T, spool, _ string) { must.Do(t, os.Mkdir(spool, 0o700), os.Chmod(spool, 0o1777)) }, "chmod go-w"},
		"of another user":   {func(t *testing.T, spool, _ string) { must.Do(t, os.Mkdir(spool, 0o755)); giveAway(t, spool) }, "does not belong to"},
		"a link of somebody": {func(t *testing.T, spool, elsewhere string) {
			must.Do(t, os.Symlink(elsewhere, spool))
			giveAway(t, spool)
		}, "is a link"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spool, elsewhere := filepath.Join(t.TempDir(), "it's a spool"), t.TempDir()
			test.make(t, spool, elsewhere)
			rec, err := recorder.Attach(clientOf(t, away(t)), "eb-1", recorder.Options{Dir: spool + "/"})
			if err == nil {
				leave(t, rec)
			}
			_, resumed := recorder.Resume(t.Context(), spool, recorder.ResumeOptions{})
			_, status := recorder.Status(spool)
			for what, err := range map[string]error{"recording": err, "Resume": resumed, "Status": status} {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("%s: %v, want %q", what, err, test.says)
				}
			}
			if left := sessionsIn(t, elsewhere); len(left) > 0 {
				t.Errorf("through a link, %v was made", left)
			}
			if test.says != "chmod go-w" {
				return
			}
			// What the message says to do helps.
			_, command, _ := strings.Cut(err.Error(), "chmod")
			if out, err := exec.CommandContext(t.Context(), "sh", "-c", "chmod"+command).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if _, err := recorder.Status(spool); err != nil {
				t.Error(err)
			}
		})
	}
}

// damagedSession makes a session whose lines cannot be sent, and have to be set aside.
func damagedSession(t *testing.T, block string) (dir, session string) {
	t.Helper()
	dir = t.TempDir()
	session = filepath.Join(dir, block+".0123456789abcdef")
	must.Do(t, os.Mkdir(session, 0o700))
	for name, text := range map[string]string{
		"block.json":   `{"spool":2,"eb_id":"` + block + `","url":"http://` + away(t) + `/api/v1","create":null}`,
		"00000001.log": "no line of a spool\n",
		"lock":         "",
	} {
		must.Do(t, os.WriteFile(filepath.Join(session, name), []byte(text), 0o600))
	}
	return dir, session
}

func TestAFileThatOthersCouldHaveMadeIsNeitherReadNorWritten(t *testing.T) {
	t.Parallel()
	for kind, test := range map[string]struct {
		make func(t *testing.T, path, precious string)
		says string
	}{
		"link":      {func(t *testing.T, path, precious string) { must.Do(t, os.Symlink(precious, path)) }, "is a link"},
		"hard link": {func(t *testing.T, path, precious string) { must.Do(t, os.Link(precious, path)) }, "hard link"},
		"pipe":      {func(t *testing.T, path, _ string) { must.Do(t, syscall.Mkfifo(path, 0o600)) }, "is not a file"},
		"folder":    {func(t *testing.T, path, _ string) { must.Do(t, os.Mkdir(path, 0o700)) }, "is not a file"},
		"writable": {func(t *testing.T, path, _ string) {
			must.Do(t, os.WriteFile(path, []byte("theirs"), 0o600), os.Chmod(path, 0o620))
		}, "chmod go-w"},
		"foreign": {func(t *testing.T, path, _ string) {
			must.Do(t, os.WriteFile(path, []byte("theirs"), 0o644))
			giveAway(t, path)
		}, "does not belong to"},
	} {
		for _, name := range []string{"damaged.log", "00000001.log", "block.json", "lock"} {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				dir, session := damagedSession(t, "eb-1")
				precious := filepath.Join(filepath.Dir(t.TempDir()), "precious")
				must.Do(t, os.WriteFile(precious, []byte("precious\n"), 0o600))
				if err := os.Remove(filepath.Join(session, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Fatal(err)
				}
				test.make(t, filepath.Join(session, name), precious)
				got := resumeAll(t, dir, &env.Journal{})
				if got.Err == nil || !strings.Contains(got.Err.Error(), test.says) {
					t.Errorf("it was resumed with %v, want %q", got.Err, test.says)
				}
				if text, err := os.ReadFile(precious); err != nil || string(text) != "precious\n" {
					t.Errorf("the file of the user has %q (%v)", text, err)
				}
				if _, err := os.Lstat(filepath.Join(session, name)); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// The files that are replaced are not written through a link either.
func TestALinkIsReplacedAndNotFollowed(t *testing.T) {
	t.Parallel()
	dir, session := damagedSession(t, "eb-1")
	precious := filepath.Join(filepath.Dir(t.TempDir()), "precious")
	must.Do(t, os.WriteFile(precious, []byte("precious\n"), 0o600),
		os.Symlink(precious, filepath.Join(session, "shipped")), os.Symlink(precious, filepath.Join(session, "shipped.tmp")))
	if got := resumeAll(t, dir, &env.Journal{}); got.Err != nil || got.Damaged != 1 {
		t.Errorf("it was resumed with %+v", got)
	}
	if text := content(t, filepath.Dir(precious), "precious"); text != "precious\n" {
		t.Errorf("the file of the user has %q", text)
	}
	if text := content(t, session, "shipped"); text != "1 19\n" {
		t.Errorf("shipped has %q", text)
	}
}

// A session that another user has put into the spool is left alone, and the others
// are sent.
func TestASessionOfAnotherUserIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir, session := damagedSession(t, "eb-1")
	foreign := filepath.Join(dir, "eb-2.0123456789abcdef")
	must.Do(t, os.Mkdir(foreign, 0o755), os.Symlink(session, filepath.Join(dir, "eb-3.0123456789abcdef")))
	giveAway(t, foreign)
	results := resumed(t, patient(t), dir, 2, recorder.ResumeOptions{})
	for _, r := range results {
		switch refused := r.Err != nil && strings.Contains(r.Err.Error(), "does not belong to"); {
		case r.Dir == foreign && !refused, r.Dir == session && (r.Err != nil || r.Damaged != 1):
			t.Errorf("resumed: %+v", r)
		}
	}
	if _, err := recorder.Discard(foreign); err == nil {
		t.Error("it was discarded")
	}
	if left := sessionsIn(t, foreign); len(left) > 0 {
		t.Errorf("it has %v", left)
	}
}

// Nobody else can write to what is made, whatever the umask.
func TestASpoolIsPrivateWhateverTheUmask(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made", "here")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `umask 0; exec "$0"`, os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+away(t)+"|"+dir)
	out, err := cmd.StdoutPipe()
	must.Do(t, err, cmd.Start())
	// When it has said its block, the session is there.
	_, err = out.Read(make([]byte, 1))
	must.Do(t, err, cmd.Process.Kill())
	_ = cmd.Wait()
	var seen []string
	must.Do(t, filepath.WalkDir(filepath.Dir(dir), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[entry.IsDir()]; err == nil && info.Mode().Perm() != want {
			t.Errorf("%s has the mode %v, want %v", path, info.Mode(), want)
		}
		seen = append(seen, filepath.Base(path))
		return err
	}))
	for _, name := range []string{"here", "lock", "block.json", "00000001.log"} {
		if !slices.Contains(seen, name) {
			t.Errorf("%s is missing in %v", name, seen)
		}
	}
}

// What a session names is no reason to trust it with the token.
func TestATokenGoesOnlyToTheServerThatTheCallerNames(t *testing.T) {
	for name, test := range map[string]struct {
		options func(url string) recorder.ResumeOptions
		env     func(url string) string
		want    string
	}{
		"nobody names it":             {want: ""},
		"the environment names it":    {env: func(url string) string { return url + "/elsewhere/" }, want: "Bearer secret"},
		"the environment names other": {env: func(url string) string { return url + "0" }, want: ""},
		"the environment is rubbish":  {env: func(string) string { return "gopher://x" }, want: ""},
		"it is given as URL":          {options: func(url string) recorder.ResumeOptions { return recorder.ResumeOptions{URL: url} }, want: "Bearer secret"},
		"it is given as TokenFor":     {options: func(url string) recorder.ResumeOptions { return recorder.ResumeOptions{TokenFor: url} }, want: "Bearer secret"},
		"TokenFor is another host":    {options: func(string) recorder.ResumeOptions { return recorder.ResumeOptions{TokenFor: "http://localhost:1"} }, want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, enough := context.WithCancel(patient(t))
			defer enough()
			var mu sync.Mutex
			var heard []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				heard = append(heard, r.Header.Get("Authorization"))
				if r.Header.Get("Authorization") != "" {
					enough() // Resume waits for a better token
				}
				env.Answering(401, `{"type":"urn:oda:problem:not-authenticated","title":"x","status":401,"detail":"No."}`)(w, r)
			}))
			defer server.Close()
			t.Setenv("ODA_TOKEN", "secret")
			t.Setenv("ODA_URI", "")
			t.Setenv("ODA_URL", "")
			if test.env != nil {
				t.Setenv("ODA_URL", test.env(server.URL))
			}
			dir := t.TempDir()
			rec, err := recorder.Attach(clientOf(t, server.URL, client.WithToken("")), "eb-1", recorder.Options{Dir: dir, Logger: (&env.Journal{}).Logger()})
			must.Do(t, err)
			recordNumbers(t, rec, 1, 1)
			leave(t, rec)
			mu.Lock()
			heard = nil
			mu.Unlock()
			options := recorder.ResumeOptions{}
			if test.options != nil {
				options = test.options(server.URL)
			}
			options.Logger = (&env.Journal{}).Logger()
			results, err := recorder.Resume(ctx, dir, options)
			if err != nil || len(results) != 1 || results[0].Left != 1 {
				t.Fatalf("resumed: %+v %v", results, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(heard) == 0 || slices.ContainsFunc(heard, func(got string) bool { return got != test.want }) {
				t.Errorf("the server was sent %q, want %q", heard, test.want)
			}
			if said := strings.Contains(results[0].Err.Error(), "no token was sent to "+server.URL); said != (test.want == "") {
				t.Errorf("it says %v", results[0].Err)
			}
		})
	}
}
