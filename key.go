package oda

import "bytes"

// Key makes a retry safe: the same key with the same request gets the same
// answer as the first time. Digest is that of the request.
type Key struct {
	Value  string
	Digest Digest
}

// Check returns an error if the key was first used for a request with another digest.
func (k Key) Check(digest []byte) error {
	if bytes.Equal(k.Digest[:], digest) {
		return nil
	}
	return Errorf(KeyReused, "This Idempotency-Key was used before, for another request. "+
		"Send the same request to retry it, or a new key to store something new.")
}

// validKey reports whether a text can be an idempotency key.
func validKey(key string) bool {
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return false
		}
	}
	return key != "" && len(key) <= 255
}
