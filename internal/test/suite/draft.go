package suite

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"oda"
)

// role is the meaning of a member of a draft.
type role int

// The roles. The managed fields are in the order in which they are added.
const (
	version role = iota
	createdBy
	createdOn
	lastModifiedBy
	lastModifiedOn
	identifier
	metadata
	requestResponses
	other
)

// fields are the managed fields by name.
var fields = [...]string{"version", "created_by", "created_on", "last_modified_by", "last_modified_on"}

// member is one member of a draft, with the white space around its parts.
type member struct {
	role             role
	key              string // as spelled, in quotes
	lead, mid, trail string // white space
	value            string // value of a member without a role, as spelled
	null             bool
	spelling         int      // number of the spelling of the value
	inner            []member // members of the metadata
	tail             string   // white space in an object without members
}

// draft is a document in pieces, to be written as a caller sends it.
type draft struct {
	kind    oda.Kind
	members []member
	tail    string // white space in a document without members
	records []string
}

// find returns the member with this role, or nil.
func find(members []member, r role) *member {
	for i := range members {
		if members[i].role == r {
			return &members[i]
		}
	}
	return nil
}

// listed reports whether the draft has a list of records.
func (d draft) listed() bool { return find(d.members, requestResponses) != nil }

// has reports whether a managed field is present and not null.
func (d draft) has(field role) bool {
	m := find(d.members, metadata)
	if m == nil || m.null {
		return false
	}
	f := find(m.inner, field)
	return f != nil && !f.null
}

// sent writes the draft as sent by a caller who claims this metadata.
func (d draft) sent(id string, claim oda.Metadata) string {
	var value func(m member) string
	value = func(m member) string {
		switch {
		case m.role == other:
			return m.value
		case m.null:
			return "null"
		case m.role == identifier:
			return `"` + id + `"`
		case m.role == metadata:
			return object(m.inner, m.tail, value)
		case m.role == requestResponses:
			return "[" + m.lead + strings.Join(d.records, m.mid+","+m.lead) + m.mid + "]"
		}
		return spelled(claim, m.role, m.spelling)
	}
	return object(d.members, d.tail, value)
}

// object writes members. White space before the closing brace stays there.
func object(members []member, tail string, value func(member) string) string {
	var parts []string
	for i, m := range members {
		text := m.lead + m.key + m.mid + ":" + m.mid + value(m)
		if i < len(members)-1 {
			text += m.trail
		} else {
			tail = m.trail
		}
		parts = append(parts, text)
	}
	return "{" + strings.Join(parts, ",") + tail + "}"
}

// spelled writes a managed field. Spelling 0 is the archive's own; the others
// are for callers.
func spelled(m oda.Metadata, field role, spelling int) string {
	switch field {
	case version:
		return fmt.Sprintf([]string{"%d", "%d.0", "%de0", "%d.00E+0"}[spelling], m.Version)
	case createdBy:
		return quoted(m.CreatedBy, spelling)
	case lastModifiedBy:
		return quoted(m.LastModifiedBy, spelling)
	case createdOn:
		return timed(m.CreatedOn.Time(), spelling)
	default:
		return timed(m.LastModifiedOn.Time(), spelling)
	}
}

func quoted(text string, spelling int) string {
	if spelling == 0 {
		return quote(text)
	}
	b, err := json.Marshal(text) // escapes more than necessary
	if err != nil {
		panic("suite: a user cannot be written: " + err.Error())
	}
	return string(b)
}

func timed(t time.Time, spelling int) string {
	switch spelling {
	case 1:
		return t.In(time.FixedZone("", 5*3600+1800)).Format(`"2006-01-02T15:04:05.999999999-07:00"`)
	case 2:
		return t.Format(`"2006-01-02 15:04:05.000000000"`)
	case 3:
		return t.Format(`"2006-01-02T15:04:05.000000+00:00"`)
	}
	return t.Format(`"2006-01-02T15:04:05.000000Z"`)
}
