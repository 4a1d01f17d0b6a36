// Package session keeps people signed in on the pages. A session is a sealed cookie:
// the archive keeps nothing about it, so several processes behind one proxy need only
// the same key. A Keeper begins and ends sessions, and knows callers by them.
package session

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"sync"
	"time"

	"oda"
	"oda/internal/auth"
)

// Config configures a Keeper.
type Config struct {
	KeyFile   string   // with the key of the seal; without it, a random one
	PublicURL *url.URL // where browsers find the archive; nil if that is not known

	// Token returns the caller with the token of this digest, nil if it is not good
	// any more.
	Token func(digest []byte) *auth.Caller

	// Key returns what is closed when the provider withdraws the key with this
	// fingerprint, and an error if that has happened or cannot be told.
	Key func(fingerprint string) (<-chan struct{}, error)
}

// Length is how long a person stays signed in: a night.
const Length = 12 * time.Hour

// cookieName is the name of the cookie with the session.
const cookieName = "oda-session"

// Keeper begins and ends sessions, and knows callers by them. It is safe for
// concurrent use.
type Keeper struct {
	cfg     Config
	seal    seal
	origins *http.CrossOriginProtection
	ctx     context.Context // until Run ends
	end     context.CancelFunc

	mu    sync.Mutex
	open  map[string]*opened // sessions that were used here, by ID
	ended ended
}

