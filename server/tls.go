package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"

	"github.com/atomredis/atomredis/door"
)

// TLSSettings are the directives tls-*.
type TLSSettings struct {
	Port                          int // 0 = no TLS
	CertFile, KeyFile, KeyPass    string
	ClientCertFile, ClientKeyFile string // of connections that the server opens; "" = as for clients
	ClientKeyPass                 string
	CAFile, CADir                 string // of those who certify the other side
	AuthClients                   tls.ClientAuthType
	Protocols                     []string // as written; empty = 1.2 and 1.3
	Ciphers, CipherSuites         string   // up to TLS 1.2, and of TLS 1.3; "" = those of crypto/tls
	Replication, Cluster          bool     // the link to the master, and MIGRATE
}

// tlsProtocols are the names of versions in tls-protocols.
var tlsProtocols = []string{"TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"}

var (
	errTLSProtocols = errors.New("argument(s) must be neighbours among the following: " + strings.Join(tlsProtocols, ", "))
	errTLSUpdate    = errors.New("Unable to update TLS configuration. Check server logs.")
	errTLSNoCA      = errors.New("tls-auth-clients, tls-replication and tls-cluster need tls-ca-cert-file or tls-ca-cert-dir")
)

// tlsVersions returns the oldest and the newest version that is named. There must be no gap between them.
func tlsVersions(names []string) (oldest, newest uint16, ok bool) {
	if len(names) == 0 {
		return tls.VersionTLS12, tls.VersionTLS13, true // those of crypto/tls
	}
	var named [4]bool
	for _, name := range names {
		i := indexFold(tlsProtocols, name)
		if i < 0 {
			return 0, 0, false
		}
		named[i] = true
	}
	for i, is := range named {
		version := uint16(tls.VersionTLS10 + i)
		switch {
		case is && oldest == 0:
			oldest, newest = version, version
		case is && newest != version-1:
			return 0, 0, false
		case is:
			newest = version
		}
	}
	return oldest, newest, true
}

func indexFold(list []string, word string) int {
	for i, w := range list {
		if strings.EqualFold(w, word) {
			return i
		}
	}
	return -1
}

// wanted reports whether anything but doors uses TLS.
func (s *TLSSettings) wanted() bool { return s.Port != 0 || s.Replication || s.Cluster }

// tlsState is what the directives and the files that they name amount to.
type tlsState struct {
	server, client *tls.Config // for clients, and for connections that the server opens
	by             TLSSettings
	files          fileStates // as they were before they were read
}

// load reads the files that the settings name.
func (s *TLSSettings) load() (*tlsState, error) {
	st := &tlsState{by: *s, files: statFiles(s.files())}
	common, err := s.common()
	if err != nil {
		return nil, err
	}
	st.server, st.client = common, common.Clone()
	cert, err := loadCertificate(s.CertFile, s.KeyFile, s.KeyPass)
	if err != nil {
		return nil, fmt.Errorf("tls-cert-file and tls-key-file: %w", err)
	}
	st.server.Certificates, st.client.Certificates = []tls.Certificate{cert}, []tls.Certificate{cert}
	if s.ClientCertFile != "" {
		if cert, err = loadCertificate(s.ClientCertFile, s.ClientKeyFile, s.ClientKeyPass); err != nil {
			return nil, fmt.Errorf("tls-client-cert-file and tls-client-key-file: %w", err)
		}
		st.client.Certificates = []tls.Certificate{cert}
	}
	st.server.ClientAuth = s.AuthClients
	if s.AuthClients == tls.NoClientCert && !s.Replication && !s.Cluster {
		return st, nil
	}
	authorities, err := s.authorities()
	if err != nil {
		return nil, err
	}
	st.server.ClientCAs = authorities
	// Whoever an authority has certified is trusted, whatever its name is: masters are configured by address.
	st.client.InsecureSkipVerify = true
	st.client.VerifyConnection = func(c tls.ConnectionState) error { return verifyChain(c.PeerCertificates, authorities) }
	return st, nil
}

// common returns what both directions have in common.
func (s *TLSSettings) common() (*tls.Config, error) {
	c := new(tls.Config)
	var ok bool
	if c.MinVersion, c.MaxVersion, ok = tlsVersions(s.Protocols); !ok {
		return nil, fmt.Errorf("tls-protocols: %w", errTLSProtocols)
	}
	if s.Ciphers != "" {
		var err error
		if c.CipherSuites, err = cipherSuites(s.Ciphers); err != nil {
			return nil, fmt.Errorf("tls-ciphers: %w", err)
		}
	}
	if s.CipherSuites != "" && c.MaxVersion >= tls.VersionTLS13 {
		if err := checkTLS13Suites(s.CipherSuites); err != nil {
			return nil, fmt.Errorf("tls-ciphersuites: %w", err)
		}
	}
	return c, nil
}

