//go:build race

package httpapi_test

// longList is shorter because the race detector slows the engine down. It is still
// much longer than what a response holds back.
const longList = 6_000
