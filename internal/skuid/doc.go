// Package skuid provides identifiers for new entities: it mints them, requests
// them from an identifier service, and is such a service.
//
// A generated identifier has the form of SKA's ADR-129: the type, a hyphen, and
// one number in lower-case Crockford base 32 without padding, for instance
// sbd-6txs9jhxnk7. The number has three parts:
//
//	milliseconds since 2026-01-07T00:00:00Z | generator, 10 bits | random, 11 bits
//
// Generator mints such identifiers. Within one process it never repeats itself,
// even if the clock is set back: it remembers the used random parts of the
// current millisecond, and its time never goes back. Two processes do not clash
// as long as their generator numbers differ. With a State, a file that says up
// to which millisecond identifiers may have been used, it does not repeat
// itself after a restart either, even if the process was killed and the clock
// set back.
//
// Client asks an identifier service for each identifier, with retries in
// bounded time. Generator and Client both have Mint, so the archive can use
// either.
//
// Service is the REST interface of that service on top of a Generator, and
// Listen and Run serve it:
//
//	GET /skuid/ska_id/{type}        {"ska_uid": "sbd-6txs9jhxnk7", "generator_id": "986"}
//	GET /skuid/entity_types/get     the types served, with their meaning
//	GET /skuid                      a page that says so
//	GET /livez                      whether the process answers
//
// Start reading at Generator.next: everything else is built around it.
package skuid
