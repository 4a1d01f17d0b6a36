// Package auth knows who is calling and what they may do.
//
// A Gate finds the Caller of a request. It asks the configured ways one after the
// other: tokens from a file, further bearer tokens, the headers of a trusted proxy,
// sessions. Without any of them the archive is open, and every caller is an admin.
//
// What an operation needs is a Role. The table of routes in internal/httpapi has
// one for each operation, and one check in front of all handlers compares it with
// the caller's. Where a role is bound to telescopes, package oda judges the write,
// within the compare-and-set of the engine.
package auth
