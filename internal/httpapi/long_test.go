//go:build !race

package httpapi_test

// longList is how many identifiers a long list has.
const longList = 30_000
