//go:build !linux

package transport

import "net"

// setBacklog leaves the number of connections that may wait to be accepted to the system: tcp-backlog has no effect.
func setBacklog(net.Listener, int) error { return nil }
