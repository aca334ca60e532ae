package tlsconfig

import (
	"context"
	"crypto/tls"
	"net"
	"time"
)

// Dial connects to another server, from bind-source-addr if that is set, and with TLS if secure is set.
func (t *TLS) Dial(ctx context.Context, address string, timeout time.Duration, secure bool) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var dialer net.Dialer
	if source := t.config.Get().Network.BindSourceAddr; source != "" {
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
	protected := tls.Client(conn, t.Client())
	if err := protected.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return protected, nil
}
