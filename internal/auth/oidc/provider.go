// Package oidc knows callers by an OpenID provider: by the tokens that it signs for
// programs, and by sending people there to sign in.
//
// Start reading at Provider. It keeps what the provider has said about itself, its
// keys above all, in keys.go; judges tokens in verify.go; and signs people in with a
// code in signin.go.
package oidc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// Config says which provider to trust.
type Config struct {
	Issuer   string // its address, exactly as in its tokens
	Audience string // what a token must be for
	Roles    string // the claim with the roles; empty for "roles" and "groups"

	// For signing in on the pages. There is none without a client.
	ClientID     string
	ClientSecret string // empty for a public client
}

// Valid returns what is wrong with the configuration, in the words of the flags.
func (c *Config) Valid() error {
	issuer, err := url.Parse(c.Issuer)
	switch {
	case err != nil || issuer.Host == "" || issuer.RawQuery != "" || issuer.Fragment != "":
		return fmt.Errorf("--oidc-issuer %q is not the address of a provider; write it as https://HOST/PATH, exactly as the provider does", c.Issuer)
	case issuer.Scheme != "https" && !(issuer.Scheme == "http" && loopback(issuer.Hostname())):
		return fmt.Errorf("--oidc-issuer %s must begin with https://, since anyone between here and there could exchange its keys", c.Issuer)
	case c.Audience == "":
		return errors.New("--oidc-issuer needs --oidc-audience, the audience of the tokens for this archive")
	}
	return nil
}

func loopback(host string) bool {
	address := net.ParseIP(host)
	return host == "localhost" || address != nil && address.IsLoopback()
}

// How the provider is asked.
const (
	// fetchTime bounds one round of asking.
	fetchTime = 10 * time.Second
	// refreshEvery is how often a provider that answers is asked. A key that it has
	// withdrawn must not be believed for longer than ten minutes, with what a round takes.
	refreshEvery = 9 * time.Minute
	// pause is the least time between two rounds that tokens with unknown keys cause.
	// Anyone can make up such a token.
	pause = 5 * time.Second
	// After a failure the provider is asked again after retryFirst, and then half as
	// often each time.
	retryFirst = time.Second
	retryMost  = 30 * time.Second
	// answerMost bounds an answer of the provider.
	answerMost = 1 << 20
)

// Provider is an OpenID provider as far as it has been reached. It is safe for
// concurrent use.
type Provider struct {
	cfg    Config
	log    *slog.Logger
	client *http.Client
	known  atomic.Pointer[known]  // nil until the provider has been reached
	secret atomic.Pointer[string] // of the client
	wake   chan struct{}
	pause  time.Duration
	tokens cache

	mu     sync.Mutex
	round  chan struct{} // closed when the round ends that a token asked for; nil if none did
	tried  time.Time     // when the last round ended
	failed bool          // so did it
}

// known is what the provider has said about itself. It never changes.
type known struct {
	*oidc.Provider
	keys keys

	Scopes      []string `json:"scopes_supported"`
	AuthMethods []string `json:"token_endpoint_auth_methods_supported"`
	EndSession  string   `json:"end_session_endpoint"`
}

// New returns a provider that is still to be reached: Run does that.
func New(cfg Config, log *slog.Logger) *Provider {
	p := &Provider{
		cfg: cfg, log: log, wake: make(chan struct{}, 1), pause: pause,
		client: &http.Client{Timeout: fetchTime, Transport: bounded{http.DefaultTransport.(*http.Transport).Clone()}},
	}
	p.UseSecret(cfg.ClientSecret)
	return p
}

// UseSecret makes this the secret of the client.
func (p *Provider) UseSecret(secret string) { p.secret.Store(&secret) }

