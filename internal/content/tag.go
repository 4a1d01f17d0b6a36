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
func IfMatch(h http.Header) *oda.Tags { return states(h["If-Match"], false) }

// IfNoneMatch returns the states in the header, or nil if there is no header.
func IfNoneMatch(h http.Header) *oda.Tags { return states(h["If-None-Match"], true) }

// Has reports whether the client has a state, in any encoding.
func Has(h http.Header, state string) bool {
	tags := IfNoneMatch(h)
	return tags != nil && (tags.Any || slices.Contains(tags.List, state))
}

// states parses a list of entity tags; weak ones count only if they may. Tags without
// quotes are accepted. What follows a quote that is not closed matches nothing.
func states(values []string, weakToo bool) *oda.Tags {
	if len(values) == 0 {
		return nil
	}
	tags := &oda.Tags{}
	for _, rest := range values {
		if strings.TrimSpace(rest) == "*" {
			tags.Any = true
			continue
		}
		for {
			if rest = strings.TrimLeft(rest, " \t,"); rest == "" {
				break
			}
			tag, weak := strings.CutPrefix(rest, "W/")
			closed := true
			if quoted, ok := strings.CutPrefix(tag, `"`); ok {
				tag, rest, closed = strings.Cut(quoted, `"`) // it may have commas
			} else {
				tag, rest, _ = strings.Cut(tag, ",")
			}
			if closed && (weakToo || !weak) {
				tags.List = append(tags.List, stateOf(strings.TrimSpace(tag)))
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
