// Package oda defines the vocabulary and the rules of the observation archive.
//
// The archive stores four kinds of entity: what a telescope was asked to do
// (SBDefinition, SBInstance, Project) and what it did (ExecutionBlock, with one
// record for every function called on the telescope). An entity is a JSON
// document that is stored as received. The server owns only its identifier, the
// managed fields of its metadata and, in an ExecutionBlock, the list of records.
//
// Start reading at Archive: its methods are the operations of the service. They
// store in an Engine and take new identifiers from a Minter. This package knows
// neither HTTP nor SQL. It imports only the standard library and small packages
// of this project that import nothing else.
//
// The files, by subject:
//
//   - Entities: kind.go, id.go, metadata.go and time.go have the words of the
//     specification; document.go is an entity as received, body.go as stored,
//     entity.go as answered.
//   - Writing: archive.go has the operations, put.go the rule that decides
//     whether an update is accepted, telescopes.go where a bound role may write,
//     record.go the records of a block.
//   - History: versions.go and diff.go. changes.go is the log of changes, follow.go
//     reads it for those who follow the archive, recent.go for people. logentry.go
//     is an entry of it with all that is stored, which moves archives, and
//     scope.go says which of them an export has.
//   - Queries: query.go is a listing, params.go reads the parameters of any query,
//     cursor.go is where its next page begins.
//   - What engines know of searches, which are in package search: walk.go has the
//     orders and the walk along an index, terms.go what the inverted index holds.
//   - Summaries, which searches, package provenance and lists need: summary.go is what
//     one holds, summarykeys.go which keys of a document matter,
//     summaryextract.go what the scan of a document notes of them, summarize.go
//     makes the summary from that, and summarypacking.go is the form in which engines
//     store it.
//   - call.go reads a call from its record.
//   - room.go bounds the memory of what is read, turns.go how much is done at once.
//   - engine.go is what an engine must do, error.go how anything fails, json.go
//     the form of some values on the wire.
package oda
