// Package oda defines the vocabulary and the rules of the observation archive.
//
// The archive stores five kinds of entity: what a telescope was asked to do
// (SBDefinition, SBInstance, Project) and what it did (ExecutionBlock, with one
// record for every function called on the telescope). Beside each it keeps what people and
// programs say came of it, its statuses. An entity is a JSON
// document that is stored as received. The server owns only its identifier, the
// managed fields of its metadata and, in an ExecutionBlock, the list of records.
//
// Start reading at Engine: what the archive needs of a database, in small interfaces.
// The packages next to this one do the work in terms of these: archive has the
// operations of the service, summary what searches know of a document, and search,
// provenance and night answer questions. This package knows neither HTTP nor SQL. It
// imports only the standard library and small packages of this project that import
// nothing else.
//
// The files, by subject:
//
//   - Entities: kind.go, id.go, metadata.go and time.go have the words of the
//     specification; document.go is an entity as received, body.go as stored,
//     entity.go as answered. digest.go shows whether a text is what was stored.
//   - Writing: put.go has the rule that decides whether an update is accepted,
//     telescopes.go where a bound role may write, record.go the records of a block,
//     status.go the statuses of an entity, newstatus.go the rule for the next one.
//     key.go makes retries safe.
//   - History: changes.go is the log of changes. logentry.go is an entry of it with
//     all that is stored, which moves archives, and scope.go says which of them an
//     export has.
//   - Queries: query.go is a listing, params.go reads the parameters of any query,
//     cursor.go is where its next page begins.
//   - What engines know of searches, which are in package search: walk.go has the
//     orders, the walk along an index and the question to the inverted index, terms.go
//     what that holds.
//   - Summaries, which searches, package provenance and lists need: found.go is what
//     one holds, packing.go the form in which engines store it, founditem.go the form
//     in which answers have it. Package summary makes them.
//   - note.go is what the archive reads in the note of a person.
//   - running.go is what is known of calls that have begun and not ended.
//   - call.go reads a call from its record, callentry.go is a call as answers have it,
//     notable.go says what calls are found by.
//   - room.go bounds the memory of what is read, turns.go how much is done at once.
//   - engine.go is what an engine must do, error.go how anything fails, json.go
//     the form of some values on the wire.
package oda
