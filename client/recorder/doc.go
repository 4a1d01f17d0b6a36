// Package recorder records what is called on the telescope into an
// ExecutionBlock, and never makes the telescope wait for the archive.
//
// A record is written to a file in the spool, a folder on a local disk, and sent
// from there in the background: in order and once, whatever happens to the
// network, the archive or this process. docs/spool.md has the format of the
// spool, which the helper for Python scripts writes and reads too.
//
// Open begins a new block and Attach records into one that exists. A program
// that records begins with Resume in a goroutine of its own, so that what its
// predecessor left is sent.
//
// Start reading at Recorder.Record, then writer, which it waits for, and
// shipper, which it does not wait for.
package recorder
