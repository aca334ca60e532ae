package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/files"
	"github.com/atomredis/atomredis/internal/transport"
)

var (
	errTLSUpdate = errors.New("Unable to update TLS configuration. Check server logs.")
	errTLSNoCA   = errors.New("tls-auth-clients, tls-replication and tls-cluster need tls-ca-cert-file or tls-ca-cert-dir")
)

// tlsState is what the directives and the files that they name amount to.
type tlsState struct {
	server, client *tls.Config // for clients, and for connections that the server opens
	by             config.TLSSettings
	files          files.States // as they were before they were read
}

// load reads the files that the settings name.
func loadTLS(s *config.TLSSettings) (*tlsState, error) {
	st := &tlsState{by: *s, files: files.Stat(tlsFiles(s)...)}
	common, err := commonTLS(s)
	if err != nil {
		return nil, err
	}
	st.server, st.client = common, common.Clone()
	cert, err := transport.LoadCertificate(s.CertFile, s.KeyFile, s.KeyPass)
	if err != nil {
		return nil, fmt.Errorf("tls-cert-file and tls-key-file: %w", err)
	}
	st.server.Certificates, st.client.Certificates = []tls.Certificate{cert}, []tls.Certificate{cert}
	if s.ClientCertFile != "" {
		if cert, err = transport.LoadCertificate(s.ClientCertFile, s.ClientKeyFile, s.ClientKeyPass); err != nil {
			return nil, fmt.Errorf("tls-client-cert-file and tls-client-key-file: %w", err)
		}
		st.client.Certificates = []tls.Certificate{cert}
	}
	st.server.ClientAuth = s.AuthClients
	if s.AuthClients == tls.NoClientCert && !s.Replication && !s.Cluster {
		return st, nil
	}
	authorities, err := tlsAuthorities(s)
	if err != nil {
		return nil, err
	}
	st.server.ClientCAs = authorities
	// Any name in a certificate of the authority is accepted, because masters are configured by address.
	st.client.InsecureSkipVerify = true
	st.client.VerifyConnection = func(c tls.ConnectionState) error { return transport.VerifyChain(c.PeerCertificates, authorities) }
	return st, nil
}

// ofPeers is for connections that servers of the group open: each must show a certificate.
func (st *tlsState) ofPeers() *tls.Config {
	c := st.server.Clone()
	c.ClientAuth = tls.RequireAndVerifyClientCert
	return c
}

// common returns what both directions have in common.
func commonTLS(s *config.TLSSettings) (*tls.Config, error) {
	c := new(tls.Config)
	var ok bool
	if c.MinVersion, c.MaxVersion, ok = config.TLSVersions(s.Protocols); !ok {
		return nil, fmt.Errorf("tls-protocols: %w", config.ErrTLSProtocols)
	}
	if s.Ciphers != "" {
		var err error
		if c.CipherSuites, err = transport.CipherSuites(s.Ciphers); err != nil {
			return nil, fmt.Errorf("tls-ciphers: %w", err)
		}
	}
	if s.CipherSuites != "" && c.MaxVersion >= tls.VersionTLS13 {
		if err := transport.CheckTLS13Suites(s.CipherSuites); err != nil {
			return nil, fmt.Errorf("tls-ciphersuites: %w", err)
		}
	}
	return c, nil
}

// authorities returns the certificates of those who certify others.
func tlsAuthorities(s *config.TLSSettings) (*x509.CertPool, error) {
	if s.CAFile == "" && s.CADir == "" {
		return nil, errTLSNoCA
	}
	pool := x509.NewCertPool()
	if s.CAFile != "" {
		pem, err := os.ReadFile(s.CAFile)
		if err != nil {
			return nil, fmt.Errorf("tls-ca-cert-file: %w", err)
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls-ca-cert-file: no certificate in %s", s.CAFile)
		}
	}
	if s.CADir == "" {
		return pool, nil
	}
	files, err := os.ReadDir(s.CADir)
	if err != nil {
		return nil, fmt.Errorf("tls-ca-cert-dir: %w", err)
	}
	found := false
	for _, f := range files {
		pem, err := os.ReadFile(filepath.Join(s.CADir, f.Name()))
		found = err == nil && pool.AppendCertsFromPEM(pem) || found
	}
	if !found {
		return nil, fmt.Errorf("tls-ca-cert-dir: no certificate in %s", s.CADir)
	}
	return pool, nil
}

// files returns the names of the files that load reads.
func tlsFiles(s *config.TLSSettings) []string {
	var names []string
	for _, name := range []string{s.CertFile, s.KeyFile, s.ClientCertFile, s.ClientKeyFile, s.CAFile, s.CADir} {
		if name != "" {
			names = append(names, name)
		}
	}
	if s.CADir != "" {
		in, _ := os.ReadDir(s.CADir)
		for _, f := range in {
			names = append(names, filepath.Join(s.CADir, f.Name()))
		}
	}
	return names
}

// tlsDiffers reports whether files must be read again. Only new connections see the change.
func tlsDiffers(s *config.TLSSettings, old *config.TLSSettings) bool {
	a, b := *s, *old
	a.Port, b.Port = 0, 0
	return !reflect.DeepEqual(a, b)
}

// followTLS has new connections follow the settings about TLS.
func (srv *Server) followTLS() {
	names := config.TLSNames()
	for _, k := range door.Kinds() {
		names = append(names, k.DirectiveNames()...)
	}
	srv.config.Apply(func(old, set *config.Settings) (func() error, error) {
		before := srv.tls.Load()
		return func() error { srv.tls.Store(before); return nil }, srv.updateTLS(old, set)
	}, names...)
}

// updateTLS reads the files anew if a directive has been set, or if they are needed from now on.
func (srv *Server) updateTLS(old, set *config.Settings) error {
	if !set.WantsTLS() || old.WantsTLS() && !tlsDiffers(&set.TLS, &old.TLS) && !set.RereadFiles {
		return nil
	}
	st, err := loadTLS(&set.TLS)
	if err != nil {
		srv.log.Error("the TLS configuration cannot be used", "error", err.Error())
		return tlsChangeError()
	}
	srv.tls.Store(st)
	srv.files.start(srv)
	return nil
}

// tlsConfigFor returns what a new connection of a client uses.
func (srv *Server) tlsConfigFor(*tls.ClientHelloInfo) (*tls.Config, error) {
	return srv.tls.Load().server, nil
}

// rereadTLS reads the files again if one of them is not as it was. What cannot be used is left alone until it changes
// once more.
func (srv *Server) rereadTLS() {
	st := srv.tls.Load()
	if st == nil {
		return
	}
	now := files.Stat(tlsFiles(&st.by)...)
	if now.Equal(st.files) || now.Equal(srv.files.refused) {
		return
	}
	next, err := loadTLS(&st.by)
	if err != nil {
		srv.files.refused = now
		srv.log.Error("cannot load a changed TLS file; keeping the previous one",
			"error", err.Error())
		return
	}
	if srv.tls.CompareAndSwap(st, next) { // otherwise a client has set something else meanwhile
		srv.log.Info("reloaded changed TLS files")
	}
}

// tlsChangeError is why a change of a directive that concerns TLS cannot take effect; the log says more.
var tlsChangeError = sync.OnceValue(func() config.ChangeError {
	e := config.ChangeError{}
	for _, name := range config.TLSNames() {
		e[name] = errTLSUpdate
	}
	for _, k := range door.Kinds() {
		e[k.AddressDirective()], e[k.Directive()+"-tls"] = errTLSUpdate, errTLSUpdate
	}
	return e
})
