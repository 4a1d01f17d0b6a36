package content

import (
	"net/http"
	"slices"
	"strings"

	"oda"
)

// Tag returns the entity tag of a state in an encoding.
func Tag(state string, e *Encoding) string {
	if e == nil {
		return `"` + state + `"`
	}
	return `"` + state + "-" + e.Name + `"`
}

// IfMatch returns the states in the header, or nil if there is no header. The
// comparison is strong: a weak tag never matches.
func IfMatch(h http.Header) *oda.Tags { return states(h["If-Match"], "") }

// IfNoneMatch returns the states in the header, or nil if there is no header.
func IfNoneMatch(h http.Header) *oda.Tags { return states(h["If-None-Match"], "W/") }

// Has reports whether the client has a state, in any encoding.
func Has(h http.Header, state string) bool {
	tags := IfNoneMatch(h)
	return tags != nil && (tags.Any || slices.Contains(tags.List, state))
}

// states parses a list of entity tags, and removes the prefix from tags that
// have it.
func states(values []string, prefix string) *oda.Tags {
	if len(values) == 0 {
		return nil
	}
	tags := &oda.Tags{}
	for _, value := range values {
		for tag := range strings.SplitSeq(value, ",") { // our tags have no commas
			if tag = strings.TrimSpace(tag); tag == "*" {
				tags.Any = true
			} else if tag = strings.TrimPrefix(tag, prefix); !strings.HasPrefix(tag, "W/") {
				tags.List = append(tags.List, stateOf(strings.Trim(tag, `"`)))
			}
		}
	}
	return tags
}

// stateOf strips what an encoding adds to the tag of a state.
func stateOf(tag string) string {
	for _, e := range Encodings {
		tag = strings.TrimSuffix(tag, "-"+e.Name)
	}
	return tag
}
