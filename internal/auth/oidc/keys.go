package oidc

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

// algorithms are what a token may be signed with. With all of them only the provider
// has what it takes to sign; its keys, which everyone can read, are of no use.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// algorithmNames are the same for a verifier.
var algorithmNames = func() (names []string) {
	for _, algorithm := range algorithms {
		names = append(names, string(algorithm))
	}
	return names
}()

// keysMost bounds the keys of a provider: a token that names none is tried with each.
const keysMost = 64

// keys are the public keys of a provider.
type keys []jose.JSONWebKey

// fetchKeys asks the provider for its keys. It ignores those that do not sign tokens.
func (p *Provider) fetchKeys(ctx context.Context, address string) (keys, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("ask for the keys: %w", err)
	}
	answer, err := p.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask for the keys: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask for the keys at %s: the provider answers %s", address, answer.Status)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&set); err != nil {
		return nil, fmt.Errorf("read the keys at %s: %w", address, err)
	}
	var usable keys
	for _, text := range set.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(text, &key) == nil && signs(&key) && len(usable) < keysMost {
			usable = append(usable, key)
		}
	}
	if len(usable) == 0 {
		return nil, fmt.Errorf("the provider has no key at %s that signs tokens", address)
	}
	return usable, nil
}

// signs reports whether tokens may be signed with the key.
func signs(key *jose.JSONWebKey) bool {
	if !key.Valid() || key.Use != "" && key.Use != "sig" {
		return false
	}
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		return public.N.BitLen() >= 2048
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return true
	}
	return false
}

// ids returns the identifiers of the keys.
func (k keys) ids() []string {
	ids := make([]string, len(k))
	for i := range k {
		ids[i] = k[i].KeyID
	}
	return ids
}

// equal reports whether these are the same keys.
func (k keys) equal(other keys) bool {
	return slices.EqualFunc(k, other, func(a, b jose.JSONWebKey) bool {
		one, err := a.MarshalJSON()
		two, err2 := b.MarshalJSON()
		return err == nil && err2 == nil && bytes.Equal(one, two)
	})
}

var errNoKey = errors.New("no key of the provider verifies the token")

// signature checks who signed a token, with the keys that are known. It notes whether
// that is where a token failed: other keys may help there, and only there.
type signature struct {
	keys    keys
	failed  bool
	unknown bool // the token names a key that is not known
}

var _ oidc.KeySet = (*signature)(nil)

// VerifySignature implements oidc.KeySet.
func (s *signature) VerifySignature(_ context.Context, token string) ([]byte, error) {
	jws, err := jose.ParseSignedCompact(token, algorithms)
	if err != nil {
		return nil, err
	}
	header := jws.Signatures[0].Protected
	s.failed, s.unknown = true, true
	for i := range s.keys {
		key := &s.keys[i]
		if header.KeyID != "" && header.KeyID != key.KeyID {
			continue
		}
		s.unknown = false
		if key.Algorithm != "" && key.Algorithm != header.Algorithm {
			continue
		}
		if payload, err := jws.Verify(key.Key); err == nil {
			s.failed = false
			return payload, nil
		}
	}
	return nil, errNoKey
}
