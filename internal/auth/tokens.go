package auth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"oda"
)

// tokens is the way to know callers by tokens that a file lists.
type tokens struct {
	path  string
	log   *slog.Logger
	known atomic.Pointer[map[digest]*known]

	// What follows belongs to Run.
	text    []byte // of the file, as it was last read
	missing bool   // the file was missing when it was last looked for
	gone    bool   // it stayed missing, so no token is accepted
	failing bool   // it cannot be used, so the tokens stay as they were
}

// known is a token that the server accepts.
type known struct {
	Token
	who  *Caller
	done chan struct{} // closed when it is revoked or expires
	over bool          // done is closed
}

// openTokens reads the file of tokens.
func openTokens(path string, log *slog.Logger) (*tokens, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	list, err := parseTokens(path, text)
	if err != nil {
		return nil, err
	}
	t := &tokens{path: path, log: log, text: text}
	t.accept(list)
	return t, nil
}

// accept makes these the tokens that the server accepts. Those that stay as they
// were stay accepted; the credentials of the others end.
func (t *tokens) accept(list []Token) {
	before := t.known.Load()
	now := make(map[digest]*known, len(list))
	for _, token := range list {
		if before != nil {
			if k := (*before)[token.SHA256]; k != nil && same(&k.Token, &token) {
				now[token.SHA256] = k
				continue
			}
		}
		done := make(chan struct{})
		now[token.SHA256] = &known{Token: token, who: token.caller(done), done: done}
	}
	t.known.Store(&now)
	if before == nil {
		return
	}
	for sum, k := range *before {
		if now[sum] != k {
			k.end()
		}
	}
}

func same(a, b *Token) bool {
	return a.Name == b.Name && a.Role == b.Role && a.MayNameUser == b.MayNameUser && a.Expires.Equal(b.Expires) &&
		slices.Equal(a.Telescopes, b.Telescopes)
}

// end ends the credential. Only Run calls it.
func (k *known) end() {
	if !k.over {
		k.over = true
		close(k.done)
	}
}

// Caller implements Way. For a token that is known, it takes no memory.
func (t *tokens) Caller(r *http.Request) (*Caller, bool, error) {
	token, given, err := Bearer(r)
	if err != nil || !given || !strings.HasPrefix(token, Prefix) {
		return nil, false, err
	}
	var room [tokenLength]byte
	if len(token) != tokenLength {
		return nil, false, BadBearer("a token has %d characters, and this has %d", tokenLength, len(token))
	}
	copy(room[:], token)
	sum := sha256.Sum256(room[:])
	k := (*t.known.Load())[sum]
	switch {
	case k == nil:
		return nil, false, BadBearer("it is unknown or was revoked")
	case k.Expired(time.Now()):
		return nil, false, BadBearer("it has expired")
	case !k.MayNameUser || r.Header[forwardedUser] == nil:
		return k.who, true, nil
	}
	user, err := one(r.Header, forwardedUser)
	if err != nil {
		return nil, false, err
	}
	if !oda.ValidUser(user) {
		return nil, false, invalidUser()
	}
	named := *k.who
	named.User = user
	return &named, true, nil
}

// holder returns the caller with the token of this digest, nil if it is not good.
func (t *tokens) holder(sum digest) *Caller {
	if k := (*t.known.Load())[sum]; k != nil && !k.Expired(time.Now()) {
		return k.who
	}
	return nil
}

// followPause is how often the file is read. A change must be followed within two
// seconds.
const followPause = 500 * time.Millisecond

// Run follows the changes of the file, and ends tokens that expire, until ctx ends.
func (t *tokens) Run(ctx context.Context) {
	ticks := time.NewTicker(followPause)
	defer ticks.Stop()
	for {
		t.follow()
		now := time.Now()
		for _, k := range *t.known.Load() {
			if k.Expired(now) {
				k.end()
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

// follow reads the file, and accepts what is new. A file that cannot be read or is
// not valid changes nothing, so that a mistake does not lock everybody out; but
// nobody may call with a token of a file that was removed.
func (t *tokens) follow() {
	text, err := readFile(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		// An editor may remove a file for a moment to write it again.
		if t.missing && !t.gone {
			t.gone, t.text = true, nil
			t.accept(nil)
			t.log.Error("the file of tokens is missing; no token is accepted until it is back", "file", t.path)
		}
		t.missing = true
		return
	}
	t.missing = false
	if err == nil && t.text != nil && bytes.Equal(text, t.text) {
		return
	}
	t.text = text
	var list []Token
	if err == nil {
		list, err = parseTokens(t.path, text)
	}
	if err != nil {
		if !t.failing {
			t.log.Error("the tokens stay as they were", "error", err)
		}
		t.failing = true
		return
	}
	t.failing, t.gone = false, false
	t.accept(list)
	t.log.Info("the file of tokens has changed", "file", t.path, "tokens", len(list))
}