// authorities returns the certificates of those who certify others.
func (s *TLSSettings) authorities() (*x509.CertPool, error) {
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

// verifyChain returns why the certificates of another server are not trusted.
func verifyChain(certs []*x509.Certificate, authorities *x509.CertPool) error {
	if len(certs) == 0 {
		return errors.New("the server has no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range certs[1:] {
		between.AddCert(c)
	}
	_, err := certs[0].Verify(x509.VerifyOptions{Roots: authorities, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	return err
}

// files returns the names of the files that load reads.
func (s *TLSSettings) files() []string {
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

// differ reports whether files must be read again. New connections see what has changed, others do not.
func (s *TLSSettings) differ(old *TLSSettings) bool {
	a, b := *s, *old
	a.Port, b.Port = 0, 0
	return !reflect.DeepEqual(a, b)
}

// updateTLS reads the files anew if a directive has been set, or if they are needed from now on.
func (srv *Server) updateTLS(old, set *Settings) error {
	if !set.wantsTLS() || old.wantsTLS() && !set.TLS.differ(&old.TLS) && !set.rereadFiles {
		return nil
	}
	st, err := set.TLS.load()
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

// rereadTLS reads the files again if one of them is not as it was. What cannot be used is left alone until it changes once more.
func (srv *Server) rereadTLS() {
	st := srv.tls.Load()
	if st == nil {
		return
	}
	now := statFiles(st.by.files())
	if now.equal(st.files) || now.equal(srv.files.refused) {
		return
	}
	next, err := st.by.load()
	if err != nil {
		srv.files.refused = now
		srv.log.Error("a file of the TLS configuration has changed and cannot be used; the one before stays in use", "error", err.Error())
		return
	}
	if srv.tls.CompareAndSwap(st, next) { // otherwise a client has set something else meanwhile
		srv.log.Info("files of the TLS configuration have changed and were read again")
	}
}

var (
	// tlsDirectives are the directives of TLS.
	tlsDirectives = []*directive{
		number("tls-port", "0", 0, 65535, func(s *Settings) *int { return &s.TLS.Port }),
		file("tls-cert-file", func(s *Settings) *string { return &s.TLS.CertFile }),
		file("tls-key-file", func(s *Settings) *string { return &s.TLS.KeyFile }),
		text("tls-key-file-pass", "", func(s *Settings) *string { return &s.TLS.KeyPass }),
		file("tls-client-cert-file", func(s *Settings) *string { return &s.TLS.ClientCertFile }),
		file("tls-client-key-file", func(s *Settings) *string { return &s.TLS.ClientKeyFile }),
		text("tls-client-key-file-pass", "", func(s *Settings) *string { return &s.TLS.ClientKeyPass }),
		file("tls-ca-cert-file", func(s *Settings) *string { return &s.TLS.CAFile }),
		file("tls-ca-cert-dir", func(s *Settings) *string { return &s.TLS.CADir }),
		choice("tls-auth-clients", "yes", func(s *Settings) *tls.ClientAuthType { return &s.TLS.AuthClients },
			option[tls.ClientAuthType]{"no", tls.NoClientCert}, option[tls.ClientAuthType]{"yes", tls.RequireAndVerifyClientCert},
			option[tls.ClientAuthType]{"optional", tls.VerifyClientCertIfGiven}),
		{name: "tls-protocols", initial: `""`, parse: func(s *Settings, words []string) error {
			s.TLS.Protocols = strings.Fields(words[0])
			return nil
		}, show: func(s *Settings) string { return strings.Join(s.TLS.Protocols, " ") }},
		text("tls-ciphers", "", func(s *Settings) *string { return &s.TLS.Ciphers }),
		text("tls-ciphersuites", "", func(s *Settings) *string { return &s.TLS.CipherSuites }),
		yesNo("tls-replication", "no", func(s *Settings) *bool { return &s.TLS.Replication }),
		yesNo("tls-cluster", "no", func(s *Settings) *bool { return &s.TLS.Cluster }),
	}
)

// tlsChangeError is why a change of a directive that concerns TLS cannot take effect; the log says more.
var tlsChangeError = sync.OnceValue(func() changeError {
	e := changeError{}
	for _, d := range tlsDirectives {
		e[d.name] = errTLSUpdate
	}
	for _, k := range door.Kinds() {
		e[k.Directive()], e[k.Directive()+"-tls"] = errTLSUpdate, errTLSUpdate
	}
	return e
})

// tcpPort returns the port that INFO names: that of TCP, or if there is none that of TLS.
func (s *Settings) tcpPort() int {
	if s.Port == 0 {
		return s.TLS.Port
	}
	return s.Port
}
