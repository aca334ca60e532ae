package shell

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Address is a server with the user and the database to use.
type Address struct {
	Host     string
	Port     int
	Socket   string // path of a Unix socket, instead of host and port
	User     string // "" for the default user
	Password string // "" for none
	DB       int
	RESP3    bool
	TLS      *TLS // nil for none
}

// TLS has the names and certificates of a TLS connection. Files are in PEM.
type TLS struct {
	ServerName string // name that the server's certificate must have; "" for the host
	CAFile     string // certificates of authorities; "" for CADir, or those of the system
	CADir      string
	CertFile   string // certificate of this client
	KeyFile    string
	Insecure   bool // accept any certificate of the server
}

// ParseURI reads redis://[[user:]password@]host[:port][/db], or rediss:// for TLS, into the address.
func (a *Address) ParseURI(uri string) error {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" {
		return errors.New("invalid URI: redis://[[user:]password@]host[:port][/db] is expected")
	}
	if u.Scheme == "rediss" && a.TLS == nil {
		a.TLS = &TLS{}
	}
	if host := u.Hostname(); host != "" {
		a.Host = host
	}
	if u.Port() != "" {
		if a.Port, err = strconv.Atoi(u.Port()); err != nil {
			return fmt.Errorf("invalid port %q", u.Port())
		}
	}
	if password, ok := u.User.Password(); ok {
		a.User, a.Password = u.User.Username(), password
	} else if name := u.User.Username(); name != "" {
		a.Password = name
	}
	if db := strings.Trim(u.Path, "/"); db != "" {
		if a.DB, err = strconv.Atoi(db); err != nil {
			return fmt.Errorf("invalid database %q", db)
		}
	}
	return nil
}

// String returns the address as prompts and errors show it.
func (a *Address) String() string {
	if a.Socket != "" {
		return a.Socket
	}
	return net.JoinHostPort(a.Host, strconv.Itoa(a.Port))
}

func (t *TLS) config(host string) (*tls.Config, error) {
	c := &tls.Config{ServerName: t.ServerName, InsecureSkipVerify: t.Insecure, MinVersion: tls.VersionTLS12}
	if c.ServerName == "" {
		c.ServerName = host
	}
	var files []string
	if t.CADir != "" {
		entries, err := os.ReadDir(t.CADir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if !e.IsDir() {
				files = append(files, filepath.Join(t.CADir, e.Name()))
			}
		}
	}
	if t.CAFile != "" {
		files = []string{t.CAFile}
	}
	if len(files) > 0 {
		c.RootCAs = x509.NewCertPool()
		found := false
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			found = c.RootCAs.AppendCertsFromPEM(content) || found
		}
		if !found {
			return nil, fmt.Errorf("there is no certificate in %s", strings.Join(files, " "))
		}
	}
	if t.CertFile != "" || t.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// conn is a connection. One goroutine reads it until it ends.
type conn struct {
	net.Conn
	replies chan reply // closed when the connection has ended
	err     error      // why it has ended; valid once replies is closed
	stop    chan struct{}
}

const dialTimeout = 10 * time.Second

// dial connects without sending anything.
func (a *Address) dial(ctx context.Context) (net.Conn, error) {
	network, addr := "tcp", a.String()
	if a.Socket != "" {
		network = "unix"
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err == nil && a.TLS != nil {
		var config *tls.Config
		if config, err = a.TLS.config(a.Host); err == nil {
			secured := tls.Client(c, config)
			if err = secured.HandshakeContext(ctx); err == nil {
				return secured, nil
			}
		}
		c.Close()
	}
	if err != nil {
		if call := (*os.SyscallError)(nil); errors.As(err, &call) {
			err = call.Err // the rest repeats the address
		}
		return nil, fmt.Errorf("could not connect to %s: %w", a, err)
	}
	return c, nil
}

var errClosed = errors.New("the server closed the connection")

func newConn(c net.Conn) *conn {
	made := &conn{Conn: c, replies: make(chan reply, 1), stop: make(chan struct{})}
	go made.read()
	return made
}

func (c *conn) read() {
	defer close(c.replies)
	in := bufio.NewReaderSize(c.Conn, 64<<10)
	for {
		r, err := readReply(in)
		if err != nil {
			if c.err = err; errors.Is(err, io.EOF) {
				c.err = errClosed
			}
			return
		}
		select {
		case c.replies <- r:
		case <-c.stop:
			c.err = net.ErrClosed
			return
		}
	}
}

// close closes the connection and ends its goroutine.
func (c *conn) close() {
	close(c.stop)
	c.Conn.Close()
	for range c.replies {
	}
}

// send writes a command.
func (c *conn) send(args []string) error {
	_, err := c.Write(appendCommand(nil, args))
	return err
}

func appendCommand(dst []byte, args []string) []byte {
	dst = fmt.Appendf(dst, "*%d\r\n", len(args))
	for _, arg := range args {
		dst = fmt.Appendf(dst, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return dst
}
