// Package jsondiff says how one JSON document became another: as a JSON Patch
// (RFC 6902) for programs, and as a unified diff for people.
//
// Both documents must be well-formed; nothing is checked again. Numbers are
// compared by their spelling: 1.0 is not 1, and no digit is lost. Nothing is
// decoded: values are pieces of the texts, and a piece that is the same in both
// documents is never looked into.
//
// What a comparison takes is bounded whatever the documents look like. Where the
// best answer would take too long, a longer one is given that is still right:
// lists are compared place by place, or a value is replaced as a whole.
package jsondiff
