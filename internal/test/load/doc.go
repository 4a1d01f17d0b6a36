// Package load writes to an archive as scripts, tools and people do, all at
// once, and knows afterwards what must be stored.
//
// Writers record, store, keep, create, say statuses and read, at whichever servers there are
// (writer.go, servers.go). A ledger notes when each write was sent, and what was
// answered (ledger.go). At the end, everything that is stored is read and compared
// with it: what was acknowledged is there, once, as it was answered and in order;
// what was not is there completely or not at all (truth.go).
//
// The crash tests, the tests of the feed, the soak and the drill use it. Each adds
// what it does to the archive meanwhile.
package load
