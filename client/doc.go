// Package client is the archive's interface in Go: one typed call for each
// operation of the API description. Package recorder, below it, records without
// making a telescope wait for an archive.
//
// Start reading at New and Client.Get. A document goes in and comes out as the
// bytes that are stored; beside them a Document has what the archive manages.
// What the archive refuses comes back as an *oda.Error, whose Code says what is
// wrong and whose Detail says what to do; where no answer came at all, the
// error is ErrNoAnswer.
//
//	archive, err := client.New("http://127.0.0.1:8080")
//	...
//	sbd, err := archive.Get(ctx, oda.SBDefinition, "sbd-mvp01-20200325-00001")
//	if oda.CodeOf(err) == oda.NotFound {
//
// A call tries again by itself only where that is safe: reading, and writing
// under a key, by which the archive knows a repetition. Storing under an
// identifier has no key, so it is sent again only where no connection was made.
//
// It needs no module but this one.
package client
