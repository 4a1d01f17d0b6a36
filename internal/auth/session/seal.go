package session

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"oda/internal/files"
)

// seal makes what is kept in a browser unreadable, and notices if it was changed.
type seal struct{ cipher.AEAD }

// keyLeast is the least size of a key file. Its bytes need not all be random: this
// is room for 32 of them in base64 or hex.
const keyLeast = 32

// newSeal returns a seal with the key in a file, or with a random key.
func newSeal(file string) (seal, error) {
	secret := make([]byte, keyLeast)
	_, _ = rand.Read(secret) // never fails
	if file != "" {
		var err error
		if secret, err = files.ReadOwn(file); err != nil {
			return seal{}, fmt.Errorf("cannot use the file of --session-key-file: %w", err)
		}
		if len(secret) < keyLeast {
			return seal{}, fmt.Errorf("the file %s of --session-key-file has only %d bytes; make one with: openssl rand -base64 48 > FILE", file, len(secret))
		}
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "oda sessions", 32)
	if err != nil {
		return seal{}, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return seal{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return seal{aead}, err
}

// encoding is for cookies. It is strict, so that a value has one form only.
var encoding = base64.RawURLEncoding.Strict()

// close returns a value as text for the cookie of this name.
func (s seal) close(name string, value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	return encoding.EncodeToString(s.Seal(nil, nil, text, []byte(name))), nil
}

var errBroken = errors.New("the cookie was not made here")

// open reads what close returned for the same name.
func (s seal) open(name, text string, value any) error {
	sealed, err := encoding.DecodeString(text)
	if err != nil {
		return errBroken
	}
	plain, err := s.Open(nil, nil, sealed, []byte(name))
	if err != nil {
		return errBroken
	}
	return json.Unmarshal(plain, value)
}
