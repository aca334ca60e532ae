package server

import (
	"context"
	"net"
	"time"
)

// DialNode implements migratecommand.Host.
func (srv *Server) DialNode(addr string, timeout time.Duration) (net.Conn, error) {
	return srv.tls.Dial(context.Background(), addr, timeout, srv.config.Get().TLS.Cluster)
}
