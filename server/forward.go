package server

import "github.com/atomredis/atomredis/internal/session"

// The methods of the server that package internal/cluster/forward needs.

// forwardHost is the server as forward.Host.
type forwardHost Server

// Leaders implements forward.Host.
func (h *forwardHost) Leaders(shard string) []string {
	if shard != "" {
		return h.shards.Servers(shard)
	}
	if leader := h.group.members.Status().Leader; leader != "" {
		return []string{leader}
	}
	return nil
}

// Refuse implements forward.Host. The client's own server has checked protected-mode.
func (h *forwardHost) Refuse() string { return (*Server)(h).refuse(h.sessions.Clients.Len(), false) }

// NewForwarder implements session.Host.
func (srv *Server) NewForwarder(s *session.Session, shard string) session.Forwarder {
	return srv.forwards.NewForwarder(s, shard)
}
