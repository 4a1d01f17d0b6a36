package oidc

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"oda"
	"oda/internal/auth"
)

// skew is how far ahead the provider's clock may be. If it is slow, its tokens end
// that much earlier here: a token is never good for longer than it says.
const skew = time.Minute

// Caller implements auth.Way for bearer tokens that are JWTs.
func (p *Provider) Caller(r *http.Request) (*auth.Caller, bool, error) {
	token, given, err := auth.Bearer(r)
	if err != nil || !given || strings.Count(token, ".") != 2 {
		return nil, false, err
	}
	digest := sha256.Sum256([]byte(token))
	if c := p.tokens.get(digest, time.Now()); c != nil {
		return c, true, nil
	}
	claims, by, err := p.verify(r.Context(), token, p.cfg.Audience)
	if err != nil {
		return nil, false, refusal(err)
	}
	c, err := p.caller(claims)
	if err != nil {
		return nil, false, err
	}
	c.Means, c.Ends, c.Done, c.Key = auth.ByOIDC, claims.ends(), claims.key.withdrawn, claims.key.fingerprint
	p.tokens.put(digest, c, func() bool { return p.known.Load() == by })
	return c, true, nil
}

// Reasons why a token is refused. They are for the caller, and repeat nothing of the
// token.
var (
	errMalformed  = errors.New("it is not a JWT that a provider has signed")
	errSignature  = errors.New("no key of the provider has signed it")
	errIssuer     = errors.New("another provider has issued it")
	errAudience   = errors.New("it is for another audience")
	errType       = errors.New("it is not a token for calling an interface")
	errExpired    = errors.New("it has expired")
	errNotYet     = errors.New("it is not valid yet")
	errNoEnd      = errors.New("it never ends")
	errNoIssue    = errors.New("it does not say when it was issued")
	errTooOld     = errors.New("it was issued more than 24 hours ago")
	errNoUser     = errors.New("it names nobody whose name could be recorded")
	errNoProvider = errors.New("the OpenID provider cannot be reached")
)

// refusal returns the answer to a token that was refused.
func refusal(err error) error {
	if errors.Is(err, errNoProvider) {
		return unreachable()
	}
	return auth.BadBearer("%v", err)
}

func unreachable() error {
	return oda.Errorf(oda.Unavailable, "The OpenID provider cannot be reached, so the archive cannot tell who is calling. "+
		"Nothing was stored. Try again in a moment.")
}

// verify returns the claims of a token, and the state of the provider by which it judged
// them. If the token has a key that is not known, the provider is asked for it.
func (p *Provider) verify(ctx context.Context, token, audience string) (*claims, *known, error) {
	said := p.known.Load()
	if said == nil {
		if p.again(ctx); p.known.Load() == nil {
			return nil, nil, errNoProvider
		}
		said = p.known.Load()
	}
	claims, s, err := p.judge(ctx, said, token, audience)
	if !s.failed {
		return claims, said, err
	}
	failed := p.again(ctx)
	if now := p.known.Load(); now != said {
		claims, s, err = p.judge(ctx, now, token, audience)
		said = now
	}
	if s.failed && s.unknown && failed {
		return nil, nil, errNoProvider
	}
	return claims, said, err
}

// judge judges a token by what is known of the provider.
func (p *Provider) judge(ctx context.Context, said *known, token, audience string) (*claims, *signature, error) {
	s := &signature{keys: said.keys}
	jws, err := jose.ParseSignedCompact(token, algorithms)
	if err != nil || len(jws.Signatures) != 1 {
		return nil, s, errMalformed
	}
	if !callType(jws.Signatures[0].Protected.ExtraHeaders[jose.HeaderType]) {
		return nil, s, errType
	}
	// Issuer, audience and times are judged below: the reasons are ours then, and the
	// clocks may differ a little.
	verifier := oidc.NewVerifier(p.cfg.Issuer, s, &oidc.Config{
		SupportedSigningAlgs: algorithmNames, SkipClientIDCheck: true, SkipExpiryCheck: true, SkipIssuerCheck: true,
	})
	verified, err := verifier.Verify(ctx, token)
	switch {
	case s.failed:
		return nil, s, errSignature
	case err != nil:
		return nil, s, errMalformed
	case verified.Issuer != p.cfg.Issuer:
		return nil, s, errIssuer
	case !slices.Contains(verified.Audience, audience):
		return nil, s, errAudience
	}
	c := &claims{subject: verified.Subject, nonce: verified.Nonce, audience: verified.Audience, key: s.by}
	if verified.Claims(c) != nil || verified.Claims(&c.all) != nil {
		return nil, s, errMalformed
	}
	return c, s, c.timely(time.Now())
}

