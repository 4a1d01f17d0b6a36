package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"oda"
	"oda/internal/auth"
	"oda/internal/auth/oidc"
	"oda/internal/auth/session"
)

// SignIn is how people sign in on the pages: at a provider, or else with a token.
type SignIn struct {
	Sessions *session.Keeper
	Provider *oidc.Provider // nil if people sign in with a token
	Back     string         // the address to which the provider sends people back
	// Token returns the caller with a token. The digest is nil if the token is not of
	// this archive, and so never changes.
	Token func(ctx context.Context, token string) (c *auth.Caller, digest []byte, err error)
}

// SignInPages are the pages to sign in and out, by method and path below the base
// path. They are open to everybody. Those that set a cookie are directly below the
// base path. Where nobody signs in on the pages, because a proxy knows who is calling,
// only what the page about that loads is left.
func (s *Site) SignInPages() map[string]handler {
	switch {
	case !s.cfg.Closed:
		return nil
	case s.cfg.SignIn == nil:
		return map[string]handler{"GET /sign-in/ui/{file}": s.signInAsset}
	}
	return map[string]handler{
		"GET /sign-in":           s.signIn,
		"POST /sign-in":          s.signInByToken,
		"GET /signed-in":         s.signedIn,
		"GET /sign-out":          s.signedOut,
		"POST /sign-out":         s.signOut,
		"GET /sign-in/ui/{file}": s.signInAsset,
	}
}

// signInView is the data for the page to sign in.
type signInView struct {
	frame
	Message string
	To      string // where to go on, relative to the base
	Host    string // of the provider; empty if people sign in with a token
}

// signInPage serves the page to sign in.
func (s *Site) signInPage(w http.ResponseWriter, r *http.Request, status int, message, to string) error {
	view := signInView{frame: s.newFrame(r, "Sign in", ""), Message: message, To: to}
	if p := s.cfg.SignIn.Provider; p != nil {
		view.Host = p.Host()
	}
	return s.unkept(w, status, "signin", view)
}

// signIn sends a person to the provider, or shows the form for a token.
func (s *Site) signIn(w http.ResponseWriter, r *http.Request) error {
	to := r.FormValue("to")
	if s.cfg.SignIn.Provider == nil {
		return s.signInPage(w, r, http.StatusOK, "", to)
	}
	address, attempt, err := s.cfg.SignIn.Provider.Begin(r.Context(), s.cfg.SignIn.Back)
	if err != nil {
		return err
	}
	if err := s.cfg.SignIn.Sessions.Leave(w, r, noteName(attempt.State), journey{attempt, here(to)}); err != nil {
		return err
	}
	redirect(w, address)
	return nil
}

// journey is a person on the way to the provider and back.
type journey struct {
	oidc.Attempt
	To string `json:"to"`
}

// noteName is the name of the cookie for a journey. Each has its own: people open
// several pages at once.
func noteName(state string) string { return "oda-sign-in-" + state[:min(len(state), 10)] }

// signedIn is where the provider sends people back.
func (s *Site) signedIn(w http.ResponseWriter, r *http.Request) error {
	if s.cfg.SignIn.Provider == nil {
		return oda.Errorf(oda.NoSuchPath, "Nobody signs in with an OpenID provider here. Sign in on the page for that.")
	}
	answer := r.URL.Query()
	var j journey
	if !s.cfg.SignIn.Sessions.Take(w, r, noteName(answer.Get("state")), &j) {
		return s.signInPage(w, r, http.StatusUnauthorized, "That took too long, or was begun in another browser. Sign in again.", "")
	}
	c, err := s.cfg.SignIn.Provider.Finish(r.Context(), j.Attempt, s.cfg.SignIn.Back, answer)
	if e, ok := errors.AsType[*oda.Error](err); ok && e.Code == oda.Unauthenticated {
		return s.signInPage(w, r, http.StatusUnauthorized, e.Detail, j.To)
	}
	if err != nil {
		return err
	}
	return s.begin(w, r, c, nil, j.To)
}

