package suite

import (
	"fmt"

	"pgregory.net/rapid"

	"oda"
)

// oddValues are values in unusual spellings.
var oddValues = []string{
	`null`, `true`, `0`, `-0`, `0.35e9`, `1E+2`, `123456789012345678901234567890.12345678901234567890`, `""`,
	`"\u00e9é\/\n\ud83d\ude00"`, `"in_PROGRESS"`, `"Draft"`, `"😀 \" \\"`, `[ ]`, `[1, 2 ,null]`, `{ }`, `{"metadata": {"version" : 1}}`,
	`{"request_responses":[{"a":1}] , "eb_id":"x"}`, "[\n\t{\"a\":\r\n1}\n]",
}

// oddKeys are keys that mean nothing to the archive, but for search.
var oddKeys = []string{`"n\u0061me"`, `"telescope"`, `"x_title"`, `"a"`, `""`, `"\u0062"`, `"Metadata"`, `"é"`, `"x y"`, `"$ref"`, `"st\u0061tus"`, `"request"`}

var space = rapid.SampledFrom([]string{"", "", "", " ", "\n", "\t \r\n"})

// keyed writes a key, sometimes with an unnecessary escape.
func keyed(t *rapid.T, name string) string {
	if rapid.IntRange(0, 9).Draw(t, "escape") > 0 {
		return `"` + name + `"`
	}
	return fmt.Sprintf(`"\u%04x%s"`, name[0], name[1:])
}

// anyMember draws the parts that all members have.
func anyMember(t *rapid.T, r role, name string) member {
	m := member{role: r, key: keyed(t, name)}
	m.lead, m.mid, m.trail = space.Draw(t, "lead"), space.Draw(t, "mid"), space.Draw(t, "trail")
	m.spelling = rapid.IntRange(0, 3).Draw(t, "spelling")
	return m
}

// strangers draws members that mean nothing to the archive.
func strangers(t *rapid.T) []member {
	var members []member
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(oddKeys), 0, 3, rapid.ID[string]).Draw(t, "keys") {
		m := anyMember(t, other, "x")
		m.key, m.value = key, rapid.SampledFrom(oddValues).Draw(t, "value")
		members = append(members, m)
	}
	return members
}

// anyRecord draws a record from a small set, so that records repeat.
func anyRecord(t *rapid.T) string {
	return fmt.Sprintf(`{%s"request":%s"r%d"}`, space.Draw(t, "space"), space.Draw(t, "space"), rapid.IntRange(0, 3).Draw(t, "record"))
}

// anyMetadata draws the metadata. If complete, it has all managed fields.
func anyMetadata(t *rapid.T, complete bool) member {
	m := anyMember(t, metadata, "metadata")
	m.tail = space.Draw(t, "tail")
	m.null = !complete && rapid.IntRange(0, 4).Draw(t, "null") == 0
	m.inner = strangers(t)
	for f := range lastModifiedOn + 1 {
		if !complete && rapid.Bool().Draw(t, "missing") {
			continue
		}
		inner := anyMember(t, f, fields[f])
		inner.null = !complete && rapid.IntRange(0, 3).Draw(t, "null") == 0
		m.inner = append(m.inner, inner)
	}
	m.inner = rapid.Permutation(m.inner).Draw(t, "order")
	return m
}

// anyDraft draws a document. If complete, it has all managed fields. With
// records, an ExecutionBlock may list some.
func anyDraft(t *rapid.T, kind oda.Kind, complete, records bool) draft {
	d := draft{kind: kind, members: strangers(t), tail: space.Draw(t, "tail")}
	if rapid.Bool().Draw(t, "identifier") {
		m := anyMember(t, identifier, kind.IDField())
		m.null = rapid.IntRange(0, 3).Draw(t, "null") == 0
		d.members = append(d.members, m)
	}
	if complete || rapid.Bool().Draw(t, "metadata") {
		d.members = append(d.members, anyMetadata(t, complete))
	}
	if kind == oda.ExecutionBlock && records && rapid.Bool().Draw(t, "listed") {
		d.members = append(d.members, anyMember(t, requestResponses, "request_responses"))
		for range rapid.IntRange(0, 5).Draw(t, "records") {
			d.records = append(d.records, anyRecord(t))
		}
	}
	d.members = rapid.Permutation(d.members).Draw(t, "order")
	return d
}
