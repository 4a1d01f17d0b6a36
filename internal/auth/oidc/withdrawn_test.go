package oidc_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"oda"
	"oda/internal/auth"
	"oda/internal/auth/oidc"
	"oda/internal/test/env"
)

// loose is a provider that signs and says whatever a test wants it to.
type loose struct {
	*env.Provider

	mu      sync.Mutex
	public  []jose.JSONWebKey // what it shows
	idToken string            // what it answers to any code
}

func startLoose(t *testing.T) *loose {
	t.Helper()
	p := &loose{Provider: &env.Provider{Keys: []env.Key{env.NewKey(t, "first")}}}
	p.show(p.Keys[0])
	answer := func(w http.ResponseWriter, value any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(value); err != nil {
			t.Error(err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{
			"issuer": p.Issuer, "jwks_uri": p.Issuer + "/keys", "authorization_endpoint": p.Issuer + "/auth", "token_endpoint": p.Issuer + "/token",
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		answer(w, map[string]any{"keys": p.public})
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		answer(w, map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": p.idToken})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.Issuer = server.URL
	return p
}

// show makes these the keys that the provider has.
func (p *loose) show(keys ...env.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.public = []jose.JSONWebKey{}
	for _, key := range keys {
		p.public = append(p.public, key.Public())
	}
}

// When a key is withdrawn, the credentials end that it has signed, and no others: their
// streams end, too. That is so even if no key is left.
func TestCredentialsEndWithTheirKey(t *testing.T) {
	provider := startLoose(t)
	first, second := provider.Keys[0], env.NewKey(t, "second")
	reached := reach(t, provider.Provider)
	reached.SetPause(0)
	by := func(key env.Key) *auth.Caller {
		t.Helper()
		return good(t, reached, key.Sign(t, provider.Claims(audience, "oda-reader")))
	}
	ask := func() { // any token of an unknown key makes the archive ask
		t.Helper()
		bad(t, reached, env.NewKey(t, "stranger").Sign(t, provider.Claims(audience)), oda.Unauthenticated)
	}
	over := func(c *auth.Caller) bool {
		select {
		case <-c.Done:
			return true
		default:
			return false
		}
	}
	one := by(first)
	if done, err := reached.Key(one.Key); err != nil || done != one.Done {
		t.Errorf("the key of a caller is not known: %v", err)
	}
	provider.show(second, first, second)
	two := by(second)
	if over(one) || over(two) || one.Key == two.Key {
		t.Error("a credential has ended although its key is still there")
	}
	provider.show(second)
	ask()
	if !over(one) || over(two) {
		t.Errorf("the first key was withdrawn: %v and %v have ended", over(one), over(two))
	}
	if _, err := reached.Key(one.Key); oda.CodeOf(err) != oda.Unauthenticated {
		t.Errorf("the key that was withdrawn: %v", err)
	}
	provider.show()
	ask()
	if !over(two) {
		t.Error("no key is left, and the last is still believed")
	}
	provider.show(first)
	if again := by(first); over(again) {
		t.Error("a key that is back is not believed")
	}
}

// An ID token must have been issued to this client.
func TestAnIDTokenIsForThisClient(t *testing.T) {
	provider := startLoose(t)
	const client, back = "oda-pages", "http://127.0.0.1/signed-in"
	reached := reach(t, provider.Provider, func(c *oidc.Config) { c.ClientID = client })
	for name, test := range map[string]struct {
		claims map[string]any
		good   bool
	}{
		"one audience":                            {map[string]any{"aud": client}, true},
		"a list of one audience":                  {map[string]any{"aud": []string{client}}, true},
		"this client as the party":                {map[string]any{"aud": client, "azp": client}, true},
		"several audiences and this client":       {map[string]any{"aud": []string{"other", client}, "azp": client}, true},
		"another client as the party":             {map[string]any{"aud": client, "azp": "other"}, false},
		"several audiences and another client":    {map[string]any{"aud": []string{client, "other"}, "azp": "other"}, false},
		"several audiences and no party":          {map[string]any{"aud": []string{client, "other"}}, false},
		"a party that is no text":                 {map[string]any{"aud": client, "azp": 1}, false},
		"an empty party":                          {map[string]any{"aud": client, "azp": ""}, false},
		"another audience with this as the party": {map[string]any{"aud": "other", "azp": client}, false},
	} {
		_, attempt, err := reached.Begin(t.Context(), back)
		if err != nil {
			t.Fatal(err)
		}
		claims := provider.Claims(client, "oda-reader")
		claims["nonce"] = attempt.Nonce
		for claim, value := range test.claims {
			claims[claim] = value
		}
		provider.mu.Lock()
		provider.idToken = provider.Keys[0].Sign(t, claims)
		provider.mu.Unlock()
		c, err := reached.Finish(t.Context(), attempt, back, url.Values{"state": {attempt.State}, "code": {"x"}})
		if test.good && (err != nil || c.User != "ada") || !test.good && oda.CodeOf(err) != oda.Unauthenticated {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

// A token counts for a day at most.
func TestATokenCountsForADay(t *testing.T) {
	provider := startLoose(t)
	reached := reach(t, provider.Provider)
	now := time.Now().Truncate(time.Second)
	sign := func(issued any, ends time.Time) string {
		claims := provider.Claims(audience, "oda-reader")
		claims["iat"], claims["exp"] = issued, ends.Unix()
		return provider.Keys[0].Sign(t, claims)
	}
	year := now.AddDate(1, 0, 0)
	issued := now.Add(-23 * time.Hour)
	if c := good(t, reached, sign(issued.Unix(), year)); !c.Ends.Equal(issued.Add(24 * time.Hour)) {
		t.Errorf("a token of %v ends at %v", issued, c.Ends)
	}
	if c := good(t, reached, sign(issued.Unix(), now.Add(time.Minute))); !c.Ends.Equal(now.Add(time.Minute)) {
		t.Errorf("a token that ends earlier ends at %v", c.Ends)
	}
	for name, issued := range map[string]any{
		"yesterday": now.Add(-24*time.Hour - time.Second).Unix(), "1970": 0, "before": -1e300, "never": nil, "some time": "today", "tomorrow": now.Add(time.Hour).Unix(), "too late": 1e300,
	} {
		if _, err := caller(t, reached, sign(issued, year)); oda.CodeOf(err) != oda.Unauthenticated || strings.Contains(err.Error(), "expired") {
			t.Errorf("issued %s: %v", name, err)
		}
	}
}
