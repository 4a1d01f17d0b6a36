// Package auditlog keeps the audit log: a file with one line of JSON for each
// write, and for each request that was not allowed. It never has a document or a
// credential in it. Failed attempts to get in are summed up, one line for each
// address and minute.
//
// A write must not go unaudited. So Begin comes before it, and fails if the log
// cannot be written; it also sets disk space aside, so that the line still fits
// on a disk that fills up in the meantime. A line that cannot be written in spite
// of that is kept and tried again, and no write begins before it is in the log.
//
// Lines are not forced to disk one by one, but once a second: what a power cut
// takes is still in the metadata of the versions and records.
package auditlog
