//go:build !linux

package server

// newTransport returns a goroutine per client where event loops are not available.
func newTransport(srv *Server, _ int, _ bool) (transport, error) { return newGoroutines(srv), nil }
