package server

import (
	"context"
	"crypto/tls"
	"net"
	"time"
)

// dial connects to another server, from bind-source-addr if that is set, and with TLS if secure is set.
func (srv *Server) dial(ctx context.Context, address string, timeout time.Duration, secure bool) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var dialer net.Dialer
	if source := srv.config.Get().Network.BindSourceAddr; source != "" {
		from, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(source, "0"))
		if err != nil {
			return nil, err
		}
		dialer.LocalAddr = from
	}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil || !secure {
		return conn, err
	}
	protected := tls.Client(conn, srv.tls.Client())
	if err := protected.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return protected, nil
}

// DialNode implements migratecommand.Host.
func (srv *Server) DialNode(addr string, timeout time.Duration) (net.Conn, error) {
	return srv.dial(context.Background(), addr, timeout, srv.config.Get().TLS.Cluster)
}
