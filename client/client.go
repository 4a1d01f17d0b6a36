package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"oda"
)

// Client talks to one archive. It is safe for concurrent use.
type Client struct {
	base    string // the address in front of /api/v1
	user    string
	retries int
	silence time.Duration
	maxBody int64
	http    *http.Client
}

// Option changes a client from its defaults.
type Option func(*Client)

// WithUser names the user who acts, in X-Forwarded-User. Without it the archive
// decides.
func WithUser(name string) Option { return func(c *Client) { c.user = name } }

// WithHTTPClient sends requests with another HTTP client than the default.
func WithHTTPClient(h *http.Client) Option {
	return func(c *Client) {
		own := *h
		c.http = &own
	}
}

// WithRetries sets how often a call that may be repeated is tried again, 3
// without it. With 0 every request is sent once.
func WithRetries(n int) Option { return func(c *Client) { c.retries = n } }

// WithSilence sets how long the archive may take nothing and say nothing before
// a request is given up, a minute without it. What is slow but moves has no
// bound other than that of the context.
func WithSilence(d time.Duration) Option { return func(c *Client) { c.silence = d } }

// WithMaxBody bounds the bytes of an answer that is read into memory, 1 GiB
// without it. A listing is streamed and has no such bound.
func WithMaxBody(n int64) Option { return func(c *Client) { c.maxBody = n } }

const api = "/api/v1"

// New makes a client of the archive at an address. It may lack the scheme, and
// may end in a slash or in /api/v1; a path in front of that is kept. Nothing is
// sent yet.
func New(address string, options ...Option) (*Client, error) {
	base, err := parse(address)
	if err != nil {
		return nil, err
	}
	c := &Client{base: base, retries: 3, silence: time.Minute, maxBody: 1 << 30}
	for _, option := range options {
		option(c)
	}
	if c.user != "" && !oda.ValidUser(c.user) {
		return nil, oda.Errorf(oda.InvalidUser, "The user name must have 1 to 256 characters, and no control characters.")
	}
	if c.http == nil {
		c.http = &http.Client{Transport: transport()}
	}
	if c.http.CheckRedirect == nil {
		c.http.CheckRedirect = onlyReads
	}
	return c, nil
}

// Once gives a client of the same archive that sends every request once, for a
// caller that has its own way of trying again.
func (c *Client) Once() *Client {
	once := *c
	once.retries = 0
	return &once
}

// URL is where the interface begins: the address up to and with /api/v1. It may
// have a password; show people Address.
func (c *Client) URL() string { return c.base + api }

// Address is the URL without a password.
func (c *Client) Address() string {
	u, err := url.Parse(c.URL())
	if err != nil {
		return api // it was parsed by New
	}
	return u.Redacted()
}

// User is the user who acts, empty where the archive decides.
func (c *Client) User() string { return c.user }

// CloseIdleConnections closes the connections that are not in use.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// parse gives the address in front of /api/v1, without a slash at its end.
func parse(address string) (string, error) {
	text := strings.TrimSpace(address)
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		// The error repeats the address, which may have a password.
		return "", errors.New("the address of the archive is not valid; write it as http://HOST:PORT")
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("the address of the archive begins with %s; write it as http://HOST:PORT or https://HOST", u.Scheme)
	case u.Hostname() == "":
		return "", errors.New("the address of the archive has no host; write it as http://HOST:PORT")
	case u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("the address of the archive has a query or a fragment; write it as http://HOST:PORT")
	}
	path := strings.TrimRight(u.EscapedPath(), "/")
	path = strings.TrimRight(strings.TrimSuffix(path, api), "/")
	u.Path, u.RawPath = "", ""
	return u.String() + path, nil
}

// transport is the standard one with shorter patience and more connections to
// one host, since there is one host only.
func transport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   16,
		IdleConnTimeout:       60 * time.Second, // less than the archive's
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}

// onlyReads follows redirects of reading requests. A redirected write could
// arrive as something else.
func onlyReads(request *http.Request, via []*http.Request) error {
	if via[0].Method != http.MethodGet {
		return http.ErrUseLastResponse
	}
	if len(via) >= 5 {
		return errors.New("the archive redirects too often")
	}
	return nil
}

// Ready tells whether the archive answers and can store, now: it is asked once.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.attempt(ctx, request{method: http.MethodGet, path: "/readyz"})
	return err
}

// Description reads the API description of the running archive, as JSON.
func (c *Client) Description(ctx context.Context) ([]byte, error) {
	return content(c.read(ctx, "/openapi.json", nil))
}

// DescriptionYAML is Description as YAML, with its comments.
func (c *Client) DescriptionYAML(ctx context.Context) ([]byte, error) {
	return content(c.read(ctx, "/openapi.yaml", nil))
}

func content(r *reply, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return r.body, nil
}

// read asks for something below /api/v1.
func (c *Client) read(ctx context.Context, path string, header http.Header) (*reply, error) {
	return c.do(ctx, request{method: http.MethodGet, path: api + path, header: header, repeatable: true})
}

// write sends a body under an idempotency key, so that it may be sent again. An
// empty key is replaced.
func (c *Client) write(ctx context.Context, method, path string, body []byte, key string) (*reply, error) {
	if key == "" {
		key = rand.Text()
	}
	return c.do(ctx, request{
		method: method, path: api + path, header: http.Header{"Idempotency-Key": {key}}, body: body, repeatable: true,
	})
}
