package auth

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"oda"
)

// The headers in which a proxy names the user and their groups.
const (
	forwardedUser   = "X-Forwarded-User"
	forwardedGroups = "X-Forwarded-Groups"
)

// proxy is the way to know callers by the headers of a proxy that has authenticated
// them. From any other address the headers mean nothing.
type proxy []netip.Prefix

// Caller implements Way.
func (p proxy) Caller(r *http.Request) (*Caller, bool, error) {
	if !p.trusts(r.RemoteAddr) {
		return nil, false, nil
	}
	user, err := one(r.Header, forwardedUser)
	if err != nil {
		return nil, false, err
	}
	groups, err := one(r.Header, forwardedGroups)
	if err != nil {
		return nil, false, err
	}
	if user == "" {
		return nil, false, nil
	}
	if !oda.ValidUser(user) {
		return nil, false, invalidUser()
	}
	c := &Caller{User: user, Name: user, Means: ByProxy}
	for group := range strings.SplitSeq(groups, ",") {
		c.Grant(strings.TrimSpace(group))
	}
	return c, true, nil
}

// trusts reports whether a connection comes from the proxy.
func (p proxy) trusts(remote string) bool {
	from, err := netip.ParseAddrPort(remote)
	return err == nil && contain(p, from.Addr())
}

// one returns the value of a header, empty if there is none. A header that is there
// twice may be half forged, so it is refused even if the values are the same.
func one(h http.Header, name string) (string, error) {
	switch values := h[name]; len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], nil
	default:
		return "", &oda.Error{
			Code: oda.InvalidRequest, Detail: fmt.Sprintf("The header %s is given more than once. Nothing was stored. Give it once.", name),
			Faults: []oda.Fault{{Pointer: "header:" + name, Detail: "is given more than once"}},
		}
	}
}

func invalidUser() error {
	return &oda.Error{
		Code: oda.InvalidUser, Detail: "The acting user must be " + oda.UserRule + ". Nothing was stored.",
		Faults: []oda.Fault{{Pointer: "header:" + forwardedUser, Detail: "is not a valid user name"}},
	}
}
