package oidc

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

// algorithms are what a token may be signed with. With all of them, signing takes a secret
// that only the provider has, and not the keys that it publishes.
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

// key is a public key of a provider.
type key struct {
	jose.JSONWebKey
	fingerprint string
	withdrawn   chan struct{} // closed when the provider has it no more
}

// keys are the public keys of a provider, each once.
type keys []*key

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
	if set.Keys == nil {
		return nil, fmt.Errorf("read the keys at %s: the provider answers with something else", address)
	}
	var usable keys
	for _, text := range set.Keys {
		one := &key{withdrawn: make(chan struct{})}
		if json.Unmarshal(text, &one.JSONWebKey) != nil || !signs(&one.JSONWebKey) || len(usable) >= keysMost {
			continue
		}
		canonical, err := one.MarshalJSON()
		if err != nil {
			continue
		}
		one.fingerprint = fmt.Sprintf("%x", sha256.Sum256(canonical))
		if usable.find(one.fingerprint) == nil {
			usable = append(usable, one)
		}
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

// find returns the key with a fingerprint, nil if there is none.
func (k keys) find(fingerprint string) *key {
	for _, one := range k {
		if one.fingerprint == fingerprint {
			return one
		}
	}
	return nil
}

// follow keeps the keys that were there before. It returns the keys that are gone, and
// whether there are new ones.
func (k keys) follow(before keys) (withdrawn keys, added bool) {
	for i, one := range k {
		if was := before.find(one.fingerprint); was != nil {
			k[i] = was
		} else {
			added = true
		}
	}
	for _, was := range before {
		if k.find(was.fingerprint) == nil {
			withdrawn = append(withdrawn, was)
		}
	}
	return withdrawn, added
}

var errNoKey = errors.New("no key of the provider verifies the token")

// signature checks who signed a token, with the keys that are known. It notes whether
// that is where a token failed: other keys may help there, and only there.
type signature struct {
	keys    keys
	by      *key // that has signed it
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
	for _, key := range s.keys {
		if header.KeyID != "" && header.KeyID != key.KeyID {
			continue
		}
		s.unknown = false
		if key.Algorithm != "" && key.Algorithm != header.Algorithm {
			continue
		}
		if payload, err := jws.Verify(key.Key); err == nil {
			s.by, s.failed = key, false
			return payload, nil
		}
	}
	return nil, errNoKey
}