// Run asks the provider for its keys until ctx ends: again and again until it answers,
// then now and then, and when a token has a key that is not known. What the provider
// has said is kept while it cannot be reached.
func (p *Provider) Run(ctx context.Context) {
	defer p.client.CloseIdleConnections()
	wait := time.NewTimer(0)
	defer wait.Stop()
	for retry := retryFirst; ; {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		case <-p.wake:
		}
		err := p.fetch(ctx)
		if ctx.Err() != nil {
			return
		}
		p.ended(err)
		if err == nil {
			retry = retryFirst
			wait.Reset(refreshEvery)
			continue
		}
		wait.Reset(retry)
		retry = min(2*retry, retryMost)
	}
}

// fetch asks the provider about itself and for its keys.
func (p *Provider) fetch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), fetchTime)
	defer cancel()
	provider, err := oidc.NewProvider(ctx, p.cfg.Issuer)
	if err != nil {
		return err
	}
	said := &known{Provider: provider}
	var at struct {
		Keys string `json:"jwks_uri"`
	}
	if err := cmp.Or(provider.Claims(said), provider.Claims(&at)); err != nil {
		return err
	}
	if said.keys, err = p.fetchKeys(ctx, at.Keys); err != nil {
		return err
	}
	p.use(said)
	return nil
}

// use makes this what is known of the provider. Only Run calls it.
func (p *Provider) use(said *known) {
	var withdrawn keys
	added := true
	if before := p.known.Load(); before != nil {
		withdrawn, added = said.keys.follow(before.keys)
	}
	first := p.known.Swap(said) == nil
	if len(withdrawn) == 0 && !added {
		return
	}
	p.tokens.clear() // a key may have been withdrawn because somebody stole it
	for _, key := range withdrawn {
		close(key.withdrawn)
	}
	switch {
	case len(said.keys) == 0:
		p.log.Warn("the OpenID provider has no key that signs tokens; they are refused until it has", "issuer", p.cfg.Issuer)
	case !first:
		p.log.Info("the OpenID provider has other keys than before", "issuer", p.cfg.Issuer, "keys", said.keys.ids())
	}
}

// Key returns what is closed when the provider withdraws the key with this fingerprint.
func (p *Provider) Key(fingerprint string) (<-chan struct{}, error) {
	said := p.known.Load()
	if said == nil {
		return nil, unreachable()
	}
	key := said.keys.find(fingerprint)
	if key == nil {
		return nil, refusal(errSignature)
	}
	return key.withdrawn, nil
}

// ended notes the outcome of a round, and logs it if it differs from the one before.
func (p *Provider) ended(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first, before := p.tried.IsZero(), p.failed
	p.tried, p.failed = time.Now(), err != nil
	if p.round != nil {
		close(p.round)
		p.round = nil
	}
	switch {
	case err == nil && (first || before):
		p.log.Info("the OpenID provider answers", "issuer", p.cfg.Issuer, "keys", p.known.Load().keys.ids())
	case err != nil && !before && p.known.Load() == nil:
		p.log.Warn("the OpenID provider cannot be reached; its tokens are refused until it answers", "issuer", p.cfg.Issuer, "error", shortened(err))
	case err != nil && !before:
		p.log.Warn("the OpenID provider cannot be reached; its keys are kept, and nobody can sign in there until it answers", "issuer", p.cfg.Issuer, "error", shortened(err))
	}
}

// shortened bounds how much of an answer an error repeats.
func shortened(err error) string { return fmt.Sprintf("%.300s", err) }

// again waits for another round, unless there was one a moment ago. It reports
// whether the last one failed.
func (p *Provider) again(ctx context.Context) (failed bool) {
	p.mu.Lock()
	if p.round == nil {
		least := p.pause
		if p.failed {
			least = min(least, retryFirst) // it may be back
		}
		if !p.tried.IsZero() && time.Since(p.tried) < least {
			defer p.mu.Unlock()
			return p.failed
		}
		p.round = make(chan struct{})
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
	round := p.round
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	select {
	case <-round:
	case <-ctx.Done():
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// bounded bounds the bodies of answers.
type bounded struct{ *http.Transport }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.Transport.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, answerMost)
	}
	return answer, err
}
