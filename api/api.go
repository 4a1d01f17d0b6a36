// Package api contains the API description.
//
// openapi.yaml is the contract, written by people. Requests are checked against
// it, clients can download it, and the tests check every response against it.
// So a change of the API begins there.
package api

import (
	_ "embed"
	"sync"
)

// YAML is the description as its authors write it.
//
//go:embed openapi.yaml
var YAML []byte

// JSON returns the description as JSON, with its keys in the same order. The first call makes
// it, which takes about 10 ms.
var JSON = sync.OnceValue(func() []byte {
	text, err := toJSON(YAML)
	if err != nil {
		panic("openapi.yaml cannot be written as JSON: " + err.Error())
	}
	return text
})
