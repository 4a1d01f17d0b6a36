package httpapi

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"oda"
	"oda/archive"
	"oda/internal/auth"
)

// admit finds out who is calling, and returns an error unless they may do what the
// route does. It comes before all other checks, so that strangers learn nothing.
func (c *call) admit(rt *route) error {
	if rt.role == auth.Anyone {
		return nil
	}
	caller, err := c.api.cfg.Gate.Caller(c.r)
	if err != nil {
		return err
	}
	c.caller, c.user = caller, caller.User
	if c.api.cfg.Local && !c.api.ownName(c.r.Host) {
		return oda.Errorf(oda.Forbidden, "This archive is open to the programs of its machine, and %.100s may be the name of another. "+
			"Call it as localhost or 127.0.0.1, or ask the operator to allow that name (--public-url) or any name (--insecure), or to set up a way to know callers.", c.r.Host)
	}
	c.need = rt.role
	if rt.create != auth.NoRole && c.createsOnly() {
		c.need = rt.create
	}
	if err := caller.Check(c.need); err != nil {
		return err
	}
	if c.api.cfg.ReadOnly && rt.role > auth.Reader && c.r.Method != http.MethodGet && c.r.Method != http.MethodHead {
		return oda.Errorf(oda.Forbidden, "This archive shows an export, so nothing can be stored in it. Store into the archive that the export is from.")
	}
	if rt.page && !c.api.cfg.Gate.IsOpen() {
		c.r = c.r.WithContext(auth.With(c.r.Context(), caller))
	}
	return nil
}

// ownName reports whether the host that a request names can be this machine. A stranger
// can make another name lead here, and browsers then take the archive for a part of the
// stranger's site.
func (a *API) ownName(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	if !strings.Contains(name, ".") || strings.HasSuffix(name, ".localhost") {
		return true
	}
	_, err = netip.ParseAddr(name)
	_, public, _ := strings.Cut(a.cfg.Origin, "://")
	return err == nil || strings.EqualFold(host, public)
}

// createsOnly reports whether the request stores an entity only if it is new.
func (c *call) createsOnly() bool {
	none := condition(c.r.Header).NoneMatch
	return none != nil && none.Any
}

// namesUser reports whether the request itself may name the acting user in
// X-Forwarded-User, because nobody knows better.
func (c *call) namesUser() bool { return c.caller == nil || c.caller.Means == auth.Open }

// telescopes returns the telescopes for which the caller may write, nil if any.
func (c *call) telescopes() *oda.Telescopes { return c.caller.Where(c.need) }

// asAllowed writes as an editor if the caller is one for what is written, else as a
// recorder, who may only write to what the recorder has created. Where that makes no
// difference, it writes with the role that the operation needs.
func asAllowed[T any](c *call, w archive.Write, do func(archive.Write) (T, error)) (T, error) {
	if !c.own {
		return do(w)
	}
	if c.caller.Check(auth.Editor) == nil {
		w.Telescopes = c.caller.Where(auth.Editor)
		if done, err := do(w); w.Telescopes == nil || oda.CodeOf(err) != oda.Forbidden {
			return done, err
		}
	}
	w.Telescopes, w.Own = c.caller.Where(auth.Recorder), true
	return do(w)
}

// forPeople returns the request for the page about an error. It carries the caller if one
// is known, even if the request did not need one.
func (c *call) forPeople() *http.Request {
	if c.api.cfg.Gate.IsOpen() {
		return c.r
	}
	caller := c.caller
	if caller == nil {
		caller, _ = c.api.cfg.Gate.Caller(c.r)
	}
	if caller == nil {
		return c.r
	}
	return c.r.WithContext(auth.With(c.r.Context(), caller))
}

// whileAllowed lets a request that takes long end with the caller's credential.
func (c *call) whileAllowed() (end func()) {
	if c.caller.Done == nil && c.caller.Ends.IsZero() {
		return func() {}
	}
	request := c.r
	ctx, cancel := context.WithCancel(request.Context())
	c.r = request.WithContext(ctx)
	var ends <-chan time.Time
	if !c.caller.Ends.IsZero() {
		ends = time.After(time.Until(c.caller.Ends))
	}
	go func() {
		defer cancel()
		select {
		case <-c.caller.Done: // never if it is nil
		case <-ends:
		case <-ctx.Done():
		}
	}()
	return func() {
		cancel()
		c.r = request
	}
}

// lapsed reports whether the caller's credential has ended.
func (c *call) lapsed() bool {
	if c.caller == nil {
		return false
	}
	if ends := c.caller.Ends; !ends.IsZero() && !time.Now().Before(ends) {
		return true
	}
	select {
	case <-c.caller.Done: // never if it is nil
		return true
	default:
		return false
	}
}
