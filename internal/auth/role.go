package auth

import (
	"fmt"
	"slices"
	"strings"

	"oda"
)

// Role is what a caller may do, or what an operation needs. Each role includes the
// ones before it.
type Role uint8

// The roles.
const (
	NoRole   Role = iota // of a caller that may do nothing
	Anyone               // needed where everybody may call, also without credentials
	Reader               // reads
	Recorder             // opens ExecutionBlocks and records into them
	Editor               // stores anything
	Admin
)

var roleNames = [...]string{"", "anyone", "reader", "recorder", "editor", "admin"}

func (r Role) String() string { return roleNames[r] }

// UnmarshalText parses the name of a role that a caller can have.
func (r *Role) UnmarshalText(text []byte) error {
	i := slices.Index(roleNames[:], string(text))
	if i < int(Reader) {
		return fmt.Errorf("%q is not a role; the roles are %s", text, strings.Join(roleNames[Reader:], ", "))
	}
	*r = Role(i)
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Grant adds the roles among names to the caller. In claims and groups a role is
// written oda-ROLE, or oda-ROLE:TELESCOPE where it is bound to a telescope. Other
// names are ignored.
func (c *Caller) Grant(names ...string) {
	for _, name := range names {
		text, ours := strings.CutPrefix(name, "oda-")
		if !ours {
			continue
		}
		text, telescope, bound := strings.Cut(text, ":")
		var role Role
		if role.UnmarshalText([]byte(text)) != nil || bound && !oda.ValidTelescope(telescope) {
			continue
		}
		if !bound {
			c.Role = max(c.Role, role)
			continue
		}
		if c.Bound == nil {
			c.Bound = make(map[string]Role)
		}
		c.Bound[telescope] = max(c.Bound[telescope], role)
	}
}
