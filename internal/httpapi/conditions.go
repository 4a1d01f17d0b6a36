package httpapi

import (
	"net/http"

	"oda"
	"oda/internal/content"
)

// condition parses If-Match and If-None-Match.
func condition(h http.Header) oda.Condition {
	return oda.Condition{Match: content.IfMatch(h), NoneMatch: content.IfNoneMatch(h)}
}

// checkConditions refuses a condition that the operation does not support, since
// it would be carried out as if the condition held. If-None-Match is harmless on
// a read without an entity tag: it always holds.
func (c *call) checkConditions() error {
	for _, name := range [...]string{"If-Match", "If-None-Match"} {
		if len(c.r.Header[name]) == 0 || c.op.TakesHeader(name) || name == "If-None-Match" && c.op.Method == http.MethodGet {
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
