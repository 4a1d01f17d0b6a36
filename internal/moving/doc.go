// Package moving moves archives: it writes everything in an archive into one file,
// an export, reads such a file, and brings documents from elsewhere into an archive.
//
// An export is lines of JSON, compressed with zstd. The first line names the form.
// Then comes one line for each version, record and status, in the order of the log of
// changes; records that came with a version follow it. The last line is the manifest:
// how many lines of which kind there are, and the SHA-256 of all lines before it. So
// an export that was cut off has no manifest. Nothing in the file depends on when or
// where it was made: the same log gives the same bytes, whichever engine keeps it.
//
// The files: scope.go chooses what an export has, line.go is the form of a line, manifest.go
// that of the last, export.go writes an export, read.go reads one, receiver.go tells whether all of it was
// received, and load.go brings it into an archive as it was.
//
// import.go brings documents from other sources, which are in files.go, remote.go and
// skaoda.go; remotestatus.go and skastatus.go read the statuses there. Each gives the
// histories of its entities (history.go, said.go), which are kept as they were or stored as
// new ones (store.go, say.go). report.go keeps what could not be imported.
package moving
