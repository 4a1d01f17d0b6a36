// Package archive has the operations of the service, in terms of the domain: what a
// request asks for, and what is answered.
//
// Start reading at Archive. It stores in an oda.Engine, which decides by oda.Judge
// whether a write is accepted, and takes new identifiers from an oda.Minter.
// archive.go has what changes and reads the current state, versions.go and diff.go the
// history of an entity, follow.go pages of the log of changes for those who follow the
// archive, and recent.go for people.
package archive
