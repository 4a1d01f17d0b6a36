package oidc_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
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

const audience = "urn:archive"

// reach starts to ask the provider. It stops with the test.
func reach(t *testing.T, p *env.Provider, configure ...func(*oidc.Config)) *oidc.Provider {
	t.Helper()
	cfg := oidc.Config{Issuer: p.Issuer, Audience: audience}
	for _, change := range configure {
		change(&cfg)
	}
	if err := cfg.Valid(); err != nil {
		t.Fatal(err)
	}
	reached := oidc.New(cfg, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { reached.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return reached
}

// start starts a provider.
func start(t *testing.T) *env.Provider {
	t.Helper()
	p := env.NewProvider(t)
	p.People["scheduler"] = []string{"staff", "oda-editor:ska_mid", "oda-reader"}
	p.Start()
	return p
}

func caller(t *testing.T, p *oidc.Provider, token string) (*auth.Caller, error) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	c, ok, err := p.Caller(r)
	if ok != (err == nil) {
		t.Fatalf("the way says %v and %v", ok, err)
	}
	return c, err
}

func good(t *testing.T, p *oidc.Provider, token string) *auth.Caller {
	t.Helper()
	c, err := caller(t, p, token)
	if err != nil {
		t.Fatalf("the token is refused: %v", err)
	}
	return c
}

func bad(t *testing.T, p *oidc.Provider, token string, want oda.Code) {
	t.Helper()
	if c, err := caller(t, p, token); oda.CodeOf(err) != want {
		t.Fatalf("the token gives %+v, %v; want %s", c, err, want)
	}
}

func TestATokenOfTheProviderIsGood(t *testing.T) {
	provider := start(t)
	c := good(t, reach(t, provider), provider.Token("scheduler", audience))
	if c.User != "scheduler" || c.Means != auth.ByOIDC || c.Role != auth.Reader || len(c.Bound) != 1 || c.Bound["ska_mid"] != auth.Editor {
		t.Errorf("the caller is %+v", c)
	}
	if left := time.Until(c.Ends); left > provider.Lifetime || left < provider.Lifetime-time.Minute {
		t.Errorf("the token ends in %v", left)
	}
}

func TestATokenIsJudgedByEverythingItSays(t *testing.T) {
	provider := start(t)
	reached := reach(t, provider)
	key := provider.Keys[0]
	// with returns the claims of a good token, changed.
	with := func(changes map[string]any) map[string]any {
		claims := provider.Claims(audience, "oda-reader")
		maps.Copy(claims, changes)
		return claims
	}
	without := func(name string) map[string]any {
		claims := with(nil)
		delete(claims, name)
		return claims
	}
	at := func(after time.Duration) int64 { return time.Now().Add(after).Unix() }
	header := func(name jose.HeaderKey, value any) func(*jose.SignerOptions) {
		return func(o *jose.SignerOptions) { o.WithHeader(name, value) }
	}
	for name, token := range map[string]string{
		"as the provider signs it":            key.Sign(t, with(nil)),
		"for several audiences":               key.Sign(t, with(map[string]any{"aud": []string{"other", audience}})),
		"a clock that is a little ahead":      key.Sign(t, with(map[string]any{"nbf": at(30 * time.Second), "iat": at(30 * time.Second)})),
		"without the identifier of its key":   key.Sign(t, with(nil), func(o *jose.SignerOptions) { delete(o.ExtraHeaders, "kid") }),
		"a provider that names no type":       key.Sign(t, with(nil), func(o *jose.SignerOptions) { delete(o.ExtraHeaders, jose.HeaderType) }),
		"a time with a fraction":              key.Sign(t, with(map[string]any{"exp": float64(at(time.Hour)) + .5})),
		"a user who has no name of that kind": key.Sign(t, without("preferred_username")),
	} {
		if _, err := caller(t, reached, token); err != nil {
			t.Errorf("%s: refused: %v", name, err)
		}
	}

	genuine := key.Sign(t, with(nil))
	parts := strings.Split(genuine, ".")
	public := &key.Key.(*rsa.PrivateKey).PublicKey
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	asPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	asJWK, err := json.Marshal(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	hmac := func(secret []byte) string {
		options := (&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", key.KeyID)
		return env.Signed(t, jose.SigningKey{Algorithm: jose.HS256, Key: secret}, options, with(nil))
	}
	stranger := env.NewKey(t, key.KeyID)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	none := func(alg string) string {
		head := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"alg":%q,"typ":"JWT"}`, alg))
		return head + "." + parts[1] + "."
	}
	changed, err := json.Marshal(with(map[string]any{"groups": []string{"oda-admin"}}))
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{
		"expired":                          key.Sign(t, with(map[string]any{"exp": at(-time.Second)})),
		"without an end":                   key.Sign(t, without("exp")),
		"without the time of its issue":    key.Sign(t, without("iat")),
		"an end that is text":              key.Sign(t, with(map[string]any{"exp": "tomorrow"})),
		"not valid yet":                    key.Sign(t, with(map[string]any{"nbf": at(5 * time.Minute)})),
		"issued in the future":             key.Sign(t, with(map[string]any{"iat": at(5 * time.Minute)})),
		"for another audience":             key.Sign(t, with(map[string]any{"aud": "urn:other"})),
		"for an audience that begins so":   key.Sign(t, with(map[string]any{"aud": audience + "2"})),
		"for nobody":                       key.Sign(t, without("aud")),
		"of another issuer":                key.Sign(t, with(map[string]any{"iss": "https://elsewhere.example"})),
		"of nearly the issuer":             key.Sign(t, with(map[string]any{"iss": provider.Issuer + "/"})),
		"without an issuer":                key.Sign(t, without("iss")),
		"without a subject":                key.Sign(t, map[string]any{"iss": provider.Issuer, "aud": audience, "iat": at(0), "exp": at(time.Hour)}),
		"the algorithm none":               none("none"),
		"the algorithm None":               none("None"),
		"HMAC with the public key as PEM":  hmac(asPEM),
		"HMAC with the public key as DER":  hmac(der),
		"HMAC with the public key as JWK":  hmac(asJWK),
		"another key of the same name":     stranger.Sign(t, with(nil)),
		"a key that it brings with it":     stranger.Sign(t, with(nil), header("jwk", stranger.Public())),
		"a key that it tells where to get": stranger.Sign(t, with(nil), header("jku", "http://127.0.0.1:1/keys")),
		"another kind of key": env.Signed(t, jose.SigningKey{Algorithm: jose.ES256, Key: curve},
			(&jose.SignerOptions{}).WithHeader("kid", key.KeyID), with(nil)),
		"another algorithm of the key": env.Signed(t, jose.SigningKey{Algorithm: jose.RS512, Key: key.Key},
			(&jose.SignerOptions{}).WithHeader("kid", key.KeyID), with(nil)),
		"changed":                   parts[0] + "." + base64.RawURLEncoding.EncodeToString(changed) + "." + parts[2],
		"without its signature":     parts[0] + "." + parts[1] + ".",
		"for ending a session":      key.Sign(t, with(nil), header(jose.HeaderType, "logout+jwt")),
		"that demands what is new":  key.Sign(t, with(nil), header("crit", []string{"new"})),
		"nothing":                   "..",
		"nothing that is like JSON": "e30.e30.e30",
	} {
		if c, err := caller(t, reached, token); oda.CodeOf(err) != oda.Unauthenticated {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	good(t, reached, genuine)
}

func TestAProviderMaySignWithAnyKindOfKey(t *testing.T) {
	provider := start(t)
	reached := reach(t, provider)
	reached.SetPause(0)
	newKeys := func() []env.Key {
		p256, err256 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		p384, err384 := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
		_, edwards, err := ed25519.GenerateKey(rand.Reader)
		if err := errors.Join(err256, err384, err); err != nil {
			t.Fatal(err)
		}
		pss := env.NewKey(t, "PS256")
		pss.Algorithm = string(jose.PS256)
		keys := []env.Key{pss}
		for algorithm, private := range map[jose.SignatureAlgorithm]any{jose.ES256: p256, jose.ES384: p384, jose.EdDSA: edwards} {
			keys = append(keys, env.Key{JSONWebKey: jose.JSONWebKey{Key: private, KeyID: string(algorithm), Algorithm: string(algorithm), Use: "sig"}})
		}
		return keys
	}
	keys := newKeys()
	provider.Restart(append(keys, provider.Keys[0])...)
	for _, key := range keys {
		if c := good(t, reached, key.Sign(t, provider.Claims(audience, "oda-editor"))); c.Role != auth.Editor {
			t.Errorf("%s: the caller is %+v", key.KeyID, c)
		}
	}
	for _, stranger := range newKeys() {
		bad(t, reached, stranger.Sign(t, provider.Claims(audience, "oda-editor")), oda.Unauthenticated)
	}
}

func TestRolesAreFoundInTheirClaim(t *testing.T) {
	provider := start(t)
	sign := func(changes map[string]any) string {
		claims := provider.Claims(audience)
		maps.Copy(claims, changes)
		return provider.Keys[0].Sign(t, claims)
	}
	for name, test := range map[string]struct {
		claim  string
		claims map[string]any
	}{
		"roles":              {"", map[string]any{"roles": []string{"oda-editor"}}},
		"groups":             {"", map[string]any{"groups": []any{"x", 1, "oda-editor"}}},
		"one role":           {"", map[string]any{"roles": "oda-editor"}},
		"a claim by name":    {"https://archive.example/roles", map[string]any{"https://archive.example/roles": []string{"oda-editor"}}},
		"a claim within one": {"realm_access.roles", map[string]any{"realm_access": map[string]any{"roles": []string{"oda-editor"}}}},
		"scopes":             {"scope", map[string]any{"scope": "openid oda-editor"}},
	} {
		reached := reach(t, provider, func(c *oidc.Config) { c.Roles = test.claim })
		if c := good(t, reached, sign(test.claims)); c.Role != auth.Editor {
			t.Errorf("%s: the role is %v", name, c.Role)
		}
	}
	reached := reach(t, provider, func(c *oidc.Config) { c.Roles = "mine" })
	c := good(t, reached, sign(map[string]any{"groups": []string{"oda-admin"}, "mine": []string{"editor", "ODA-admin"}}))
	if c.Role != auth.NoRole || oda.CodeOf(c.Check(auth.Reader)) != oda.Forbidden {
		t.Errorf("without a role in its claim, the caller is %+v", c)
	}
}

func TestKeysAreRotated(t *testing.T) {
	provider := start(t)
	reached := reach(t, provider)
	reached.SetPause(0)
	first, second := provider.Keys[0], env.NewKey(t, "second")
	before := provider.Token("scheduler", audience)
	old := first.Sign(t, provider.Claims(audience, "oda-reader"))
	good(t, reached, before)

	provider.Restart(second, first)
	good(t, reached, provider.Token("scheduler", audience))
	good(t, reached, before)
	good(t, reached, old)

	// A key that is withdrawn is not believed any more, nor what was judged by it.
	provider.Restart(second)
	bad(t, reached, env.NewKey(t, "third").Sign(t, provider.Claims(audience)), oda.Unauthenticated) // makes the archive ask
	bad(t, reached, before, oda.Unauthenticated)
	bad(t, reached, old, oda.Unauthenticated)
	good(t, reached, provider.Token("scheduler", audience))
}

func TestWhileTheProviderIsDown(t *testing.T) {
	provider := env.NewProvider(t)
	provider.People["scheduler"] = []string{"oda-reader"}
	reached := reach(t, provider)
	reached.SetPause(0)
	token := provider.Keys[0].Sign(t, provider.Claims(audience, "oda-reader"))
	bad(t, reached, token, oda.Unavailable)

	provider.Start() // it comes, and nobody restarts the archive
	good(t, reached, provider.Token("scheduler", audience))

	provider.Stop()
	good(t, reached, token)
	good(t, reached, provider.Keys[0].Sign(t, provider.Claims(audience, "oda-editor"))) // one that was never seen
	bad(t, reached, env.NewKey(t, "unknown").Sign(t, provider.Claims(audience)), oda.Unavailable)
	bad(t, reached, env.NewKey(t, provider.Keys[0].KeyID).Sign(t, provider.Claims(audience)), oda.Unauthenticated)

	next := env.NewKey(t, "next")
	provider.Restart(next)
	good(t, reached, provider.Token("scheduler", audience))
}

// Anyone can make up tokens with unknown keys. They must not become as many requests
// to the provider.
func TestMadeUpTokensDoNotFloodTheProvider(t *testing.T) {
	provider := start(t)
	reached := reach(t, provider)
	good(t, reached, provider.Token("scheduler", audience))
	before := provider.Fetched()
	stranger := env.NewKey(t, "")
	var sending sync.WaitGroup
	began := time.Now()
	for i := range 8 {
		sending.Go(func() {
			for j := range 25 {
				stranger := stranger
				stranger.KeyID = fmt.Sprintf("%d-%d", i, j)
				if _, err := caller(t, reached, stranger.Sign(t, provider.Claims(audience))); oda.CodeOf(err) != oda.Unauthenticated {
					t.Errorf("a made-up token gives %v", err)
				}
			}
		})
	}
	sending.Wait()
	if asked, most := provider.Fetched()-before, 1+int(time.Since(began)/(5*time.Second)); asked > most {
		t.Errorf("200 made-up tokens became %d requests to the provider, want at most %d", asked, most)
	}
}

// A token that was good is remembered, but not for longer than it is good.
func TestATokenIsRefusedWhenItHasEnded(t *testing.T) {
	provider := start(t)
	reached := reach(t, provider)
	claims := provider.Claims(audience, "oda-reader")
	ends := time.Now().Add(3 * time.Second).Truncate(time.Second)
	claims["exp"] = ends.Unix()
	token := provider.Keys[0].Sign(t, claims)
	for time.Now().Before(ends.Add(-500 * time.Millisecond)) {
		good(t, reached, token)
		time.Sleep(100 * time.Millisecond)
	}
	for time.Now().Before(ends) {
		time.Sleep(10 * time.Millisecond)
	}
	bad(t, reached, token, oda.Unauthenticated)
}

func TestTheIssuerMustBeAnAddress(t *testing.T) {
	for issuer, ok := range map[string]bool{
		"https://login.example/realms/obs": true, "http://127.0.0.1:8180": true, "http://localhost:8180/x": true, "http://[::1]:1": true,
		"http://login.example": false, "login.example": false, "https://": false, "https://x/?a=b": false, "ftp://x": false,
	} {
		if err := (&oidc.Config{Issuer: issuer, Audience: "a"}).Valid(); (err == nil) != ok {
			t.Errorf("%s: %v", issuer, err)
		}
	}
}

func BenchmarkATokenThatIsKnown(b *testing.B) {
	provider := env.NewProvider(b)
	provider.Start()
	reached := oidc.New(oidc.Config{Issuer: provider.Issuer, Audience: audience}, slog.New(slog.DiscardHandler))
	ctx := b.Context()
	go reached.Run(ctx)
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+provider.Keys[0].Sign(b, provider.Claims(audience, "oda-reader")))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok, err := reached.Caller(r); !ok {
			b.Fatal(err)
		}
	}
}
