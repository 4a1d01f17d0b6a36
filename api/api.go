// Package api contains the API description.
//
// openapi.yaml is the contract, written by people. Requests are checked against
// it, clients can download it, and the tests check every response against it.
// So a change of the API begins there. openapi.json is the same document for
// programs; "go generate ./api" writes it, and a test fails if it is out of
// date.
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
