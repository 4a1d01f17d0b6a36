package oda

import "crypto/sha256"

// Digest is the SHA-256 of a text as it is stored.
type Digest [sha256.Size]byte

// DigestOf returns the digest of a text.
func DigestOf(text []byte) Digest { return sha256.Sum256(text) }
