package session_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oda"
	"oda/internal/auth"
	"oda/internal/auth/session"
)

var ada = &auth.Caller{User: "ada", Name: "subject-1", Means: auth.ByOIDC, Bound: map[string]auth.Role{"ska_mid": auth.Editor}, Role: auth.Reader}

func keeper(t *testing.T, cfg session.Config) *session.Keeper {
	t.Helper()
	k, err := session.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	go k.Run(t.Context())
	return k
}

func get(t *testing.T, cookies ...*http.Cookie) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://archive.example/ns/oda/ebs", nil)
	for _, c := range cookies {
		r.AddCookie(c)
	}
	return r
}

// begin begins a session and returns its cookie.
func begin(t *testing.T, k *session.Keeper, c *auth.Caller, digest []byte) *http.Cookie {
	t.Helper()
	w := httptest.NewRecorder()
	if err := k.Begin(w, get(t), c, digest); err != nil {
		t.Fatal(err)
	}
	return w.Result().Cookies()[0]
}

func known(t *testing.T, k *session.Keeper, r *http.Request) *auth.Caller {
	t.Helper()
	c, ok, err := k.Caller(r)
	if !ok || err != nil {
		t.Fatalf("the session is not known: %v", err)
	}
	return c
}

func refused(t *testing.T, k *session.Keeper, r *http.Request, want oda.Code) {
	t.Helper()
	if _, ok, err := k.Caller(r); ok || oda.CodeOf(err) != want {
		t.Errorf("the session is %v, %v; want the code %s", ok, err, want)
	}
}

func TestASessionIsItsCookie(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, bytes.Repeat([]byte("k"), 48), 0o600); err != nil {
		t.Fatal(err)
	}
	one, two := keeper(t, session.Config{KeyFile: key}), keeper(t, session.Config{KeyFile: key})
	cookie := begin(t, one, ada, nil)
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Secure || cookie.Path != "" {
		t.Errorf("the cookie is %s", cookie)
	}
	for _, secret := range []string{"ada", "ska_mid", "editor"} {
		if strings.Contains(cookie.Value, secret) {
			t.Errorf("the cookie tells %q: %s", secret, cookie)
		}
	}
	c := known(t, two, get(t, cookie)) // another process
	if c.User != "ada" || c.Name != "subject-1" || c.Means != auth.BySession || c.Role != auth.Reader || c.Bound["ska_mid"] != auth.Editor {
		t.Errorf("the caller is %+v", c)
	}
	if left := time.Until(c.Ends); left > session.Length || left < session.Length-time.Minute {
		t.Errorf("the session lasts %v", left)
	}

	other := keeper(t, session.Config{}) // with a key of its own
	if _, ok, err := other.Caller(get(t, cookie)); ok || err != nil {
		t.Errorf("with another key the cookie is %v, %v", ok, err)
	}
	// A cookie of another archive on the same host is no obstacle.
	known(t, two, get(t, begin(t, other, ada, nil), cookie))
	for i := range cookie.Value {
		changed := *cookie
		changed.Value = cookie.Value[:i] + string(cookie.Value[i]^1) + cookie.Value[i+1:]
		if c, ok, _ := one.Caller(get(t, &changed)); ok {
			t.Fatalf("with byte %d changed, the cookie is that of %+v", i, c)
		}
	}
}

// What is sealed for one purpose is of no use for another.
func TestANoteIsNoSession(t *testing.T) {
	k := keeper(t, session.Config{})
	w := httptest.NewRecorder()
	if err := k.Leave(w, get(t), "oda-note", map[string]any{"id": "x", "user": "eve", "role": "admin", "ends": "2999-01-01T00:00:00Z"}); err != nil {
		t.Fatal(err)
	}
	note := w.Result().Cookies()[0]
	var back map[string]any
	if !k.Take(httptest.NewRecorder(), get(t, note), "oda-note", &back) || back["user"] != "eve" {
		t.Errorf("the note is %v", back)
	}
	note.Name = "oda-session"
	if _, ok, _ := k.Caller(get(t, note)); ok {
		t.Error("a note counts as a session")
	}
}

func TestACookieIsSecureWhereTheArchiveIs(t *testing.T) {
	public, err := url.Parse("https://archive.example/ns/oda")
	if err != nil {
		t.Fatal(err)
	}
	if c := begin(t, keeper(t, session.Config{PublicURL: public}), ada, nil); !c.Secure {
		t.Errorf("behind https the cookie is %s", c)
	}
}

