package session

import (
	"encoding/json"
	"net/http"
	"time"

	"oda"
)

// cookieMost is the longest value that every browser keeps.
const cookieMost = 4000

var errTooLarge = oda.Errorf(oda.Forbidden, "You have more roles than a session can hold. Ask the operator for fewer, such as one that is not bound to telescopes.")

// set sets a cookie with a sealed value. It has no path: browsers then send it to
// everything below the directory of the request, as they see it, which is right also
// behind a proxy that strips a prefix. So cookies must be set by pages directly below
// the base path.
func (k *Keeper) set(w http.ResponseWriter, r *http.Request, name string, value any, ends time.Time) error {
	text, err := k.seal.close(name, value)
	if err != nil {
		return err
	}
	if len(text) > cookieMost {
		return errTooLarge
	}
	c := k.cookie(r, name)
	c.Value, c.Expires = text, ends
	http.SetCookie(w, c)
	return nil
}

// unset removes a cookie.
func (k *Keeper) unset(w http.ResponseWriter, r *http.Request, name string) {
	c := k.cookie(r, name)
	c.MaxAge = -1
	http.SetCookie(w, c)
}

func (k *Keeper) cookie(r *http.Request, name string) *http.Cookie {
	secure := r.TLS != nil || k.cfg.PublicURL != nil && k.cfg.PublicURL.Scheme == "https"
	return &http.Cookie{Name: name, HttpOnly: true, Secure: secure, SameSite: http.SameSiteLaxMode}
}

// noteTime is how long a note is kept: while a person signs in elsewhere.
const noteTime = 15 * time.Minute

// note is a value that a browser keeps for a while.
type note struct {
	Until time.Time       `json:"until"`
	Value json.RawMessage `json:"value"`
}

// Leave leaves a note in the browser.
func (k *Keeper) Leave(w http.ResponseWriter, r *http.Request, name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	until := time.Now().Add(noteTime).Truncate(time.Second)
	return k.set(w, r, name, note{until, text}, until)
}

// Take reads a note and removes it. It reports whether there was one.
func (k *Keeper) Take(w http.ResponseWriter, r *http.Request, name string, value any) bool {
	for _, c := range r.CookiesNamed(name) {
		var n note
		if k.seal.open(name, c.Value, &n) == nil && time.Now().Before(n.Until) && json.Unmarshal(n.Value, value) == nil {
			k.unset(w, r, name)
			return true
		}
	}
	return false
}
