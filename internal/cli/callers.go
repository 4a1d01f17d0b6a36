package cli

import (
	"fmt"
	"net/netip"
)

// network is a range of addresses, or one address.
type network netip.Prefix

// UnmarshalText parses a network. Addresses of IPv4 that are written in IPv6, as
// ::ffff:10.0.0.7, are those of IPv4.
func (n *network) UnmarshalText(text []byte) error {
	prefix, err := netip.ParsePrefix(string(text))
	if err != nil {
		var one netip.Addr
		if one, err = netip.ParseAddr(string(text)); err == nil {
			prefix, err = one.Prefix(one.BitLen())
		}
	}
	if err == nil && prefix.Addr().Is4In6() {
		const before = 96 // bits
		prefix, err = prefix.Addr().Unmap().Prefix(prefix.Bits() - before)
	}
	if err != nil {
		return fmt.Errorf("%q is not a network; write it as 10.0.0.0/24, 10.0.0.7 or fd00::/64", text)
	}
	*n = network(prefix.Masked())
	return nil
}

// String returns the network as it is written.
func (n network) String() string { return netip.Prefix(n).String() }

func prefixes(networks []network) []netip.Prefix {
	list := make([]netip.Prefix, len(networks))
	for i, n := range networks {
		list[i] = netip.Prefix(n)
	}
	return list
}