func TestASessionEndsWithItsToken(t *testing.T) {
	revoked := make(chan struct{})
	token := &auth.Caller{User: "desk", Name: "desk", Means: auth.ByToken, Role: auth.Editor, Done: revoked, Ends: time.Now().Add(time.Hour)}
	holder := token
	k := keeper(t, session.Config{Token: func(digest []byte) *auth.Caller {
		if string(digest) != "digest" {
			t.Errorf("asked for the token %q", digest)
		}
		return holder
	}})
	cookie := begin(t, k, token, []byte("digest"))
	c := known(t, k, get(t, cookie))
	if c.User != "desk" || c.Role != auth.Editor || !c.Ends.Equal(token.Ends) || c.Means != auth.BySession {
		t.Errorf("the caller is %+v", c)
	}
	holder = nil
	close(revoked)
	<-c.Done // so do its streams
	refused(t, k, get(t, cookie), oda.Unauthenticated)

	// Its roles are those that the token has now.
	holder = &auth.Caller{User: "desk", Name: "desk", Role: auth.Reader}
	if c := known(t, k, get(t, cookie)); c.Role != auth.Reader {
		t.Errorf("the role is %v", c.Role)
	}
}

func TestAnEndedSessionIsRefused(t *testing.T) {
	k := keeper(t, session.Config{})
	short := *ada
	short.Ends = time.Now().Add(50 * time.Millisecond)
	cookie := begin(t, k, &short, nil)
	<-known(t, k, get(t, cookie)).Done
	refused(t, k, get(t, cookie), oda.Unauthenticated)
}

func TestSigningOutEndsTheSessionAndItsStreams(t *testing.T) {
	k := keeper(t, session.Config{})
	cookie, other := begin(t, k, ada, nil), begin(t, k, ada, nil)
	c := known(t, k, get(t, cookie))
	w := httptest.NewRecorder()
	k.End(w, get(t, cookie))
	if gone := w.Result().Cookies()[0]; gone.MaxAge >= 0 || gone.Value != "" {
		t.Errorf("the browser is told %s", gone)
	}
	<-c.Done
	refused(t, k, get(t, cookie), oda.Unauthenticated) // somebody has kept the cookie
	known(t, k, get(t, other))
}

// However many others sign out, a session that was signed out stays so.
func TestASignedOutSessionStaysSignedOut(t *testing.T) {
	k := keeper(t, session.Config{})
	out := func(c *auth.Caller, times int) {
		t.Helper()
		for range times {
			k.End(httptest.NewRecorder(), get(t, begin(t, k, c, nil)))
		}
	}
	k.SetMost(64)
	const many = 100
	cookie, other := begin(t, k, ada, nil), begin(t, k, ada, nil)
	c := known(t, k, get(t, other))
	k.End(httptest.NewRecorder(), get(t, cookie))

	// Sessions that would have ended anyway are forgotten.
	over := *ada
	over.Ends = time.Now()
	out(&over, many)
	refused(t, k, get(t, cookie), oda.Unauthenticated)
	known(t, k, get(t, other))

	// Whoever ends too many that have not has to sign in again everywhere.
	out(ada, many)
	refused(t, k, get(t, cookie), oda.Unauthenticated)
	refused(t, k, get(t, other), oda.Unauthenticated)
	<-c.Done
	known(t, k, get(t, begin(t, k, ada, nil)))
}

// Whoever signs in and out very often ends no session but their own, neither with a
// token nor as a person.
func TestNobodySignsOthersOut(t *testing.T) {
	token := &auth.Caller{User: "desk", Name: "desk", Means: auth.ByToken, Role: auth.Reader}
	k := keeper(t, session.Config{Token: func([]byte) *auth.Caller { return token }})
	k.SetMost(64)
	eve := *ada
	eve.Name, eve.User = "subject-2", "eve"
	mine, signedOut := begin(t, k, ada, nil), begin(t, k, ada, nil)
	desk := begin(t, k, token, []byte("desk"))
	c := known(t, k, get(t, mine))
	k.End(httptest.NewRecorder(), get(t, signedOut))
	for n := range 500 {
		by, digest := &eve, []byte(nil)
		if n%2 == 0 {
			by, digest = token, []byte("eve's")
		}
		cookie := begin(t, k, by, digest)
		k.End(httptest.NewRecorder(), get(t, cookie))
		refused(t, k, get(t, cookie), oda.Unauthenticated)
	}
	refused(t, k, get(t, signedOut), oda.Unauthenticated)
	known(t, k, get(t, desk))
	if known(t, k, get(t, mine)) != c || c.Done == nil {
		t.Error("the session is not the one that it was")
	}
	select {
	case <-c.Done:
		t.Error("the streams of another person have ended")
	default:
	}
}

