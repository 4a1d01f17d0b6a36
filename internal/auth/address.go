package auth

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Address returns where a request comes from. If it comes through a proxy that
// is believed, this is the address that the proxy has added to X-Forwarded-For, and via
// is the address of the proxy. What the client itself has written there is not believed.
func Address(r *http.Request, proxies []netip.Prefix) (from, via string) {
	peer, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		peer = r.RemoteAddr
	}
	if !among(peer, proxies) {
		return peer, ""
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		hop = strings.TrimSpace(hop)
		if _, err := netip.ParseAddr(hop); err != nil {
			break
		}
		if !among(hop, proxies) {
			return hop, peer
		}
	}
	return peer, ""
}

func among(address string, prefixes []netip.Prefix) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && contain(prefixes, ip)
}

func contain(prefixes []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(ip.Unmap().WithZone("")) })
}
