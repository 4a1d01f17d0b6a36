// Package client is a Go client for the archive, with one typed method for each
// operation of the API description. Package recorder, below it, records calls
// without making the telescope wait for the archive.
//
// Start reading at New and Client.Get. Documents are sent and returned as the
// exact bytes that are stored; a Document adds the fields that the archive
// manages. If the archive refuses a request, the error is an *oda.Error: its
// Code says what is wrong and its Detail what to do. If no answer arrives, the
// error is ErrNoAnswer.
//
//	archive, err := client.New("http://127.0.0.1:8080")
//	...
//	sbd, err := archive.Get(ctx, oda.SBDefinition, "sbd-mvp01-20200325-00001")
//	if oda.CodeOf(err) == oda.NotFound {
//
// A call retries by itself only when that is safe: when it reads, and when it
// writes under a key, by which the archive recognises a repetition. Store has
// no key, so it is retried only if no connection was made.
//
// The package needs no other module.
package client
