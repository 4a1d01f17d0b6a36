package client

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strings"
)

// ErrToken is in the chain of an error if there was no token to send, although
// there should be one: its file cannot be read, has none in it, or can be written by
// others. Nothing was sent.
var ErrToken = errors.New("there is no token to send")

// WithToken sends a token with each request. By default it is the one in the
// environment variable ODA_TOKEN, or in the file that ODA_TOKEN_FILE names. An
// empty text sends none.
func WithToken(text string) Option {
	return func(c *Client) { c.token = fixed(text) }
}

// WithTokenFile sends the token in a file with each request. The file is read
// for each, so a token that is renewed there takes effect at once.
func WithTokenFile(path string) Option {
	return func(c *Client) { c.token = inFile(path) }
}

// WithLogger sets where the client reports a token that others could read on its
// way, and an archive that it follows and that does not answer. The default is
// slog.Default().
func WithLogger(log *slog.Logger) Option { return func(c *Client) { c.log = log } }

func (c *Client) logger() *slog.Logger { return cmp.Or(c.log, slog.Default()) }

// Denied reports whether the archive refused a request because of who sent it
// (401 or 403), or whether there was no token to send. With another token, or
// another role of the same one, the same request may succeed.
func Denied(err error) bool {
	status := Status(err)
	return status == http.StatusUnauthorized || status == http.StatusForbidden || errors.Is(err, ErrToken)
}

// A token is a function, so that a client can be printed without showing it. It
// returns "" if there is none to send.
type token func() (string, error)

// EnvironmentToken returns the token that a client sends by default, empty if there is
// none.
func EnvironmentToken() (string, error) {
	if token := environment(); token != nil {
		return token()
	}
	return "", nil
}

// environment returns the token that the environment names.
func environment() token {
	text, path := os.Getenv("ODA_TOKEN"), os.Getenv("ODA_TOKEN_FILE")
	if text == "" && path != "" {
		return inFile(path)
	}
	return fixed(text)
}

func fixed(text string) token {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil
	}
	return func() (string, error) { return checked(text, "the token") }
}

// mostToken bounds how much of a file is read: a signed token may be long.
const mostToken = 64 << 10

func inFile(path string) token {
	return func() (string, error) {
		f, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrToken, err)
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && isShared(info) {
			return "", fmt.Errorf("%w: others than its owner can write %s and so choose the token; change that with: chmod go-w %s", ErrToken, path, path)
		}
		text, err := io.ReadAll(io.LimitReader(f, mostToken))
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrToken, err)
		}
		return checked(strings.TrimSpace(string(text)), path)
	}
}

// isShared reports whether others than its owner can write a file. It may also be a
// pipe, and on Windows the mode says nothing about others.
func isShared(file fs.FileInfo) bool {
	return runtime.GOOS != "windows" && file.Mode().IsRegular() && file.Mode().Perm()&0o022 != 0
}

// checked returns a token that can be sent in a header. The error does not repeat
// it.
func checked(text, where string) (string, error) {
	if text == "" {
		return "", fmt.Errorf("%w: %s is empty", ErrToken, where)
	}
	for _, c := range []byte(text) {
		if c <= ' ' || c > '~' {
			return "", fmt.Errorf("%w: %s is not one token, without spaces", ErrToken, where)
		}
	}
	return text, nil
}

// authorize adds the token to a request.
func (c *Client) authorize(out *http.Request) error {
	if c.token == nil {
		return nil
	}
	text, err := c.token()
	if err != nil {
		return err
	}
	c.sayPlain(out.URL)
	out.Header.Set("Authorization", "Bearer "+text)
	return nil
}

// sayPlain reports, once, that the token can be read by others on its way.
func (c *Client) sayPlain(u *url.URL) {
	if u.Scheme == "https" || loopback(u.Hostname()) {
		return
	}
	c.plain.Do(func() {
		c.logger().Warn("the token is sent over plain http, where others can read it; use https", "archive", c.Address())
	})
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

// redirects returns the rule about redirects.
func redirects(rule func(*http.Request, []*http.Request) error) func(*http.Request, []*http.Request) error {
	if rule == nil {
		rule = onlyReads
	}
	return func(request *http.Request, via []*http.Request) error {
		WithholdToken(request, via)
		return rule(request, via)
	}
}

// WithholdToken takes the token out of a redirected request that leaves the server that
// the token is for: net/http would also send it to other ports and names of the same
// host, and without encryption. It is for http.Client.CheckRedirect.
func WithholdToken(request *http.Request, via []*http.Request) {
	for _, before := range via {
		if before.URL.Scheme != request.URL.Scheme || before.URL.Host != request.URL.Host {
			request.Header.Del("Authorization")
		}
	}
}
