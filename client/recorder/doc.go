// Package recorder records the functions called on the telescope into an
// ExecutionBlock, and never makes the telescope wait for the archive.
//
// A record is written to a file in the spool, a folder on a local disk, and
// sent from there in the background: in order and once, whatever happens to the
// network, the archive or this process. docs/spool.md describes the format of
// the spool, which the Python helper also reads and writes.
//
// Open begins a new block; Attach records into an existing one. Between Begin and End of a
// call the archive knows that it is running, if it lasts. Say and End of the recorder say what
// comes of the block, in the same way as a record. A program that records should first start Resume in a goroutine of its own, to send what an
// earlier process left behind.
//
// Start reading at Recorder.Record, then writer, for which Record waits, and
// shipper, for which it does not.
package recorder
