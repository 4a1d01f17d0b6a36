//go:build race

package httpapi_test

// longList is shorter where the race detector slows the engine down, and still
// much longer than what a response holds back.
const longList = 6_000
