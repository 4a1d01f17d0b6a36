package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"oda"
)

// Client is a client of one archive. It is safe for concurrent use.
type Client struct {
	base    string // the address before /api/v1
	user    string
	retries int
	silence time.Duration
	maxBody int64
	http    *http.Client
	token   token // nil if there is none
	log     *slog.Logger
	plain   *sync.Once // that the token is not encrypted is said once, also by copies
}

// Option changes a client from its defaults.
type Option func(*Client)

// WithUser sets the acting user, sent as X-Forwarded-User. By default the
// archive decides.
func WithUser(name string) Option { return func(c *Client) { c.user = name } }

// WithHTTPClient sends requests through h instead of the default HTTP client.
func WithHTTPClient(h *http.Client) Option {
	return func(c *Client) {
		own := *h
		c.http = &own
	}
}

// WithRetries sets how often a safe call is retried. The default is 3; with 0
// every request is sent once.
func WithRetries(n int) Option { return func(c *Client) { c.retries = n } }

// WithSilence sets how long a request may go without progress, in either
// direction, before it is given up. The default is a minute. A slow request
// that makes progress is bounded only by its context.
func WithSilence(d time.Duration) Option { return func(c *Client) { c.silence = d } }

// WithMaxBody bounds the bytes of an answer that is read into memory. The
// default is 1 GiB. A listing is streamed and has no such bound.
func WithMaxBody(n int64) Option {
	return func(c *Client) { c.maxBody = min(n, math.MaxInt64-1) } // one byte more is read, to see that it is too large
}

const api = "/api/v1"

// New returns a client for the archive at an address. The scheme may be
// missing, and the address may end in a slash or in /api/v1, whatever its number; a
// path before that is kept. New sends nothing. Each request carries the token that the
// environment names, if WithToken or WithTokenFile do not say otherwise.
func New(address string, options ...Option) (*Client, error) {
	base, err := parse(address)
	if err != nil {
		return nil, err
	}
	c := &Client{base: base, retries: 3, silence: time.Minute, maxBody: 1 << 30, token: environment(), plain: new(sync.Once)}
	for _, option := range options {
		option(c)
	}
	if c.user != "" && !oda.ValidUser(c.user) {
		return nil, oda.Errorf(oda.InvalidUser, "The user name must be "+oda.UserRule+".")
	}
	if c.http == nil {
		c.http = &http.Client{Transport: transport()}
	}
	c.http.CheckRedirect = redirects(c.http.CheckRedirect)
	return c, nil
}

// Once returns a client for the same archive that sends every request once, for
// a caller with its own way of retrying.
func (c *Client) Once() *Client {
	once := *c
	once.retries = 0
	return &once
}

// URL returns the address of the API, including /api/v1. It may contain a
// password; show Address to people.
func (c *Client) URL() string { return c.base + api }

// Address returns URL without its password.
func (c *Client) Address() string {
	u, err := url.Parse(c.URL())
	if err != nil {
		return api // New has parsed it
	}
	return u.Redacted()
}

// Page returns the address of the page of an entity, without a password.
func (c *Client) Page(kind oda.Kind, id string) string {
	return strings.TrimSuffix(c.Address(), api) + path(kind, id)
}

// User returns the acting user, or "" if the archive decides.
func (c *Client) User() string { return c.user }

// CloseIdleConnections closes connections that are not in use.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// anyAPI is the end of an address of an API. Settings that were made for another
// archive have other numbers.
var anyAPI = regexp.MustCompile("/*(/api/v[0-9]+)?$")

// parse returns the address before /api/v1, without a trailing slash.
func parse(address string) (string, error) {
	text := strings.TrimSpace(address)
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		// The error would repeat the address, which may contain a password.
		return "", errors.New("the address of the archive is not valid; write it as http://HOST:PORT")
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("the address of the archive begins with %s; write it as http://HOST:PORT or https://HOST", u.Scheme)
	case u.Hostname() == "":
		return "", errors.New("the address of the archive has no host; write it as http://HOST:PORT")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", errors.New("the address of the archive has a query or a fragment; write it as http://HOST:PORT")
	}
	path := anyAPI.ReplaceAllString(strings.TrimRight(u.EscapedPath(), "/"), "")
	u.Path, u.RawPath = "", ""
	return u.String() + path, nil
}

// transport is the default transport with shorter timeouts and more connections
// per host, since there is only one host.
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

// onlyReads follows redirects of reading requests only: a redirected write
// could arrive as something else.
func onlyReads(_ *http.Request, via []*http.Request) error {
	if via[0].Method != http.MethodGet {
		return http.ErrUseLastResponse
	}
	if len(via) >= 5 {
		return errors.New("the archive redirects too often")
	}
	return nil
}

// Ready reports whether the archive answers and can store now. It asks once.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.attempt(ctx, request{method: http.MethodGet, path: "/readyz"})
	return err
}

// Description returns the API description of the running archive as JSON.
func (c *Client) Description(ctx context.Context) ([]byte, error) {
	return content(c.read(ctx, "/openapi.json", nil))
}

// DescriptionYAML returns the API description as YAML, with its comments.
func (c *Client) DescriptionYAML(ctx context.Context) ([]byte, error) {
	return content(c.read(ctx, "/openapi.yaml", nil))
}

func content(r *reply, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return r.body, nil
}

// read gets a path below /api/v1.
func (c *Client) read(ctx context.Context, path string, header http.Header) (*reply, error) {
	return c.do(ctx, request{method: http.MethodGet, path: api + path, header: header, repeatable: true})
}

// readJSON gets a path below /api/v1 whose answer is JSON.
func (c *Client) readJSON(ctx context.Context, path string, into any) (*reply, error) {
	r, err := c.read(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(r.body, into); err != nil {
		return nil, garbled(r, err)
	}
	return r, nil
}

// write sends a body under an idempotency key, so that it may be retried. An
// empty key is replaced by a random one.
func (c *Client) write(ctx context.Context, method, path string, body []byte, key string) (*reply, error) {
	if key == "" {
		key = rand.Text()
	}
	return c.do(ctx, request{
		method: method, path: api + path, header: http.Header{"Idempotency-Key": {key}}, body: body, repeatable: true,
	})
}
