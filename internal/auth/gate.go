package auth

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"

	"oda"
)

// Config says how callers are known. Without any way the archive is open.
type Config struct {
	Tokens   string         // file with tokens
	Proxies  []netip.Prefix // addresses whose X-Forwarded-User and X-Forwarded-Groups are believed
	Bearers  []Way          // for bearer tokens that are not in the file
	Sessions []Way          // asked last, if there are no headers to judge
	Insecure bool           // may be open on any address
}

// Way is one way to know callers. It returns false if it has nothing to say about
// the request, and an error if the request claims to be known by it but is not. If
// it has a method Run, that is called while the archive serves.
type Way interface {
	Caller(r *http.Request) (*Caller, bool, error)
}

// Gate tells who is calling. It is safe for concurrent use.
type Gate struct{ ways []Way }

// NewGate returns a gate that asks the ways in turn. Without any it is open.
func NewGate(ways ...Way) *Gate { return &Gate{ways} }

// New returns a gate that knows callers in the configured ways. A bearer token is
// judged first, and if it is bad, nothing else is asked.
func New(cfg Config, log *slog.Logger) (*Gate, error) {
	ways := cfg.Bearers
	if cfg.Tokens != "" {
		t, err := openTokens(cfg.Tokens, log)
		if err != nil {
			return nil, err
		}
		ways = append([]Way{t}, ways...)
	}
	after := cfg.Sessions
	if len(cfg.Proxies) > 0 {
		after = append([]Way{proxy(cfg.Proxies)}, after...)
	}
	if len(ways)+len(after) == 0 {
		return NewGate(), nil
	}
	return NewGate(append(append(ways, strangers{}), after...)...), nil
}

// IsOpen reports whether everybody may do everything.
func (g *Gate) IsOpen() bool { return len(g.ways) == 0 }

// Run lets the ways follow what changes, until ctx ends.
func (g *Gate) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for _, way := range g.ways {
		if w, ok := way.(interface{ Run(ctx context.Context) }); ok {
			running.Go(func() { w.Run(ctx) })
		}
	}
}

// open is every caller of an open archive. The acting user is up to the request.
var open = &Caller{Means: Open, Role: Admin}

// Caller returns who sent the request. If the request has no credentials or bad
// ones, the error has the code oda.Unauthenticated.
func (g *Gate) Caller(r *http.Request) (*Caller, error) {
	if g.IsOpen() {
		return open, nil
	}
	for _, way := range g.ways {
		if c, ok, err := way.Caller(r); ok || err != nil {
			return c, err
		}
	}
	return nil, oda.Errorf(oda.Unauthenticated, "This archive must know who is calling, and the request has no credentials. "+
		"Send a token with the header \"Authorization: Bearer TOKEN\".")
}

// Holder returns the caller whose token has this SHA-256, nil if there is no such
// token or it is not good any more.
func (g *Gate) Holder(sum [sha256.Size]byte) *Caller {
	for _, way := range g.ways {
		if t, ok := way.(*tokens); ok {
			return t.holder(sum)
		}
	}
	return nil
}

// Bearer returns the bearer token of a request, and whether it has one.
func Bearer(r *http.Request) (token string, given bool, err error) {
	value, err := one(r.Header, "Authorization")
	if err != nil {
		return "", false, err
	}
	scheme, token, _ := strings.Cut(value, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", false, nil
	}
	return strings.TrimSpace(token), true, nil
}

// BadBearer returns the error for a bearer token that is not valid. The format and
// its arguments say why.
func BadBearer(format string, args ...any) error {
	return oda.Errorf(oda.Unauthenticated, "The bearer token is not valid: %s. Nothing was stored. "+
		"Ask the operator for a new one.", fmt.Sprintf(format, args...))
}

// strangers refuses bearer tokens that no way before it knows: a credential is never
// ignored.
type strangers struct{}

func (strangers) Caller(r *http.Request) (*Caller, bool, error) {
	_, given, err := Bearer(r)
	if given {
		err = BadBearer("this archive does not know it")
	}
	return nil, false, err
}
