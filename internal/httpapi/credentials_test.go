package httpapi_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oda"
	"oda/internal/app"
	"oda/internal/auth"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// until waits until a request is answered with a status. A change of the file of
// tokens must be followed within two seconds; a busy machine may take longer.
func until(t *testing.T, status int, send func() *env.Reply) *env.Reply {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if r := send(); r.Status == status || time.Now().After(deadline) {
			return want(t, status, r)
		}
	}
}

// The server accepts a new token and refuses a revoked one without a restart, and a
// file that is not valid changes nothing.
func TestTheServerFollowsTheFileOfTokens(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens")
	admin := newToken(t, file, auth.Token{Name: "admin", Role: auth.Admin})
	a := env.Start(t, tokensOf(file))
	get := func(headers []string) func() *env.Reply {
		return func() *env.Reply { return a.Do("GET", "/guide", "", headers...) }
	}
	want(t, 200, get(admin)())
	later := newToken(t, file, auth.Token{Name: "later", Role: auth.Reader})
	until(t, 200, get(later))

	good := must.Get(os.ReadFile(file))(t)
	write := func(text string) {
		t.Helper()
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	}
	write("{")
	env.Await(t, "the log says that the file is not valid", func() bool { return strings.Contains(a.LogText(), "the tokens stay as they were") })
	want(t, 200, get(later)())
	write(string(good))

	must.Do(t, auth.RevokeToken(file, "later"))
	p := refused(t, until(t, 401, get(later)), 401, oda.Unauthenticated)
	if !strings.Contains(p.Detail, "unknown or was revoked") {
		t.Errorf("the detail is %q", p.Detail)
	}
	want(t, 200, get(admin)())

	must.Do(t, os.Remove(file))
	until(t, 401, get(admin))
	write(string(good))
	until(t, 200, get(admin))
}

// A stream ends when its credential does, and so does a request that waits. Others
// go on.
func TestAStreamEndsWithItsCredential(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens")
	other := newToken(t, file, auth.Token{Name: "other", Role: auth.Editor})
	revoked := newToken(t, file, auth.Token{Name: "revoked", Role: auth.Reader})
	a := env.Start(t, tokensOf(file))
	want(t, 200, a.Do("PUT", "/ebs/a", `{}`, other...))
	stream := func(path string, headers []string) *bufio.Reader {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		t.Cleanup(cancel)
		request := must.Get(http.NewRequestWithContext(ctx, "GET", a.URL()+path, nil))(t)
		request.Header.Set("Accept", "text/event-stream")
		request.Header.Set(headers[0], headers[1])
		response := must.Get(http.DefaultClient.Do(request))(t)
		t.Cleanup(func() { response.Body.Close() })
		if response.StatusCode != http.StatusOK {
			t.Fatalf("the stream is answered %d", response.StatusCode)
		}
		return bufio.NewReader(response.Body)
	}
	ending := func(r io.Reader) {
		t.Helper()
		if _, err := io.Copy(io.Discard, r); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("the stream does not end: %v", err)
		}
	}
	changes, block, goesOn := stream("/changes", revoked), stream("/ebs/a/request_responses", revoked), stream("/changes", other)
	waits := make(chan *env.Reply, 1)
	go func() {
		r, err := a.Try("GET", "/changes?after=now&wait=60", "", revoked...)
		if err != nil {
			t.Error(err)
		}
		waits <- r
	}()
	for a.Followers() < 4 {
		time.Sleep(time.Millisecond)
	}
	must.Do(t, auth.RevokeToken(file, "revoked"))
	ending(changes)
	ending(block)
	refused(t, <-waits, 401, oda.Unauthenticated, "ended while")
	want(t, 200, a.Do("PUT", "/sbds/after", `{}`, other...))
	for line := ""; !strings.Contains(line, `"after"`); {
		var err error
		if line, err = goesOn.ReadString('\n'); err != nil {
			t.Fatalf("the stream of another caller ended: %v", err)
		}
	}

	expiring := newToken(t, file, auth.Token{Name: "expiring", Role: auth.Reader, Expires: time.Now().Add(3 * time.Second)})
	until(t, 200, func() *env.Reply { return a.Do("GET", "/guide", "", expiring...) })
	for _, path := range []string{"/changes?after=now&wait=60", "/ebs/a/request_responses?wait=60"} {
		go func() {
			r, err := a.Try("GET", path, "", expiring...)
			if err != nil {
				t.Error(err)
			}
			waits <- r
		}()
	}
	ending(stream("/changes", expiring))
	refused(t, <-waits, 401, oda.Unauthenticated, "ended while")
	refused(t, <-waits, 401, oda.Unauthenticated, "ended while")
	p := refused(t, a.Do("GET", "/guide", "", expiring...), 401, oda.Unauthenticated)
	if !strings.Contains(p.Detail, "expired") {
		t.Errorf("the detail is %q", p.Detail)
	}
}

