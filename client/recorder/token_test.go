package recorder_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oda/client"
	"oda/client/recorder"
	"oda/internal/app"
	"oda/internal/auth"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// guarded is an archive that wants a token, and the file with the token of a
// recorder.
type guarded struct {
	*env.Archive
	tokens, own string
	reader      *client.Client
}

func guard(t *testing.T) *guarded {
	t.Helper()
	dir := t.TempDir()
	g := &guarded{tokens: filepath.Join(dir, "tokens"), own: filepath.Join(dir, "own")}
	reading := g.create(t, "reader", auth.Reader)
	g.Archive = env.Start(t, func(cfg *app.Config) { cfg.Auth = auth.Config{Tokens: g.tokens} })
	g.reader = clientOf(t, g.URL(), client.WithToken(reading))
	return g
}

func (g *guarded) create(t *testing.T, name string, role auth.Role, telescopes ...string) string {
	t.Helper()
	secret := must.Get(auth.CreateToken(g.tokens, auth.Token{Name: name, Role: role, Telescopes: telescopes, Created: time.Now().UTC()}))(t)
	return secret
}

// renew makes a token and puts it into the recorder's file, and waits until the
// archive knows it.
func (g *guarded) renew(t *testing.T, name string, role auth.Role, telescopes ...string) string {
	t.Helper()
	secret := g.create(t, name, role, telescopes...)
	must.Do(t, os.WriteFile(g.own, []byte(secret+"\n"), 0o600))
	own := clientOf(t, g.URL(), client.WithToken(secret))
	env.Await(t, "the archive to know the token", func() bool {
		_, err := own.Description(t.Context())
		return err == nil
	})
	return secret
}

// revoke revokes the recorder's token, and waits until the archive has noticed.
func (g *guarded) revoke(t *testing.T, name string) {
	t.Helper()
	must.Do(t, auth.RevokeToken(g.tokens, name))
	own := clientOf(t, g.URL(), client.WithTokenFile(g.own))
	env.Await(t, "the archive to follow its file of tokens", func() bool {
		_, err := own.Description(t.Context())
		return client.Status(err) == 401
	})
}

// However its token is lost, a recorder keeps everything, says so once, and goes on
// when its file has a good one.
func TestARecorderWaitsForAGoodToken(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*testing.T, *guarded) error{
		"it is revoked":             func(t *testing.T, g *guarded) error { g.revoke(t, "night"); return nil },
		"its file is removed":       func(_ *testing.T, g *guarded) error { return os.Remove(g.own) },
		"its file is empty":         func(_ *testing.T, g *guarded) error { return os.Truncate(g.own, 0) },
		"its file has another text": func(_ *testing.T, g *guarded) error { return os.WriteFile(g.own, []byte("not a token"), 0o600) },
		"its file is a folder": func(_ *testing.T, g *guarded) error {
			return errors.Join(os.Remove(g.own), os.Mkdir(g.own, 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := guard(t)
			secret := g.renew(t, "night", auth.Recorder)
			c := clientOf(t, g.URL(), client.WithTokenFile(g.own))
			rec, log := opened(t, c, recorder.Options{Dir: t.TempDir()})
			recordNumbers(t, rec, 1, 100)
			must.Do(t, rec.Flush(patient(t)))
			must.Do(t, lose(t, g))
			recordNumbers(t, rec, 101, 200)
			env.Await(t, "a line in the log", func() bool { return strings.Contains(log.String(), "does not accept the token") })
			recordNumbers(t, rec, 201, 300)
			// Several tries later, everything is still there.
			short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if err := rec.Flush(short); err == nil {
				t.Error("records were acknowledged although there is no good token")
			}
			if got := rec.Lag().Records; got != 200 || rec.Refused() != 0 || rec.Dropped() != 0 {
				t.Errorf("%d records wait, %d were refused, %d dropped", got, rec.Refused(), rec.Dropped())
			}
			if err := os.Remove(g.own); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			g.renew(t, "day", auth.Recorder)
			closeRecorder(t, rec)
			wantNumbers(t, g.reader, rec.BlockID(), 300)
			if got := strings.Count(log.String(), "does not accept the token"); got != 1 {
				t.Errorf("it is said %d times: %s", got, log)
			}
			if strings.Count(log.String(), "the archive is back, 200 records sent") != 1 || strings.Contains(log.String(), secret) {
				t.Errorf("the log says: %s", log)
			}
		})
	}
}

func TestABlockOpenedWithoutTheRightIsSentWhenItIsGiven(t *testing.T) {
	t.Parallel()
	for name, renew := range map[string]func(*testing.T, *guarded){
		"a token that may only read":       func(t *testing.T, g *guarded) { g.renew(t, "night", auth.Reader) },
		"a token for another telescope":    func(t *testing.T, g *guarded) { g.renew(t, "night", auth.Recorder, "ska_low") },
		"no token, as its file is missing": func(*testing.T, *guarded) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := guard(t)
			renew(t, g)
			dir := t.TempDir()
			c := clientOf(t, g.URL(), client.WithTokenFile(g.own))
			rec, log := opened(t, c, recorder.Options{Dir: dir, Document: []byte(`{"telescope":"ska_mid"}`)})
			recordNumbers(t, rec, 1, 10)
			env.Await(t, "a line in the log", func() bool { return strings.Contains(log.String(), "does not accept the token") })
			secret := g.renew(t, "day", auth.Recorder, "ska_mid")
			must.Do(t, rec.Flush(patient(t)))
			noSecret(t, dir, secret)
			closeRecorder(t, rec)
			wantNumbers(t, g.reader, rec.BlockID(), 10)
			if got := strings.Count(log.String(), "level=ERROR") + strings.Count(log.String(), "level=WARN"); got != 1 {
				t.Errorf("there are %d complaints: %s", got, log)
			}
		})
	}
}

func TestResumeWaitsForAGoodToken(t *testing.T) {
	t.Parallel()
	g := guard(t)
	g.renew(t, "night", auth.Reader)
	dir := t.TempDir()
	c := clientOf(t, g.URL(), client.WithTokenFile(g.own))
	rec, _ := opened(t, c, recorder.Options{Dir: dir})
	recordNumbers(t, rec, 1, 50)
	leave(t, rec)
	log := &env.Journal{}
	done := make(chan []recorder.Resumed)
	go func() {
		resumed, err := recorder.Resume(patient(t), dir, recorder.ResumeOptions{
			TokenFor: g.URL(), Client: []client.Option{client.WithTokenFile(g.own)}, Logger: log.Logger(),
		})
		if err != nil {
			t.Error(err)
		}
		done <- resumed
	}()
	env.Await(t, "a line in the log", func() bool { return strings.Contains(log.String(), "does not accept the token") })
	g.renew(t, "day", auth.Recorder)
	if resumed := <-done; len(resumed) != 1 || resumed[0].Err != nil || resumed[0].Stored != 50 {
		t.Errorf("the outcome is %+v", resumed)
	}
	wantNumbers(t, g.reader, rec.BlockID(), 50)
	if got := strings.Count(log.String(), "does not accept the token"); got != 1 {
		t.Errorf("it is said %d times: %s", got, log)
	}
}

// noSecret checks that no file in a folder has a token in it.
func noSecret(t *testing.T, dir, secret string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, path))
		if strings.Contains(string(text), secret) {
			t.Errorf("%s has the token in it", path)
		}
		return err
	})
	must.Do(t, err)
}
