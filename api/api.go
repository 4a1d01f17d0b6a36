// Package api holds the description of the archive's interface.
//
// openapi.yaml is the contract, written by people. Requests are checked against
// it, it is served to clients, and the tests hold every response against it. So
// a change of the interface begins there. openapi.json is the same document for
// programs; "go generate ./api" writes it, and a test fails when it is stale.
package api

import _ "embed"

//go:generate go run ./gen openapi.yaml openapi.json

// YAML is the description as its authors write it.
//
//go:embed openapi.yaml
var YAML []byte

// JSON is the same description, generated from YAML.
//
//go:embed openapi.json
var JSON []byte