// Nobody gets the rest of a copy of the archive with a token that was revoked meanwhile.
func TestACopyEndsWithItsCredential(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens")
	stays := newToken(t, file, auth.Token{Name: "stays", Role: auth.Editor})
	a := env.Start(t, tokensOf(file))
	random := make([]byte, 256<<10)
	for i := range 60 { // more than a connection holds
		_, _ = rand.Read(random) // never fails
		want(t, 200, a.Do("PUT", fmt.Sprintf("/sbds/a%d", i), fmt.Sprintf(`{"name":"%x"}`, random), stays...))
	}
	for _, copied := range []string{"backup", "export"} {
		t.Run(copied, func(t *testing.T) {
			revoked := newToken(t, file, auth.Token{Name: "revoked", Role: auth.Admin})
			until(t, 200, func() *env.Reply { return a.Do("GET", "/guide", "", revoked...) })
			request := must.Get(http.NewRequestWithContext(t.Context(), "GET", a.URL()+"/"+copied, nil))(t)
			request.Header.Set(revoked[0], revoked[1])
			response := must.Get(http.DefaultClient.Do(request))(t)
			defer response.Body.Close()
			if _, err := io.CopyN(io.Discard, response.Body, 1); err != nil || response.StatusCode != http.StatusOK {
				t.Fatalf("it is answered %d: %v", response.StatusCode, err)
			}
			must.Do(t, auth.RevokeToken(file, "revoked"))
			until(t, 401, func() *env.Reply { return a.Do("GET", "/guide", "", revoked...) })
			if n, err := io.Copy(io.Discard, response.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("it went on to its end, with %d bytes: %v", n, err)
			}
		})
	}
}

// Whoever sends slowly does not write with a token that was revoked meanwhile.
func TestABodyThatArrivesAfterItsCredentialEndedIsRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens")
	stays := newToken(t, file, auth.Token{Name: "stays", Role: auth.Reader})
	revoked := newToken(t, file, auth.Token{Name: "revoked", Role: auth.Editor})
	a := env.Start(t, tokensOf(file))
	conn := must.Get(net.Dial("tcp", a.Addr()))(t)
	defer conn.Close()
	answers := bufio.NewReader(conn)
	status := func() int {
		t.Helper()
		response := must.Get(http.ReadResponse(answers, nil))(t)
		response.Body.Close()
		return response.StatusCode
	}
	fmt.Fprintf(conn, "PUT /api/v1/sbds/late HTTP/1.1\r\nHost: x\r\n%s: %s\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n", revoked[0], revoked[1])
	if got := status(); got != http.StatusContinue {
		t.Fatalf("the body is asked for with %d", got)
	}
	must.Do(t, auth.RevokeToken(file, "revoked"))
	until(t, 401, func() *env.Reply { return a.Do("GET", "/guide", "", revoked...) })
	fmt.Fprint(conn, "{}")
	if got := status(); got != http.StatusUnauthorized {
		t.Errorf("the body is answered %d, want 401", got)
	}
	want(t, 404, a.Do("GET", "/sbds/late", "", stays...))
}

// The acting user is the name of the token. What the request says counts only beside a
// token that was made for that.
func TestTheActingUserIsTheNameOfTheToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	script := newToken(t, file, auth.Token{Name: "skript Ω", Role: auth.Editor})
	room := newToken(t, file, auth.Token{Name: "control room", Role: auth.Editor, MayNameUser: true})
	a := env.Start(t, tokensOf(file))
	by := func(body string, headers ...string) string {
		t.Helper()
		m := metadataOf(t, want(t, 200, a.Do("POST", "/sbds", body, headers...)).Body)
		if m.CreatedBy != m.LastModifiedBy {
			t.Errorf("created by %q, modified by %q", m.CreatedBy, m.LastModifiedBy)
		}
		return m.CreatedBy
	}
	for _, test := range []struct {
		body    string
		headers []string
		want    string
	}{
		{`{}`, script, "skript Ω"},
		{`{"metadata":{"created_by":"eve"}}`, script, "skript Ω"},
		{`{}`, append([]string{user, "eve"}, script...), "skript Ω"},
		{`{}`, append([]string{user, ""}, script...), "skript Ω"},
		{`{}`, append([]string{user, "a\x01b"[:1], user, "eve"}, script...), "skript Ω"},
		{`{}`, append([]string{user, strings.Repeat("x", 300)}, script...), "skript Ω"},
		{`{}`, room, "control room"},
		{`{"metadata":{"created_by":"eve"}}`, room, "control room"},
		{`{}`, append([]string{user, "anna"}, room...), "anna"},
	} {
		if got := by(test.body, test.headers...); got != test.want {
			t.Errorf("%s with %.40q is by %q, want %q", test.body, test.headers, got, test.want)
		}
	}
	refused(t, a.Do("POST", "/sbds", `{}`, append([]string{user, "anna", user, "anna"}, room...)...), 400, oda.InvalidRequest)
	refused(t, a.Do("POST", "/sbds", `{}`, append([]string{user, ""}, room...)...), 400, oda.InvalidUser)
	if line := a.Logged(want(t, 200, a.Do("GET", "/guide", "", room...)).Header.Get("X-Request-Id")); line["user"] != "control room" {
		t.Errorf("the log has the user %v", line["user"])
	}
}