// Whoever has very many sessions at a time does not keep the archive from ending the
// streams of others when they sign out.
func TestManySessionsOfOnePersonLeaveRoomForOthers(t *testing.T) {
	k := keeper(t, session.Config{})
	k.SetMost(64)
	eve := *ada
	eve.Name, eve.User = "subject-2", "eve"
	mine := begin(t, k, ada, nil)
	c := known(t, k, get(t, mine))
	for range 500 {
		known(t, k, get(t, begin(t, k, &eve, nil)))
	}
	for range 2 {
		if known(t, k, get(t, mine)) != c {
			t.Fatal("the session was forgotten")
		}
		k.End(httptest.NewRecorder(), get(t, mine))
		<-c.Done
		mine = begin(t, k, ada, nil)
		c = known(t, k, get(t, mine))
	}
}

// A session that began with a token of the provider ends with the key behind it.
func TestASessionEndsWithTheKeyOfItsToken(t *testing.T) {
	withdrawn := make(chan struct{})
	var failed error
	k := keeper(t, session.Config{Key: func(fingerprint string) (<-chan struct{}, error) {
		if fingerprint != "key-1" {
			t.Errorf("asked for the key %q", fingerprint)
		}
		return withdrawn, failed
	}})
	signed := *ada
	signed.Key = "key-1"
	cookie := begin(t, k, &signed, nil)
	c := known(t, k, get(t, cookie))
	failed = oda.Errorf(oda.Unavailable, "The provider cannot be reached.")
	refused(t, k, get(t, cookie), oda.Unavailable)
	failed = oda.Errorf(oda.Unauthenticated, "It was withdrawn.")
	close(withdrawn)
	<-c.Done
	refused(t, k, get(t, cookie), oda.Unauthenticated)
}

func TestOnlyTheArchivesOwnPagesWriteWithASession(t *testing.T) {
	public, err := url.Parse("https://public.example")
	if err != nil {
		t.Fatal(err)
	}
	k := keeper(t, session.Config{PublicURL: public})
	cookie := begin(t, k, ada, nil)
	for name, test := range map[string]struct {
		header [2]string
		own    bool
	}{
		"a page of the archive":             {[2]string{"Sec-Fetch-Site", "same-origin"}, true},
		"in a browser that tells less":      {[2]string{"Origin", "http://archive.example"}, true},
		"behind a proxy that changes hosts": {[2]string{"Origin", "https://public.example"}, true},
		"a page of another site":            {[2]string{"Sec-Fetch-Site", "cross-site"}, false},
		"a page of a sibling":               {[2]string{"Sec-Fetch-Site", "same-site"}, false},
		"an older browser elsewhere":        {[2]string{"Origin", "https://evil.example"}, false},
		"another port of the host":          {[2]string{"Origin", "http://archive.example:8081"}, false},
		"a page without an origin":          {[2]string{"Origin", "null"}, false},
		"nobody knows":                      {[2]string{"X-Nothing", ""}, false},
	} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			r := httptest.NewRequestWithContext(t.Context(), method, "http://archive.example/api/v1/ebs", strings.NewReader("{}"))
			r.AddCookie(cookie)
			r.Header.Set(test.header[0], test.header[1])
			if _, ok, err := k.Caller(r); ok != test.own || !ok && oda.CodeOf(err) != oda.CrossOrigin {
				t.Errorf("%s, %s: %v, %v; want %v", name, method, ok, err, test.own)
			}
		}
	}
}

func TestAKeyFileMustHoldAKey(t *testing.T) {
	short := filepath.Join(t.TempDir(), "key")
	shared := filepath.Join(t.TempDir(), "shared")
	if err := errors.Join(os.WriteFile(short, []byte("secret\n"), 0o600), os.WriteFile(shared, bytes.Repeat([]byte("k"), 48), 0o600), os.Chmod(shared, 0o660)); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{short, shared, filepath.Join(t.TempDir(), "missing")} {
		if _, err := session.New(session.Config{KeyFile: file}); err == nil || !strings.Contains(err.Error(), "--session-key-file") {
			t.Errorf("%s: %v", file, err)
		}
	}
}
