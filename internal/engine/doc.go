// Package engine holds what the engines share and package oda need not know:
// which records a version holds and how they are read, which of them a new
// version shares with the previous one, the queue of a writer, listings with slow
// readers, and whether writing works.
package engine
