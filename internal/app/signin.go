package app

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"oda/internal/auth"
	"oda/internal/auth/oidc"
	"oda/internal/auth/session"
	"oda/internal/web"
)

// newGate returns the gate, and how people sign in on the pages; nil if they cannot.
func newGate(cfg Config, public *url.URL) (gate *auth.Gate, signIn *web.SignIn, err error) {
	var provider *oidc.Provider
	if cfg.OIDC.Issuer != "" {
		if err := cfg.OIDC.Valid(); err != nil {
			return nil, nil, err
		}
		provider = oidc.New(cfg.OIDC, cfg.Log)
		cfg.Auth.Bearers = append(cfg.Auth.Bearers, provider)
	}
	if provider != nil || cfg.Auth.Tokens != "" {
		sessions, err := session.New(session.Config{
			KeyFile: cfg.SessionKeyFile, PublicURL: public,
			Token: func(digest []byte) *auth.Caller { return gate.Holder([sha256.Size]byte(digest)) },
			Key: func(fingerprint string) (<-chan struct{}, error) {
				if provider == nil { // there was one when the session began
					return nil, auth.BadBearer("this archive has no provider any more")
				}
				return provider.Key(fingerprint)
			},
		})
		if err != nil {
			return nil, nil, err
		}
		cfg.Auth.Sessions = append(cfg.Auth.Sessions, sessions)
		signIn = &web.SignIn{Sessions: sessions, Token: func(ctx context.Context, token string) (*auth.Caller, []byte, error) {
			return judge(ctx, gate, token)
		}}
	}
	if provider != nil && cfg.OIDC.ClientID != "" {
		if public == nil {
			return nil, nil, fmt.Errorf("--oidc-client-id needs --public-url, the address to which the provider sends people back")
		}
		signIn.Provider, signIn.Back = provider, public.JoinPath("signed-in").String()
	}
	gate, err = auth.New(cfg.Auth, cfg.Log)
	return gate, signIn, err
}

// publicURL parses the address where browsers find the archive.
func publicURL(text, base string) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	public, err := url.Parse(text)
	if err != nil || public.Scheme != "http" && public.Scheme != "https" || public.Host == "" || public.User != nil || public.RawQuery != "" || public.Fragment != "" {
		return nil, fmt.Errorf("--public-url %q is not the address of the archive; write it as https://HOST or https://HOST/PATH", text)
	}
	if strings.Trim(public.Path, "/") == "" {
		public.Path = base
	}
	return public, nil
}

// originOf returns the origin of an address, empty if there is none.
func originOf(u *url.URL) string {
	if u == nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// judge returns the caller with a token that a person typed in. The digest is nil if
// the token is not of this archive.
func judge(ctx context.Context, gate *auth.Gate, token string) (*auth.Caller, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	c, err := gate.Caller(r)
	if err != nil || c.Means != auth.ByToken {
		return c, nil, err
	}
	digest := sha256.Sum256([]byte(token))
	return c, digest[:], nil
}
