package env

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"oda/internal/test/fault"
	"oda/internal/test/must"
)

// Provider is a certified OpenID provider, oidc-provider, in its own process. It
// always has the same address. Its people sign in with any password; for each there
// is also a machine of that name, which gets tokens with the secret.
type Provider struct {
	Issuer    string              // its address
	Secret    string              // of all clients; that of the pages is "pages"
	Keys      []Key               // the first one signs
	People    map[string][]string // the roles by name
	Redirects []string            // where the pages may come back to
	Lifetime  time.Duration       // of its tokens
	UserInfo  bool                // the roles are not in the ID token, but it tells them when asked

	tb      testing.TB
	port    int
	process *fault.Process
}

// Key is a key of a provider.
type Key struct{ jose.JSONWebKey }

// NewKey makes a key with this identifier.
func NewKey(tb testing.TB, id string) Key {
	tb.Helper()
	private := must.Get(rsa.GenerateKey(rand.Reader, 2048))(tb)
	return Key{jose.JSONWebKey{Key: private, KeyID: id, Algorithm: string(jose.RS256), Use: "sig"}}
}

// Sign returns a token with these claims, signed as the provider would. The function
// may change the headers.
func (k Key) Sign(tb testing.TB, claims map[string]any, headers ...func(*jose.SignerOptions)) string {
	tb.Helper()
	options := (&jose.SignerOptions{}).WithType("at+jwt").WithHeader("kid", k.KeyID)
	for _, change := range headers {
		change(options)
	}
	return Signed(tb, jose.SigningKey{Algorithm: jose.SignatureAlgorithm(k.Algorithm), Key: k.Key}, options, claims)
}

// Signed returns a token with these claims.
func Signed(tb testing.TB, key jose.SigningKey, options *jose.SignerOptions, claims map[string]any) string {
	tb.Helper()
	signer := must.Get(jose.NewSigner(key, options))(tb)
	text := must.Get(json.Marshal(claims))(tb)
	signed := must.Get(signer.Sign(text))(tb)
	token := must.Get(signed.CompactSerialize())(tb)
	return token
}

// NewProvider returns a provider that does not run yet. It ends with the test.
func NewProvider(tb testing.TB) *Provider {
	tb.Helper()
	port := must.Get(fault.FreePort())(tb)
	p := &Provider{
		Issuer: fmt.Sprintf("http://127.0.0.1:%d", port), Secret: "secret-of-all-clients", Keys: []Key{NewKey(tb, "first")},
		People: map[string][]string{}, Lifetime: time.Hour, tb: tb, port: port,
	}
	tb.Cleanup(p.Stop)
	return p
}

// Start starts the provider and waits until it answers.
func (p *Provider) Start() {
	p.tb.Helper()
	folder := filepath.Join(repository(p.tb), "internal", "test", "env", "provider")
	if _, err := os.Stat(filepath.Join(folder, "node_modules")); err != nil {
		p.tb.Fatalf("this test needs oidc-provider: run \"make setup\" (%v)", err)
	}
	text, err := json.Marshal(map[string]any{
		"port": p.port, "secret": p.Secret, "keys": p.Keys, "people": p.People,
		"redirects": append([]string{"http://127.0.0.1/"}, p.Redirects...), "ttl": int(p.Lifetime.Seconds()), "userinfo": p.UserInfo, "alg": jose.RS256,
	})
	settings := filepath.Join(p.tb.TempDir(), "provider.json")
	if err == nil {
		err = os.WriteFile(settings, text, 0o600)
	}
	must.Do(p.tb, err)
	cmd := exec.Command("node", filepath.Join(folder, "provider.mjs"), settings)
	var complaints Journal
	cmd.Stderr = &complaints
	if p.process, err = fault.Start(cmd); err != nil {
		p.tb.Fatalf("start the OpenID provider: %v", err)
	}
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(10 * time.Millisecond) {
		if conn, err := net.Dial("tcp", strings.TrimPrefix(p.Issuer, "http://")); err == nil {
			_ = conn.Close()
			return
		}
		if !p.process.Running() || time.Now().After(deadline) {
			p.tb.Fatalf("the OpenID provider does not answer:\n%s", complaints.String())
		}
	}
}

// Stop ends the provider, as a machine that loses its power does.
func (p *Provider) Stop() {
	if p.process != nil {
		p.process.Kill()
	}
}

// Restart starts the provider again with other keys.
func (p *Provider) Restart(keys ...Key) {
	p.tb.Helper()
	p.Stop()
	p.Keys = keys
	p.Start()
}

// Token returns a token that the provider has issued to a machine.
func (p *Provider) Token(name, audience string) string {
	p.tb.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "resource": {audience}, "client_id": {name}, "client_secret": {p.Secret}}
	var answer struct {
		Token string `json:"access_token"`
	}
	text := p.ask(http.MethodPost, "/token", form.Encode())
	if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Token == "" {
		p.tb.Fatalf("the OpenID provider gives no token: %s (%v)", text, err)
	}
	return answer.Token
}

// Fetched returns how often the provider was asked for its keys since it started.
func (p *Provider) Fetched() int {
	p.tb.Helper()
	n := must.Get(strconv.Atoi(p.ask(http.MethodGet, "/fetched", "")))(p.tb)
	return n
}

// Claims are those of a good token with the roles: what a test spoils.
func (p *Provider) Claims(audience string, roles ...string) map[string]any {
	now := time.Now()
	return map[string]any{
		"iss": p.Issuer, "aud": audience, "sub": "subject-1", "preferred_username": "ada", "groups": roles,
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
}

func (p *Provider) ask(method, path, form string) string {
	p.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	request := must.Get(http.NewRequestWithContext(ctx, method, p.Issuer+path, strings.NewReader(form)))(p.tb)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer := must.Get(http.DefaultClient.Do(request))(p.tb)
	reply := must.Get(Read(answer))(p.tb)
	return reply.Text()
}

// Login signs a person in as a browser does, from the address that the pages send
// them to, and returns the address that the provider sends them back to. The client
// must keep cookies.
func (p *Provider) Login(client *http.Client, address, person string) (back string) {
	p.tb.Helper()
	form := url.Values{"prompt": {"login"}, "login": {person}, "password": {"any"}}
	visitor := *client
	visitor.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for method := http.MethodGet; ; {
		body := ""
		if method == http.MethodPost {
			body = form.Encode()
		}
		request := must.Get(http.NewRequest(method, address, strings.NewReader(body)))(p.tb)
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		answer := must.Get(visitor.Do(request))(p.tb)
		page := must.Get(Read(answer))(p.tb)
		switch to, err := answer.Location(); {
		case err == nil && !strings.HasPrefix(to.String(), p.Issuer):
			return to.String()
		case err == nil:
			method, address = http.MethodGet, to.String()
		case method == http.MethodGet && strings.Contains(page.Text(), `name="login"`):
			method = http.MethodPost // the form leads to its own address
		default:
			p.tb.Fatalf("%s %s answers %d:\n%s", method, address, page.Status, page.Body)
		}
	}
}
