package skuid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"oda"
)

const (
	answerBound  = 4 << 10 // limit for the bytes of an answer
	firstBackoff = 50 * time.Millisecond
)

// Client asks an identifier service for identifiers. It is safe for concurrent
// use and keeps its connections open between calls. Change its bounds only
// before the first call.
type Client struct {
	Tries      int           // maximum number of requests, 3
	TryTimeout time.Duration // time for one answer, 2 s
	Timeout    time.Duration // time for all of Mint, 5 s

	base  *url.URL
	types map[oda.Kind]string
	http  *http.Client
}

// NewClient returns a client for the identifier service at address: an http or
// https URL, whose scheme may be missing and which may have a path. The types
// map a kind to the type that the service knows; the default is the prefix of
// the kind.
func NewClient(address string, types map[oda.Kind]string) (*Client, error) {
	base, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	words := DefaultTypes()
	for kind, word := range types {
		if !validType(word) {
			return nil, fmt.Errorf("identifier type of %s: the type is 1 to 16 lower-case letters, not %q", kind, word)
		}
		words[kind] = word
	}
	return &Client{
		Tries:      3,
		TryTimeout: 2 * time.Second,
		Timeout:    5 * time.Second,
		base:       base,
		types:      words,
		http: &http.Client{
			Transport: &http.Transport{
				Proxy:                  http.ProxyFromEnvironment,
				DialContext:            (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
				TLSHandshakeTimeout:    2 * time.Second,
				MaxConnsPerHost:        64,
				MaxIdleConnsPerHost:    64,
				IdleConnTimeout:        30 * time.Second,
				MaxResponseHeaderBytes: 16 << 10,
				DisableCompression:     true,
				ForceAttemptHTTP2:      true,
			},
			// Only the configured service may name entities.
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
		},
	}, nil
}

// parseAddress never repeats the address in an error: it may hold a password.
func parseAddress(address string) (*url.URL, error) {
	address = strings.TrimSpace(address)
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	base, err := url.Parse(address)
	switch {
	case err != nil, base.Hostname() == "":
		return nil, errors.New("the URL of the identifier service is not valid: write it as http://HOST:PORT")
	case base.Scheme != "http" && base.Scheme != "https":
		return nil, fmt.Errorf("the URL of the identifier service begins with %s: only http and https are supported", base.Scheme)
	case base.RawQuery != "" || base.Fragment != "":
		return nil, errors.New("the URL of the identifier service has a query or a fragment: leave out everything from ? or # on")
	}
	return base, nil
}

// Mint asks the service for a new identifier of this kind. If there is no
// answer, or not a valid one, it asks again. If that does not help, or ctx
// ends, the error is an oda.Error with the code IdentifierService and the cause
// in its chain.
func (c *Client) Mint(ctx context.Context, kind oda.Kind) (string, error) {
	word := c.types[kind]
	within, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	var failure error
	for try := range c.Tries {
		if try > 0 && !pause(within, try) {
			break
		}
		id, err := c.ask(within, word)
		if err == nil {
			return id, nil
		}
		failure = err
		if within.Err() != nil {
			break
		}
	}
	reason := "did not answer"
	if wrong, ok := errors.AsType[*wrongAnswer](failure); ok {
		reason = wrong.reason
	}
	if err := ctx.Err(); err != nil {
		failure = errors.Join(err, failure)
	}
	return "", oda.Errorf(oda.IdentifierService,
		"The identifier service at %s %s when asked for a new %s identifier; nothing was stored. Try again later; if this persists, tell the operator.",
		c.base.Host, reason, word).Because(failure)
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// pause waits before another try, longer each time and for a random time. It
// returns false if ctx ended.
func pause(ctx context.Context, try int) bool {
	longest := firstBackoff << (try - 1)
	timer := time.NewTimer(longest/2 + rand.N(longest)) // #nosec G404 -- so that servers do not all ask at once
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// ask makes one try.
func (c *Client) ask(ctx context.Context, word string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.TryTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.JoinPath("skuid", "ska_id", word).String(), nil)
	if err != nil {
		return "", fmt.Errorf("asking for an identifier: %w", err)
	}
	// A cache could return an identifier twice.
	request.Header.Set("Cache-Control", "no-cache")
	request.Header.Set("Accept", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return "", fmt.Errorf("asking for an identifier: %w", err)
	}
	defer response.Body.Close()
	// Reading to the end lets the connection be reused.
	body, err := io.ReadAll(io.LimitReader(response.Body, answerBound+1))
	if err != nil {
		return "", fmt.Errorf("reading the answer of the identifier service: %w", err)
	}
	switch {
	case response.StatusCode == http.StatusNotFound:
		return "", &wrongAnswer{"does not know that type (see --skuid-types)", fmt.Errorf("status 404: %.200q", body)}
	case response.StatusCode != http.StatusOK:
		return "", &wrongAnswer{fmt.Sprintf("answered with status %d", response.StatusCode), fmt.Errorf("%.200q", body)}
	case len(body) > answerBound:
		return "", &wrongAnswer{"sent an invalid answer", fmt.Errorf("more than %d bytes", answerBound)}
	}
	return parseAnswer(body, word)
}

// wrongAnswer is an answer without a usable identifier. The reason may be shown
// to a caller; the error is for the log.
type wrongAnswer struct {
	reason string
	err    error
}

func (w *wrongAnswer) Error() string {
	return fmt.Sprintf("the identifier service %s: %v", w.reason, w.err)
}

func (w *wrongAnswer) Unwrap() error { return w.err }

// parseAnswer returns the identifier in an answer: a JSON object, or, from
// older services, a JSON string that contains such an object.
func parseAnswer(body []byte, word string) (string, error) {
	var inner string
	if json.Unmarshal(body, &inner) == nil {
		body = []byte(inner)
	}
	var answer struct {
		ID string `json:"ska_uid"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return "", &wrongAnswer{"sent an invalid answer", err}
	}
	rest, ok := strings.CutPrefix(answer.ID, word+"-")
	if !ok || rest == "" || !oda.ValidID(answer.ID) {
		return "", &wrongAnswer{"sent an invalid answer", fmt.Errorf("ska_uid %.200q is not an identifier of type %s", answer.ID, word)}
	}
	return answer.ID, nil
}
