package auth

import (
	"context"
	"time"

	"oda"
)

// Caller is who sent a request. It may be shared by many requests and must not be
// changed.
type Caller struct {
	User  string          // the acting user; with an open archive, empty if the request names none
	Name  string          // of the credential: the token's name, the subject; the same as User unless the token lets callers name one
	Means Means           // how the caller is known
	Role  Role            // the highest role that is not bound to a telescope
	Bound map[string]Role // the roles that are bound, by telescope
	Ends  time.Time       // when the credential ends; zero: never
	Done  <-chan struct{} // closed when the credential ends or is revoked; nil: never
	Key   string          // the fingerprint of the provider's key that signed the credential; empty without one
}

// Means is how a caller is known.
type Means string

// The means.
const (
	ByToken   Means = "token"
	ByOIDC    Means = "oidc"
	ByProxy   Means = "proxy"
	BySession Means = "session"
	Open      Means = "open" // not at all: the archive is open
)

// highest returns the highest role that the caller has anywhere.
func (c *Caller) highest() Role {
	role := c.Role
	for _, bound := range c.Bound {
		role = max(role, bound)
	}
	return role
}

// Check returns an error unless the caller has the role, at least for some
// telescope.
func (c *Caller) Check(need Role) error {
	if c.Role >= need || c.highest() >= need {
		return nil
	}
	if c.highest() < Reader {
		return oda.Errorf(oda.Forbidden, "This needs the role %s, and %s has no role in this archive. "+
			"Ask the operator for it.", need, c.Name)
	}
	return oda.Errorf(oda.Forbidden, "This needs the role %s, and %s has only the role %s. "+
		"Ask the operator for it.", need, c.Name, c.highest())
}

// Where returns the telescopes for which the caller has the role, nil if it is not
// bound to any.
func (c *Caller) Where(need Role) *oda.Telescopes {
	if c.Role >= need {
		return nil
	}
	var names []string
	for telescope, role := range c.Bound {
		if role >= need {
			names = append(names, telescope)
		}
	}
	return oda.NewTelescopes(need.String(), names)
}

type callerKey struct{}

// With returns a context that carries the caller of a request, for pages.
func With(ctx context.Context, c *Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// Of returns the caller that the context carries, nil if there is none.
func Of(ctx context.Context) *Caller {
	c, _ := ctx.Value(callerKey{}).(*Caller)
	return c
}
