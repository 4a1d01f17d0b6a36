// Package engine holds what the engines share and the rules need not know: which
// records a version holds and how they are read, which of them a new version
// shares with the one before, the queue before a writer, listings that are read
// slowly, and whether writing works.
package engine