// New returns a keeper.
func New(cfg Config) (*Keeper, error) {
	s, err := newSeal(cfg.KeyFile)
	if err != nil {
		return nil, err
	}
	k := &Keeper{cfg: cfg, seal: s, origins: http.NewCrossOriginProtection(), open: make(map[string]*opened), ended: newEnded(most)}
	k.ctx, k.end = context.WithCancel(context.Background())
	if cfg.PublicURL != nil {
		if err := k.origins.AddTrustedOrigin(cfg.PublicURL.Scheme + "://" + cfg.PublicURL.Host); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// Run waits until ctx ends, and then ends what follows the open sessions.
func (k *Keeper) Run(ctx context.Context) {
	<-ctx.Done()
	k.end()
}

// ticket is what the cookie holds.
type ticket struct {
	ID     string               `json:"id"`
	Begun  time.Time            `json:"begun"`
	Ends   time.Time            `json:"ends"`
	Digest []byte               `json:"token,omitempty"` // of the token that the person signed in with
	Key    string               `json:"key,omitempty"`   // or else the fingerprint of the provider's key for it, if there was one
	User   string               `json:"user,omitempty"`  // and who it is
	Name   string               `json:"name,omitempty"`
	Role   auth.Role            `json:"role,omitempty"`
	Bound  map[string]auth.Role `json:"bound,omitempty"`
}

// holder names the token or the person of the session, for what is counted by them.
func (t *ticket) holder() string {
	if t.Digest != nil {
		return "token " + string(t.Digest)
	}
	return "person " + t.Name
}

// Begin begins a session of the caller, who has signed in with the token of this
// digest or, if it is nil, at a provider. The session ends with the credential, at
// the latest after Length.
func (k *Keeper) Begin(w http.ResponseWriter, r *http.Request, c *auth.Caller, digest []byte) error {
	now := time.Now()
	t := ticket{ID: rand.Text(), Begun: now, Ends: now.Add(Length).Truncate(time.Second), Digest: digest}
	if !c.Ends.IsZero() && c.Ends.Before(t.Ends) {
		t.Ends = c.Ends
	}
	if digest == nil {
		t.Key, t.User, t.Name, t.Role, t.Bound = c.Key, c.User, c.Name, c.Role, c.Bound
	}
	return k.set(w, r, cookieName, t, t.Ends)
}

// End ends the session of the request, if it has one.
func (k *Keeper) End(w http.ResponseWriter, r *http.Request) {
	k.unset(w, r, cookieName)
	t, ok := k.ticket(r)
	if !ok {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	more := k.ended.add(&t, time.Now())
	for id, o := range k.open {
		if id == t.ID || more && k.ended.has(&o.ticket) {
			o.end()
			delete(k.open, id)
		}
	}
}

// ticket returns the session of a request. A browser may send several cookies with
// the name, of other archives on the same host.
func (k *Keeper) ticket(r *http.Request) (t ticket, ok bool) {
	for _, c := range r.CookiesNamed(cookieName) {
		if k.seal.open(cookieName, c.Value, &t) == nil {
			return t, true
		}
	}
	return ticket{}, false
}

// Has reports whether the request has a session, even if it has ended.
func (k *Keeper) Has(r *http.Request) bool {
	_, ok := k.ticket(r)
	return ok
}

// opened is a session that was used here.
type opened struct {
	ticket
	caller *auth.Caller
	by     backing
	end    context.CancelFunc
}

// backing is what a session ends with.
type backing struct {
	token *auth.Caller    // whose token it is; nil without one
	done  <-chan struct{} // closed when the token or the key is good no more; nil: never
}

// Caller implements auth.Way.
func (k *Keeper) Caller(r *http.Request) (*auth.Caller, bool, error) {
	t, ok := k.ticket(r)
	if !ok {
		return nil, false, nil
	}
	by, err := k.backing(&t)
	if err == nil && (!time.Now().Before(t.Ends) || k.signedOut(&t)) {
		err = errOver
	}
	if err != nil {
		return nil, false, err
	}
	if !k.SameOrigin(r) {
		return nil, false, oda.Errorf(oda.CrossOrigin, "With a session one can write only from this archive's own pages. "+
			"Nothing was stored. A program sends a token instead of the session.")
	}
	return k.caller(&t, by), true, nil
}

var errOver = oda.Errorf(oda.Unauthenticated, "Your session has ended. Sign in again.")

// backing returns what the session ends with, and an error if that is no longer good.
func (k *Keeper) backing(t *ticket) (by backing, err error) {
	switch {
	case t.Digest != nil:
		if by.token = k.cfg.Token(t.Digest); by.token == nil {
			return by, errOver
		}
		by.done = by.token.Done
	case t.Key != "":
		by.done, err = k.cfg.Key(t.Key)
		if oda.CodeOf(err) == oda.Unauthenticated {
			err = errOver
		}
	}
	return by, err
}

func (k *Keeper) signedOut(t *ticket) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ended.has(t)
}

// SameOrigin reports whether a request that writes comes from one of the archive's
// own pages for certain. Any request that only reads does.
func (k *Keeper) SameOrigin(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return true
	}
	told := r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Origin") != ""
	return told && k.origins.Check(r) == nil
}

// caller returns the caller of a session. All requests of a session share it, so that
// all their streams end with it.
func (k *Keeper) caller(t *ticket, by backing) *auth.Caller {
	k.mu.Lock()
	defer k.mu.Unlock()
	if o := k.open[t.ID]; o != nil && o.by == by {
		return o.caller
	}
	c := &auth.Caller{User: t.User, Name: t.Name, Means: auth.BySession, Role: t.Role, Bound: t.Bound, Ends: t.Ends, Done: by.done}
	if by.token != nil {
		c.User, c.Name, c.Role, c.Bound = by.token.User, by.token.Name, by.token.Role, by.token.Bound
	}
	if len(k.open) >= k.ended.most && !k.makeRoom() {
		return c // its streams go on when the person signs out, until the session ends
	}
	ctx, end := context.WithDeadline(k.ctx, t.Ends)
	if by.done != nil {
		go func() {
			defer end()
			select {
			case <-by.done:
			case <-ctx.Done():
			}
		}()
	}
	c.Done = ctx.Done()
	o := &opened{*t, c, by, end}
	k.open[t.ID] = o
	context.AfterFunc(ctx, func() {
		end()
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.open[t.ID] == o {
			delete(k.open, t.ID)
		}
	})
	return c
}

// makeRoom forgets the open sessions of the token or person that has most of them, and
// ends their streams. The clients may open these again. It reports whether there is room now.
// The mutex is held.
func (k *Keeper) makeRoom() bool {
	count := make(map[string]int)
	busiest := ""
	for _, o := range k.open {
		who := o.holder()
		if count[who]++; count[who] > count[busiest] {
			busiest = who
		}
	}
	if count[busiest] < 2 { // all are different people
		return false
	}
	for id, o := range k.open {
		if o.holder() == busiest {
			o.end()
			delete(k.open, id)
		}
	}
	return true
}
