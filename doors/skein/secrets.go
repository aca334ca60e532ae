package skein

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/files"
)

// secrets has the certificate and the key that the server and all clients share. New connections use the current
// content of the files. Unusable files are ignored until they change again.
type secrets struct {
	host door.Host

	mu        sync.Mutex // protects what follows
	in        pair
	was       files.States // the files in use when they were read
	refused   files.States // the last unusable files
	current   *tls.Config
	refusedIn pair
}

// pair names two files.
type pair struct{ cert, key string }

var errNoSecrets = errors.New("skein-cert and skein-key must name the files of a certificate and its key: " +
	"atomredis skein credentials makes them")

// newSecrets reads the files that the directives name.
func newSecrets(h door.Host) (*secrets, error) {
	s := &secrets{host: h}
	return s, s.read(s.named())
}

func (s *secrets) named() pair {
	return pair{s.host.Setting("skein-cert"), s.host.Setting("skein-key")}
}

// read reads files. mu is locked, or s is not shared yet.
func (s *secrets) read(p pair) error {
	if p.cert == "" || p.key == "" {
		return errNoSecrets
	}
	was := files.Stat(p.cert, p.key)
	cert, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil {
		return fmt.Errorf("skein-cert and skein-key: %w", err)
	}
	only := x509.NewCertPool()
	only.AddCert(cert.Leaf)
	s.in, s.was = p, was
	s.current = &tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: only, NextProtos: []string{"h2"},
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
	return nil
}

// config returns the TLS configuration of the listener.
func (s *secrets) config() *tls.Config { return &tls.Config{GetConfigForClient: s.forClient} }

// forClient returns the TLS configuration of a new connection.
func (s *secrets) forClient(*tls.ClientHelloInfo) (*tls.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.named()
	now := files.Stat(p.cert, p.key)
	if p == s.in && now.Equal(s.was) || p == s.refusedIn && now.Equal(s.refused) {
		return s.current, nil
	}
	if err := s.read(p); err != nil {
		s.refusedIn, s.refused = p, now
		s.host.Log().Error("a file of skein-cert and skein-key has changed and cannot be used; the one before stays in use",
			"error", err.Error())
	}
	return s.current, nil
}
