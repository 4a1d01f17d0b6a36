package httpapi

import (
	"net/http"
	"strings"

	"oda"
)

// condition reads If-Match and If-None-Match.
func condition(h http.Header) oda.Condition {
	return oda.Condition{Match: tags(h.Values("If-Match"), false), NoneMatch: tags(h.Values("If-None-Match"), true)}
}

// checkConditions refuses a condition that the operation does not know: it must
// never be carried out as if the condition held. On a read whose answer has no
// entity tag, If-None-Match always holds.
func (c *call) checkConditions() error {
	for _, name := range [...]string{"If-Match", "If-None-Match"} {
		if len(c.r.Header[name]) == 0 || c.op.Takes("header", name) || name == "If-None-Match" && c.op.Method == http.MethodGet {
			continue
		}
		return &oda.Error{
			Code: oda.InvalidRequest, Detail: "This operation does not support " + name + ". Nothing was stored. " +
				"Leave the header out, or use an operation that supports it.",
			Faults: []oda.Fault{{Pointer: "header:" + name, Detail: "is not a parameter of this operation"}},
		}
	}
	return nil
}

// tags reads a list of entity tags, nil where the header is not there. Weak
// tags never match where a strong comparison is asked for.
func tags(values []string, weak bool) *oda.Tags {
	if len(values) == 0 {
		return nil
	}
	list := &oda.Tags{}
	for _, value := range values {
		for tag := range strings.SplitSeq(value, ",") { // our tags have no commas
			tag = strings.TrimSpace(tag)
			if tag == "*" {
				list.Any = true
				continue
			}
			if rest, ok := strings.CutPrefix(tag, "W/"); ok {
				if !weak {
					continue
				}
				tag = rest
			}
			list.List = append(list.List, stored(strings.Trim(tag, `"`)))
		}
	}
	return list
}

// stored strips what a compressed representation adds to the tag of the state.
func stored(tag string) string {
	for _, e := range encodings {
		tag = strings.TrimSuffix(tag, "-"+e.name)
	}
	return tag
}
