package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net/url"
	"slices"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"oda"
	"oda/internal/auth"
)

// Attempt is a person on the way to the provider and back. It must be kept where
// only their browser has it, and nobody can read or change it.
type Attempt struct {
	State    string `json:"state"`    // comes back with the answer
	Nonce    string `json:"nonce"`    // comes back within the ID token
	Verifier string `json:"verifier"` // shows that the token is fetched by whoever sent the person
}

// Host returns the host of the provider, for people to recognise.
func (p *Provider) Host() string {
	issuer, err := url.Parse(p.cfg.Issuer)
	if err != nil {
		return p.cfg.Issuer
	}
	return issuer.Host
}

// SignOut returns where people sign out at the provider, empty if it has no such
// place or is not known yet.
func (p *Provider) SignOut() string {
	said := p.known.Load()
	if said == nil {
		return ""
	}
	at, err := url.Parse(said.EndSession)
	if err != nil || at.Scheme != "https" && at.Scheme != "http" {
		return ""
	}
	query := at.Query()
	query.Set("client_id", p.cfg.ClientID)
	at.RawQuery = query.Encode()
	return at.String()
}

// Begin returns where to send a person who wants to sign in. They come back to the
// address back.
func (p *Provider) Begin(ctx context.Context, back string) (address string, a Attempt, err error) {
	said := p.known.Load()
	if said == nil {
		p.again(ctx)
		if said = p.known.Load(); said == nil {
			return "", Attempt{}, unreachable()
		}
	}
	a = Attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
	client := p.oauth(said, back)
	return client.AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), a, nil
}

// oauth describes the archive to the provider.
func (p *Provider) oauth(said *known, back string) *oauth2.Config {
	endpoint, secret := said.Endpoint(), *p.secret.Load()
	endpoint.AuthStyle = oauth2.AuthStyleInHeader
	basic := said.AuthMethods == nil || slices.Contains(said.AuthMethods, "client_secret_basic")
	if secret == "" || !basic {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	scopes := []string{oidc.ScopeOpenID, oidc.ScopeProfile}
	// Some providers put roles into a token only if they are asked to, and others
	// refuse a scope that they do not have.
	for _, scope := range []string{"roles", "groups"} {
		if slices.Contains(said.Scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	return &oauth2.Config{ClientID: p.cfg.ClientID, ClientSecret: secret, Endpoint: endpoint, RedirectURL: back, Scopes: scopes}
}

// Finish returns who has signed in: the provider sent them back to the address back
// with this answer. The caller has no end yet.
func (p *Provider) Finish(ctx context.Context, a Attempt, back string, answer url.Values) (*auth.Caller, error) {
	if subtle.ConstantTimeCompare([]byte(answer.Get("state")), []byte(a.State)) != 1 || a.State == "" {
		return nil, notSignedIn("the answer belongs to another attempt")
	}
	if iss := answer.Get("iss"); iss != "" && iss != p.cfg.Issuer {
		return nil, notSignedIn("the answer is not from the provider")
	}
	if code := answer.Get("error"); code != "" {
		if code == "access_denied" {
			return nil, notSignedIn("the provider says that access was denied")
		}
		p.log.Warn("the OpenID provider refuses to sign a person in", "issuer", p.cfg.Issuer, "error", oauthError(code))
		return nil, notSignedIn("the provider refuses it (" + oauthError(code) + ")")
	}
	said := p.known.Load()
	if said == nil {
		return nil, unreachable()
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), fetchTime)
	defer cancel()
	tokens, err := p.oauth(said, back).Exchange(ctx, answer.Get("code"), oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return nil, p.exchangeFailed(err)
	}
	text, _ := tokens.Extra("id_token").(string)
	who, said, err := p.verify(ctx, text, p.cfg.ClientID)
	switch {
	case errors.Is(err, errNoProvider):
		return nil, unreachable()
	case err != nil:
		p.log.Warn("the OpenID provider signs people in with a token that is not good", "issuer", p.cfg.Issuer, "reason", err)
		return nil, notSignedIn("the provider's token is not valid: " + err.Error())
	case !who.issuedTo(p.cfg.ClientID):
		p.log.Warn("the OpenID provider signs people in with a token that was issued to another client (azp)", "issuer", p.cfg.Issuer)
		return nil, notSignedIn("the provider's token was issued to another client")
	case subtle.ConstantTimeCompare([]byte(who.nonce), []byte(a.Nonce)) != 1:
		return nil, notSignedIn("the provider's token belongs to another attempt")
	}
	if err := p.complete(ctx, said, tokens, who); err != nil {
		return nil, err
	}
	return p.caller(who)
}

// complete adds what the ID token lacks and the provider tells when it is asked.
func (p *Provider) complete(ctx context.Context, said *known, tokens *oauth2.Token, who *claims) error {
	if who.Username != "" && len(p.roles(who.all)) > 0 || said.UserInfoEndpoint() == "" {
		return nil
	}
	info, err := said.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
	if err != nil {
		p.log.Warn("the OpenID provider does not tell about a person who signed in", "issuer", p.cfg.Issuer)
		return unreachable()
	}
	var more claims
	switch {
	case info.Subject != who.subject:
		return notSignedIn("the provider tells about another person")
	case info.Claims(&more) != nil || info.Claims(&more.all) != nil:
		return notSignedIn("the provider's answer about the person cannot be read")
	}
	if who.Username == "" {
		who.Username = more.Username
	}
	for name, value := range more.all {
		if _, has := who.all[name]; !has {
			who.all[name] = value
		}
	}
	return nil
}

// exchangeFailed returns the error for a code that the provider did not accept. The
// cause may repeat codes and secrets, so it goes nowhere.
func (p *Provider) exchangeFailed(err error) error {
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return unreachable()
	}
	code := oauthError(refused.ErrorCode)
	p.log.Warn("the OpenID provider refuses the code of a person who signed in", "issuer", p.cfg.Issuer, "error", code)
	return notSignedIn("the provider refuses it (" + code + ")")
}

// oauthError returns the code of an error if it is one: anyone can write a link with
// another text.
func oauthError(code string) string {
	for i := range len(code) {
		if c := code[i]; c != '_' && (c < 'a' || c > 'z') {
			return "unknown error"
		}
	}
	if code == "" || len(code) > 64 {
		return "unknown error"
	}
	return code
}

func notSignedIn(reason string) error {
	return oda.Errorf(oda.Unauthenticated, "You are not signed in: %s. Try again, and tell the operator if it fails again.", reason)
}
