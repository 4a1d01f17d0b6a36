package auth_test

import (
	"net/http"
	"net/netip"
	"testing"

	"oda/internal/auth"
)

func TestAnAddressIsBelievedFromAProxyOnly(t *testing.T) {
	t.Parallel()
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for name, test := range map[string]struct {
		peer      string
		forwarded []string
		from, via string
	}{
		"no proxy":                      {"192.0.2.1:7", nil, "192.0.2.1", ""},
		"a client that claims another":  {"192.0.2.1:7", []string{"198.51.100.9"}, "192.0.2.1", ""},
		"a proxy":                       {"10.0.0.1:7", []string{"192.0.2.1"}, "192.0.2.1", "10.0.0.1"},
		"a proxy that maps addresses":   {"[::ffff:10.0.0.1]:7", []string{"192.0.2.1"}, "192.0.2.1", "::ffff:10.0.0.1"},
		"two proxies":                   {"10.0.0.1:7", []string{"192.0.2.1, 10.0.0.2"}, "192.0.2.1", "10.0.0.1"},
		"two headers":                   {"10.0.0.1:7", []string{"198.51.100.9", "192.0.2.1"}, "192.0.2.1", "10.0.0.1"},
		"a client forges, a proxy adds": {"10.0.0.1:7", []string{"198.51.100.9, 192.0.2.1"}, "192.0.2.1", "10.0.0.1"},
		"a proxy that says nothing":     {"10.0.0.1:7", nil, "10.0.0.1", ""},
		"a proxy that says nonsense":    {"10.0.0.1:7", []string{"unknown"}, "10.0.0.1", ""},
		"IPv6":                          {"[fd00::1]:7", []string{"2001:db8::5"}, "2001:db8::5", "fd00::1"},
	} {
		r := &http.Request{RemoteAddr: test.peer, Header: http.Header{"X-Forwarded-For": test.forwarded}}
		if from, via := auth.Address(r, proxies); from != test.from || via != test.via {
			t.Errorf("%s: from %s via %s, want %s via %s", name, from, via, test.from, test.via)
		}
	}
}
