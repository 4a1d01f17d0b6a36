package recorder_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"oda/client/recorder"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// Without a folder, recorders use the spool of the environment, and so does who asks
// where it is.
func TestTheDefaultSpool(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("ODA_SPOOL", "")
	if found, err := recorder.Spools(); err != nil || len(found) != 0 {
		t.Errorf("before anything is recorded, there are %v, %v", found, err)
	}
	for variable, want := range map[string]string{
		"":                          filepath.Join(home, ".local/state/oda/spool"),
		"~/records":                 filepath.Join(home, "records"),
		filepath.Join(home, "else"): filepath.Join(home, "else"),
	} {
		t.Setenv("ODA_SPOOL", variable)
		rec := must.Get(recorder.Attach(clientOf(t, away(t)), "eb-1", recorder.Options{}))(t)
		recordNumbers(t, rec, 1, 1)
		leave(t, rec)
		if found, err := recorder.Spools(); err != nil || len(found) != 1 || found[0] != want || len(sessionsIn(t, want)) != 1 {
			t.Errorf("with ODA_SPOOL=%q the spools are %v, %v, want %s", variable, found, err, want)
		}
	}
	// The spool that the Python helper falls back to is looked into, too.
	spare := filepath.Join(os.TempDir(), "oda-spool-"+strconv.Itoa(os.Getuid()))
	must.Do(t, os.Mkdir(spare, 0o700))
	if found, err := recorder.Spools(); err != nil || len(found) != 2 || found[1] != spare {
		t.Errorf("the spools are %v, %v", found, err)
	}
}

func TestADiscardedSessionIsKeptAndNeverSent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := clientOf(t, away(t))
	rec := must.Get(recorder.Attach(c, "eb-1", recorder.Options{Dir: dir}))(t)
	recordNumbers(t, rec, 1, 3)
	session := sessionsIn(t, dir)[0]
	if _, err := recorder.Discard(session); err == nil || !strings.Contains(err.Error(), "a running process works on it") {
		t.Errorf("a session that is recorded into was discarded: %v", err)
	}
	leave(t, rec)
	if !recorder.IsSession(session) || recorder.IsSession(dir) || recorder.IsSession(session+"x") {
		t.Error("a session is not told from other folders")
	}
	kept := must.Get(recorder.Discard(session))(t)
	if text, err := os.ReadFile(filepath.Join(kept, "00000001.log")); err != nil || strings.Count(string(text), "\n") != 3 {
		t.Errorf("what is kept is %q, %v", text, err)
	}
	log := &env.Journal{}
	left, err := recorder.Resume(t.Context(), dir, recorder.ResumeOptions{Logger: log.Logger()})
	if err != nil || len(left) != 0 || log.String() != "" {
		t.Errorf("Resume finds %v, %v and says %s", left, err, log)
	}
}
