// Package oda is the vocabulary and the rules of the observation archive.
//
// The archive keeps four kinds of entity: what a telescope was asked to do
// (SBDefinition, SBInstance, Project) and what it did (ExecutionBlock, with one
// record for every function called on the telescope). An entity is a JSON
// document that is stored as received; the server owns only its identifier, the
// managed fields of its metadata and, in an ExecutionBlock, the list of records.
//
// Start reading at Archive: its methods are the operations of the service, in
// terms of the domain. What they need from a database is the interface Store;
// what they need to name a new entity is the interface Minter. This package
// knows neither HTTP nor SQL and imports nothing but the standard library and
// the project's own JSON scanner.
package oda
