package server

import "github.com/atomredis/atomredis/internal/session"

// The methods of the server that package internal/cluster/forward needs.

// forwardHost is the server as forward.Host.
type forwardHost Server

// Leader implements forward.Host.
func (h *forwardHost) Leader() string { return h.group.members.Status().Leader }

// Refuse implements forward.Host. The client's own server has checked protected-mode.
func (h *forwardHost) Refuse() string { return (*Server)(h).refuse(h.sessions.Clients.Len(), false) }

// NewForwarder implements session.Host.
func (srv *Server) NewForwarder(s *session.Session, shard string) session.Forwarder {
	return srv.forwards.NewForwarder(s, shard)
}
