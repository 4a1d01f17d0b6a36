package auth

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"oda"
	"oda/internal/files"
)

// Prefix begins every token, so that scanners for secrets find it. After it come 26
// random characters and a checksum of 7, which lets them tell a token from a text
// that only looks like one. All are of A-Z and 2-7.
const Prefix = "oda_"

const (
	randomLength = 26 // of rand.Text
	tokenLength  = len(Prefix) + randomLength + 7
)

// Token is what the file of tokens holds about a token: everything but the token
// itself.
type Token struct {
	Name        string    `json:"name"` // the acting user
	Role        Role      `json:"role"`
	Telescopes  []string  `json:"telescopes,omitempty"`    // that the role is bound to; none: it is not
	MayNameUser bool      `json:"may_name_user,omitempty"` // the request may name the acting user
	Created     time.Time `json:"created"`
	Expires     time.Time `json:"expires,omitzero"`
	SHA256      digest    `json:"sha256"` // of the token
}

// Expired reports whether the token has expired.
func (t *Token) Expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// caller returns who calls with the token.
func (t *Token) caller(done <-chan struct{}) *Caller {
	c := &Caller{User: t.Name, Name: t.Name, Means: ByToken, Ends: t.Expires, Done: done}
	if len(t.Telescopes) == 0 {
		c.Role = t.Role
		return c
	}
	c.Bound = make(map[string]Role, len(t.Telescopes))
	for _, name := range t.Telescopes {
		c.Bound[name] = t.Role
	}
	return c
}

func (t *Token) check() error {
	switch {
	case !oda.ValidUser(t.Name):
		return fmt.Errorf("the name %q is not valid: it must be %s", t.Name, oda.UserRule)
	case t.Role < Reader:
		return fmt.Errorf("the token %s has no role", t.Name)
	}
	for _, name := range t.Telescopes {
		if !oda.ValidTelescope(name) {
			return fmt.Errorf("the token %s has an invalid telescope %q", t.Name, name)
		}
	}
	return nil
}

// digest is the SHA-256 of a token. A token is random, so nobody finds it by trying.
type digest [sha256.Size]byte

// MarshalText implements encoding.TextMarshaler.
func (d digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *digest) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(d)) {
		return errors.New("a digest has 64 hexadecimal digits")
	}
	_, err := hex.Decode(d[:], text)
	return err
}

// newSecret returns a new token.
func newSecret() string {
	body := Prefix + rand.Text()
	return body + checksum(body)
}

func checksum(body string) string {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.ChecksumIEEE([]byte(body)))
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])
}

// tokensFile is the content of a file of tokens.
type tokensFile struct {
	Tokens []Token `json:"tokens"`
}

// parseTokens reads the content of a file of tokens.
func parseTokens(path string, text []byte) ([]Token, error) {
	var file tokensFile
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&file)
	if _, more := decoder.Token(); err == nil && !errors.Is(more, io.EOF) {
		err = errors.New("there is something after its end")
	}
	if place := oda.CheckJSON(text); err != nil && place != nil {
		err = place
	}
	for i := range file.Tokens {
		t := &file.Tokens[i]
		if err == nil {
			err = t.check()
		}
		if slices.ContainsFunc(file.Tokens[:i], func(one Token) bool { return one.Name == t.Name }) && err == nil {
			err = fmt.Errorf("the name %s appears twice", t.Name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the file of tokens %s is not valid: %w; make tokens with \"oda token create\"", path, err)
	}
	return file.Tokens, nil
}

// ReadTokens returns the tokens of a file.
func ReadTokens(path string) ([]Token, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return parseTokens(path, text)
}

// readFile reads a file of tokens.
func readFile(path string) ([]byte, error) {
	text, err := files.ReadOwn(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file of tokens (%w); make it with \"oda token create --file %s\"", err, path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use the file of tokens: %w", err)
	}
	return text, nil
}

// CreateToken makes a token as described, adds it to the file, and returns it. It
// makes the file if there is none.
func CreateToken(path string, t Token) (secret string, err error) {
	if err := t.check(); err != nil {
		return "", err
	}
	secret = newSecret()
	t.SHA256 = sha256.Sum256([]byte(secret))
	err = change(path, func(tokens []Token) ([]Token, error) {
		if slices.ContainsFunc(tokens, func(one Token) bool { return one.Name == t.Name }) {
			return nil, fmt.Errorf("there is a token %s already; revoke it first, or choose another name", t.Name)
		}
		return append(tokens, t), nil
	})
	if err != nil {
		return "", err
	}
	return secret, nil
}

// RevokeToken removes a token from the file.
func RevokeToken(path, name string) error {
	return change(path, func(tokens []Token) ([]Token, error) {
		left := slices.DeleteFunc(slices.Clone(tokens), func(one Token) bool { return one.Name == name })
		if len(left) == len(tokens) {
			return nil, fmt.Errorf("there is no token %s in %s; \"oda token list\" lists them", name, path)
		}
		return left, nil
	})
}

// lockTries and lockPause bound how long change waits for another process that
// changes the file.
const (
	lockTries = 100
	lockPause = 20 * time.Millisecond
)

// change changes the file of tokens. It keeps its owner, group and mode, so that the
// server can still read it. If the path is a link, the file that it leads to changes.
func change(path string, edit func([]Token) ([]Token, error)) error {
	switch target, err := filepath.EvalSymlinks(path); {
	case err == nil:
		path = target
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("cannot find the file of tokens: %w", err)
	default:
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("the file of tokens %s is a link that leads nowhere; remove it, or make the file that it leads to", path)
		}
	}
	lock, err := files.Lock(path+".lock", 0o600)
	for range lockTries {
		if !errors.Is(err, files.ErrLocked) {
			break
		}
		time.Sleep(lockPause)
		lock, err = files.Lock(path+".lock", 0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot change the file of tokens: %w", err)
	}
	defer func() {
		_ = os.Remove(path + ".lock") // only clutter
		_ = lock.Close()
	}()
	tokens, err := ReadTokens(path)
	isNew := errors.Is(err, fs.ErrNotExist)
	if err != nil && !isNew {
		return err
	}
	if tokens, err = edit(tokens); err != nil {
		return err
	}
	if tokens == nil {
		tokens = []Token{}
	}
	text, err := json.MarshalIndent(tokensFile{tokens}, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if isNew {
		err = files.ReplaceSynced(path, text, 0o600)
	} else {
		err = files.Rewrite(path, text)
	}
	if err != nil {
		return fmt.Errorf("cannot write the file of tokens: %w", err)
	}
	return nil
}