// callType reports whether a token of this type is for calling an interface, or for
// signing in. Providers sign others too, such as those that end a session.
func callType(of any) bool {
	name, _ := of.(string)
	switch strings.TrimPrefix(strings.ToLower(name), "application/") {
	case "", "jwt", "at+jwt":
		return true
	}
	return false
}

// claims are what a token says.
type claims struct {
	subject  string
	nonce    string
	audience []string
	key      *key // that has signed them
	all      map[string]json.RawMessage

	Username string   `json:"preferred_username"`
	Expiry   *instant `json:"exp"`
	Before   *instant `json:"nbf"`
	Issued   *instant `json:"iat"`
}

// instant is a time in a token, in seconds since 1970.
type instant float64

// farOff is the last second of the year 9999.
const farOff = 253402300799

func (i instant) time() time.Time { return time.Unix(int64(max(min(float64(i), farOff), 0)), 0) }

// longest is how long a token counts after it was issued, whatever end it names: somebody
// may have stolen it, or the key, long ago.
const longest = 24 * time.Hour

func (c *claims) timely(now time.Time) error {
	switch {
	case c.Expiry == nil:
		return errNoEnd
	case c.Issued == nil:
		return errNoIssue
	case !now.Before(c.Expiry.time()):
		return errExpired
	case c.Before != nil && c.Before.time().After(now.Add(skew)), c.Issued.time().After(now.Add(skew)):
		return errNotYet
	case !now.Before(c.ends()):
		return errTooOld
	}
	return nil
}

// ends returns when the token ends here.
func (c *claims) ends() time.Time {
	end, latest := c.Expiry.time(), c.Issued.time().Add(longest)
	if latest.Before(end) {
		return latest
	}
	return end
}

// issuedTo reports whether an ID token is for this client. A token with several audiences
// must name its client.
func (c *claims) issuedTo(client string) bool {
	party, named := c.all["azp"]
	if !named {
		return len(c.audience) == 1
	}
	var name string
	return json.Unmarshal(party, &name) == nil && name == client
}

// caller returns the caller that the claims describe.
func (p *Provider) caller(of *claims) (*auth.Caller, error) {
	c := &auth.Caller{Name: of.subject, User: of.Username}
	if !oda.ValidUser(c.User) {
		c.User = of.subject
	}
	if !oda.ValidUser(c.User) {
		return nil, auth.BadBearer("%v", errNoUser)
	}
	c.Grant(p.roles(of.all)...)
	return c, nil
}

// roles returns the names in the claims that hold roles.
func (p *Provider) roles(all map[string]json.RawMessage) []string {
	if p.cfg.Roles != "" {
		return namesIn(claim(all, p.cfg.Roles))
	}
	return append(namesIn(all["roles"]), namesIn(all["groups"])...)
}

// claim returns a claim by its name. If there is none, the name may lead into an
// object, as realm_access.roles does.
func claim(all map[string]json.RawMessage, name string) json.RawMessage {
	if text, ok := all[name]; ok {
		return text
	}
	outer, inner, ok := strings.Cut(name, ".")
	var object map[string]json.RawMessage
	if !ok || json.Unmarshal(all[outer], &object) != nil {
		return nil
	}
	return claim(object, inner)
}

// namesIn returns the names of a claim: a list of strings, or one string with spaces
// between them, as a scope is.
func namesIn(claim json.RawMessage) []string {
	var text string
	if json.Unmarshal(claim, &text) == nil {
		return strings.Fields(text)
	}
	var list []any
	if json.Unmarshal(claim, &list) != nil {
		return nil
	}
	var names []string
	for _, each := range list {
		if name, ok := each.(string); ok {
			names = append(names, name)
		}
	}
	return names
}