// The headers of a proxy are believed from its addresses only, and after a bearer
// token.
func TestCallersThatAProxyNames(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	reader := newToken(t, file, auth.Token{Name: "program", Role: auth.Reader})
	const groups = "X-Forwarded-Groups"
	from := func(networks ...string) func(*app.Config) {
		return func(cfg *app.Config) {
			cfg.Auth.Tokens = file
			for _, text := range networks {
				cfg.Auth.Proxies = append(cfg.Auth.Proxies, netip.MustParsePrefix(text))
			}
		}
	}
	proxied, elsewhere := env.Start(t, from("10.0.0.0/8", "127.0.0.0/8")), env.Start(t, from("10.0.0.0/8", "::1/128"))
	named := []string{user, "anna", groups, "staff, oda-reader,oda-editor:ska_mid , oda-recorder:,oda-owner,ODA-ADMIN,oda-admin:"}
	post := func(a *env.Archive, body string, headers ...string) *env.Reply {
		return a.Do("POST", "/sbds", body, headers...)
	}
	if m := metadataOf(t, want(t, 200, post(proxied, `{"telescope":"ska_mid"}`, named...)).Body); m.CreatedBy != "anna" {
		t.Errorf("stored by %+v", m)
	}
	refused(t, post(proxied, `{"telescope":"ska_low"}`, named...), 403, oda.Forbidden, "the role editor", "ska_mid")
	refused(t, post(proxied, `{}`, user, "bob", groups, "oda-reader"), 403, oda.Forbidden, "the role editor")
	want(t, 200, proxied.Do("GET", "/guide", "", user, "bob", groups, "oda-reader"))
	refused(t, proxied.Do("GET", "/guide", "", user, "bob", groups, "staff"), 403, oda.Forbidden, "the role reader")
	refused(t, proxied.Do("GET", "/guide", "", user, "bob"), 403, oda.Forbidden)
	refused(t, proxied.Do("GET", "/guide", "", groups, "oda-admin"), 401, oda.Unauthenticated)
	refused(t, proxied.Do("GET", "/guide", "", user, "", groups, "oda-admin"), 401, oda.Unauthenticated)
	refused(t, proxied.Do("PUT", "/sbds/a", `{}`, user, "anna", user, "anna", groups, "oda-admin"), 400, oda.InvalidRequest)
	refused(t, proxied.Do("PUT", "/sbds/a", `{}`, user, "anna", groups, "oda-admin", groups, "oda-reader"), 400, oda.InvalidRequest)
	refused(t, proxied.Do("PUT", "/sbds/a", `{}`, user, strings.Repeat("x", 257), groups, "oda-admin"), 400, oda.InvalidUser)

	admin := []string{user, "anna", groups, "oda-admin"}
	want(t, 200, post(proxied, `{}`, append([]string{"Authorization", "Basic YTpi"}, admin...)...)) // the proxy's own
	refused(t, post(proxied, `{}`, append(admin, reader...)...), 403, oda.Forbidden, "program")
	refused(t, post(proxied, `{}`, append([]string{"Authorization", "Bearer x"}, admin...)...), 401, oda.Unauthenticated)
	refused(t, post(proxied, `{}`, append([]string{"Authorization", "Bearer x", "Authorization", reader[1]}, admin...)...), 400, oda.InvalidRequest)

	refused(t, post(elsewhere, `{}`, admin...), 401, oda.Unauthenticated)
	want(t, 200, elsewhere.Do("GET", "/guide", "", append(admin, reader...)...))
}
