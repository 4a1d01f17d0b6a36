// Package rawjson reads JSON text without changing it. A Scanner walks over a
// document once, checks every byte of it, and tells where values begin and end,
// so that the archive can keep what it received and splice in only what it
// owns. Nothing else in the project parses the body of a request.
//
// The scanner is stricter than encoding/json, because a document that two
// readers understand differently must not enter an archive: it refuses
// duplicate keys at every depth, invalid UTF-8, lone surrogates, a byte order
// mark, data behind the document, and nesting beyond a bound. The fuzz test
// holds it against an independent reader.
package rawjson