// signInByToken signs in a person who has filled in the form.
func (s *Site) signInByToken(w http.ResponseWriter, r *http.Request) error {
	if s.cfg.SignIn.Provider != nil {
		return oda.Errorf(oda.Forbidden, "On this archive's pages one signs in at %s, not with a token.", s.cfg.SignIn.Provider.Host())
	}
	if err := s.ownForm(w, r); err != nil {
		return err
	}
	to := r.PostFormValue("to")
	c, digest, err := s.cfg.SignIn.Token(r.Context(), strings.TrimSpace(r.PostFormValue("token")))
	if err != nil {
		if oda.CodeOf(err) != oda.Unauthenticated {
			return err
		}
		return s.signInPage(w, r, http.StatusUnauthorized, "This token is not valid: it is misspelt, has expired or was revoked.", to)
	}
	return s.begin(w, r, c, digest, to)
}

// begin begins a session and leads back to where the person was.
func (s *Site) begin(w http.ResponseWriter, r *http.Request, c *auth.Caller, digest []byte, to string) error {
	if err := c.Check(auth.Reader); err != nil {
		return err
	}
	if err := s.cfg.SignIn.Sessions.Begin(w, r, c, digest); err != nil {
		return err
	}
	s.log.Info("a person signed in", "user", c.User, "client", r.RemoteAddr)
	seeOther(w, here(to))
	return nil
}

// toMost bounds the address that a person returns to, which is kept in a cookie.
const toMost = 1500

// here returns the way to a page of this archive from one directly below the base
// path. Whatever it is given, it does not lead to another host.
func here(to string) string {
	at, err := url.Parse("./" + strings.TrimLeft(to, `/\`))
	if err != nil || len(to) > toMost || slices.Contains(strings.Split(at.Path, "/"), "..") {
		return "./"
	}
	return at.String()
}

// formMost bounds the forms to sign in and out.
const formMost = 16 << 10

// ownForm reads a form that must come from this archive's pages.
func (s *Site) ownForm(w http.ResponseWriter, r *http.Request) error {
	if !s.cfg.SignIn.Sessions.SameOrigin(r) {
		return oda.Errorf(oda.CrossOrigin, "Another web page sent this form. Sign in and out on this archive's own pages.")
	}
	r.Body = http.MaxBytesReader(w, r.Body, formMost)
	if err := r.ParseForm(); err != nil {
		return oda.Errorf(oda.InvalidRequest, "The form cannot be read. Send it again from the page.")
	}
	return nil
}

// signOut ends the session, and with it its streams.
func (s *Site) signOut(w http.ResponseWriter, r *http.Request) error {
	if err := s.ownForm(w, r); err != nil {
		return err
	}
	s.cfg.SignIn.Sessions.End(w, r)
	seeOther(w, "sign-out")
	return nil
}

// signedOutView is the data for the page after signing out.
type signedOutView struct {
	frame
	Host, Elsewhere string // the provider, where the person may still be signed in
	Still           string // who is signed in, empty if nobody is
}

// signedOut serves the page after signing out. Somebody who is still signed in finds the
// button there.
func (s *Site) signedOut(w http.ResponseWriter, r *http.Request) error {
	view := signedOutView{frame: s.newFrame(r, "Signed out", "")}
	if c, ok, err := s.cfg.SignIn.Sessions.Caller(r); ok && err == nil {
		view.Title, view.Still = "Sign out", c.User
	}
	if p := s.cfg.SignIn.Provider; p != nil {
		view.Host, view.Elsewhere = p.Host(), p.SignOut()
	}
	return s.unkept(w, http.StatusOK, "signedout", view)
}

// signInAsset serves the files that the page to sign in loads.
func (s *Site) signInAsset(w http.ResponseWriter, r *http.Request) error {
	if !slices.Contains([]string{"site.css", "site.js", "icon.svg"}, r.PathValue("file")) {
		return oda.Errorf(oda.NoSuchPath, "The page to sign in has no such file.")
	}
	return s.Asset(w, r)
}

// below returns the address of a request relative to the base.
func (s *Site) below(r *http.Request) string {
	path := r.URL.EscapedPath()
	if inside, ok := strings.CutPrefix(path, s.cfg.BasePath+"/"); ok {
		path = inside
	}
	path = strings.TrimPrefix(path, "/")
	if r.URL.RawQuery != "" {
		path += "?" + r.URL.RawQuery
	}
	return path
}
