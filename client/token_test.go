package client_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oda"
	"oda/client"
	"oda/internal/test/must"
)

// listening is a server that remembers what it was sent as Authorization, and
// may redirect.
type listening struct {
	*httptest.Server
	heard    []string
	redirect string
}

func listen(t *testing.T) *listening {
	t.Helper()
	l := &listening{}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.heard = append(l.heard, r.Header.Get("Authorization"))
		if l.redirect != "" {
			http.Redirect(w, r, l.redirect, http.StatusTemporaryRedirect)
			return
		}
		fmt.Fprint(w, "{}")
	}))
	t.Cleanup(l.Close)
	return l
}

// ask sends one request that reads.
func ask(t *testing.T, address string, options ...client.Option) error {
	t.Helper()
	c := must.Get(client.New(address, append(options, client.WithRetries(0))...))(t)
	defer c.CloseIdleConnections()
	_, err := c.Description(t.Context())
	return err
}

func TestATokenComesFromTheEnvironmentOrIsGiven(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, "in-the-file\n")
	for name, test := range map[string]struct {
		text, path string
		options    []client.Option
		want       string
	}{
		"none":                             {want: ""},
		"a variable":                       {text: "in-the-variable", want: "Bearer in-the-variable"},
		"a file":                           {path: file, want: "Bearer in-the-file"},
		"the variable before the file":     {text: "in-the-variable", path: file, want: "Bearer in-the-variable"},
		"an option before the variable":    {text: "in-the-variable", options: []client.Option{client.WithToken("given")}, want: "Bearer given"},
		"a file as an option":              {text: "in-the-variable", options: []client.Option{client.WithTokenFile(file)}, want: "Bearer in-the-file"},
		"an option that says: send none":   {text: "in-the-variable", options: []client.Option{client.WithToken("")}, want: ""},
		"with spaces around, as one types": {text: " typed\n", want: "Bearer typed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("ODA_TOKEN", test.text)
			t.Setenv("ODA_TOKEN_FILE", test.path)
			archive := listen(t)
			must.Do(t, ask(t, archive.URL, test.options...))
			if got := archive.heard[0]; got != test.want {
				t.Errorf("the archive was sent %q, want %q", got, test.want)
			}
		})
	}
}

func TestATokenThatIsRenewedInItsFileTakesEffectAtOnce(t *testing.T) {
	t.Parallel()
	archive := listen(t)
	file := filepath.Join(t.TempDir(), "token")
	c := must.Get(client.New(archive.URL, client.WithTokenFile(file), client.WithRetries(0)))(t)
	for _, text := range []string{"first", "other", "third"} { // of one length, within one tick of the clock
		write(t, file, text)
		must.Get(c.Description(t.Context()))(t)
		if got := archive.heard[len(archive.heard)-1]; got != "Bearer "+text {
			t.Errorf("the archive was sent %q, want %s", got, text)
		}
	}
}

func TestWithoutItsTokenNothingIsSent(t *testing.T) {
	t.Parallel()
	archive := listen(t)
	dir := t.TempDir()
	empty, two := filepath.Join(dir, "empty"), filepath.Join(dir, "two")
	write(t, empty, "\n")
	write(t, two, "secret-one\nsecret-two\n")
	shared := filepath.Join(dir, "shared")
	write(t, shared, "secret-one\n")
	must.Do(t, os.Chmod(shared, 0o620))
	for name, option := range map[string]client.Option{
		"there is no file":          client.WithTokenFile(filepath.Join(dir, "missing")),
		"the file is a folder":      client.WithTokenFile(dir),
		"the file is empty":         client.WithTokenFile(empty),
		"others can write the file": client.WithTokenFile(shared),
		"the file has two tokens":   client.WithTokenFile(two),
		"the text is two tokens":    client.WithToken("secret-one secret-two"),
		"the text is not printable": client.WithToken("secret-\x01"),
	} {
		err := ask(t, archive.URL, option)
		if !errors.Is(err, client.ErrToken) || !client.Denied(err) || strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	if len(archive.heard) > 0 {
		t.Errorf("requests were sent: %q", archive.heard)
	}
}

func TestATokenIsNeverSentToAnotherServer(t *testing.T) {
	t.Parallel()
	other, archive := listen(t), listen(t)
	for name, options := range map[string][]client.Option{
		"with the default HTTP client": nil,
		"with an HTTP client that follows redirects by its own rule": {client.WithHTTPClient(&http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return nil },
		})},
	} {
		other.heard, archive.heard = nil, nil
		archive.redirect = other.URL // the same host name, another port
		must.Do(t, ask(t, archive.URL, append(options, client.WithToken("secret"))...))
		if archive.heard[0] != "Bearer secret" || len(other.heard) != 1 || other.heard[0] != "" {
			t.Errorf("%s: the archive was sent %q, the other server %q", name, archive.heard, other.heard)
		}
		archive.redirect = ""
	}
	// Within the server, it goes along.
	within := listen(t)
	within.redirect = "/elsewhere"
	handler := within.Config.Handler
	within.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r)
		within.redirect = ""
	})
	must.Do(t, ask(t, within.URL, client.WithToken("secret")))
	if len(within.heard) != 2 || within.heard[1] != "Bearer secret" {
		t.Errorf("after a redirect within the archive, it was sent %q", within.heard)
	}
}

func TestATokenThatOthersCanReadIsReportedOnce(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]int{
		"http://archive.example":   1,
		"http://192.0.2.7:8080":    1,
		"https://archive.example":  0,
		"http://127.0.0.1:8080":    0,
		"http://[::1]:8080":        0,
		"http://localhost:8080":    0,
		"http://oda.localhost":     0,
		"http://localhost.example": 1,
	} {
		var log strings.Builder
		c, err := client.New(
			address, client.WithToken("secret"), client.WithRetries(0), client.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
			client.WithHTTPClient(&http.Client{Transport: noNetwork{}}),
		)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Description(t.Context())
		_, _ = c.Once().Description(t.Context())
		if got := strings.Count(log.String(), "plain http"); got != want {
			t.Errorf("%s: it is said %d times, want %d: %s", address, got, want, log.String())
		}
		for _, text := range []string{log.String(), fmt.Sprintf("%v %+v %#v", c, c, *c)} {
			if strings.Contains(text, "secret") {
				t.Errorf("the token is shown: %s", text)
			}
		}
	}
}

// noNetwork answers nothing.
type noNetwork struct{}

func (noNetwork) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("no network")
}

func TestWhoIsDeniedMayComeBackWithAnotherToken(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]bool{400: false, 401: true, 403: true, 404: false, 429: false, 503: false} {
		archive := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		if err := ask(t, archive.URL); client.Denied(err) != want || client.Status(err) != status {
			t.Errorf("%d: Denied is %v: %v", status, !want, err)
		}
		archive.Close()
	}
	if client.Denied(nil) || client.Denied(oda.Errorf(oda.NotFound, "")) {
		t.Error("Denied is true of nothing")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
}
