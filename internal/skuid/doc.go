// Package skuid is about identifiers of new entities: how they are minted, how
// they are requested from another service, and that service itself.
//
// A generated identifier has the form of SKA's ADR-129: the type, a hyphen, and
// one number in lower-case Crockford base 32 without padding, for instance
// sbd-6txs9jhxnk7. The number has three parts:
//
//	milliseconds since 2026-01-07T00:00:00Z | generator, 10 bits | random, 11 bits
//
// Generator mints such identifiers. It never repeats itself within one process,
// even if the clock is set back, because it remembers which random parts of the
// current millisecond are used and because its time never goes back. Two
// processes do not clash as long as their generator numbers differ. With a State,
// a file that says up to which millisecond identifiers may have been given out,
// it does not repeat itself after a restart either, even if the process was
// killed and the clock was set back in between.
//
// Client asks an identifier service for each identifier, with retries for a
// service that hiccups, but never so long that a caller is left hanging.
// Generator and Client serve the archive in the same way: both have Mint.
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
