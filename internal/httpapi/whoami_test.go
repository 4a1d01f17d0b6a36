package httpapi_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oda/internal/auth"
	"oda/internal/test/env"
)

func TestACallerIsToldWhoTheArchiveTakesItFor(t *testing.T) {
	told := func(t *testing.T, a *env.Archive, answer string, headers ...string) {
		t.Helper()
		if got := string(want(t, 200, a.Do("GET", "/whoami", "", headers...)).Body); got != answer {
			t.Errorf("the answer is\n%s, want\n%s", got, answer)
		}
	}
	t.Run("open", func(t *testing.T) {
		a := env.Start(t)
		told(t, a, `{"user":"DefaultUser","name":null,"means":"open","role":"admin","telescopes":[],"ends":null}`)
		told(t, a, `{"user":"ada","name":null,"means":"open","role":"admin","telescopes":[],"ends":null}`, "X-Forwarded-User", "ada")
		want(t, 400, a.Do("GET", "/whoami", "", "X-Forwarded-User", strings.Repeat("a", 257)))
	})
	t.Run("with tokens", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "tokens")
		shared := newToken(t, file, auth.Token{Name: "control-room", Role: auth.Editor, MayNameUser: true})
		bound := newToken(t, file, auth.Token{
			Name: "low", Role: auth.Recorder, Telescopes: []string{"ska_mid", "ska_low"}, Expires: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		})
		a := env.Start(t, tokensOf(file))
		want(t, 401, a.Do("GET", "/whoami", ""))
		told(t, a, `{"user":"control-room","name":"control-room","means":"token","role":"editor","telescopes":[],"ends":null}`, shared...)
		told(t, a, `{"user":"ada","name":"control-room","means":"token","role":"editor","telescopes":[],"ends":null}`, append(shared, "X-Forwarded-User", "ada")...)
		told(t, a, `{"user":"low","name":"low","means":"token","role":null,"telescopes":[{"telescope":"ska_low","role":"recorder"},{"telescope":"ska_mid","role":"recorder"}],"ends":"2100-01-01T00:00:00.000000Z"}`,
			append(bound, "X-Forwarded-User", "ada")...)
	})
}
