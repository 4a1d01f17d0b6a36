// Package auditlog keeps the audit log: a file with one numbered line of JSON for
// each write. It never has a document or a credential in it. Requests that were
// refused are summed up, one line for each caller, operation and minute, and failed
// attempts to get in, one for each address and minute: whoever may not write here
// cannot fill the log either, and its space is set aside for those who may.
//
// A write must not go unaudited. So Begin comes before it, and fails if the log
// cannot be written; it also sets disk space aside, so that the line still fits
// on a disk that fills up in the meantime. A line that cannot be written in spite
// of that is kept and tried again, and no write begins before it is in the log.
//
// Lines are not forced to disk one by one, but once a second: what a power cut
// takes is still in the metadata of the versions and records.
package auditlog
