// Package family finds the address family of a listener.
package family

import (
	"net"
	"net/netip"
)

// Network returns the network for net.Listen at a TCP address, a host and a port. It follows the host's family, so
// that 0.0.0.0 accepts no IPv6 connections, and :: no IPv4 connections. It is "tcp" if the host is a name or
// missing.
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
