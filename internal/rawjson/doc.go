// Package rawjson parses JSON text without changing it. A Scanner walks over a
// document once, checks every byte, and says where values begin and end, so
// that the archive can store the text as received and splice in only what it
// manages. Nothing else in the project parses request bodies.
//
// The scanner is stricter than encoding/json, because no document may enter an
// archive that two parsers interpret differently. It refuses duplicate keys at
// every depth, invalid UTF-8, lone surrogates, a byte order mark, data after the
// document, and nesting beyond a bound. The fuzz test compares it with an
// independent parser.
package rawjson
