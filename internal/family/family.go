// Package family says in which family of addresses a listener belongs.
package family

import (
	"net"
	"net/netip"
)

// Network returns the network for net.Listen at an address of TCP, a host and a port: that of the family of its host, so
// that 0.0.0.0 takes no connections of IPv6, and :: none of IPv4. It is "tcp" if the host is a name, or is missing.
func Network(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "tcp"
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return "tcp"
	case ip.Is4() || ip.Is4In6():
		return "tcp4"
	}
	return "tcp6"
}
