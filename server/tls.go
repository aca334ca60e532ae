package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// TLSSettings are the directives tls-*. Which ciphers are used is up to crypto/tls.
type TLSSettings struct {
	Port              int // 0 = no TLS
	CertFile, KeyFile string
	CAFile, CADir     string // of those who certify clients
	AuthClients       tls.ClientAuthType
	Protocols         []string // as written; empty = 1.2 and 1.3
}

// tlsProtocols are the names of versions in tls-protocols.
var tlsProtocols = []string{"TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"}

var (
	errTLSProtocols = errors.New("argument(s) must be neighbours among the following: " + strings.Join(tlsProtocols, ", "))
	errTLSUpdate    = errors.New("Unable to update TLS configuration. Check server logs.")
	tlsChangeError  = changeError{"tls-port": errTLSUpdate, "tls-cert-file": errTLSUpdate, "tls-key-file": errTLSUpdate, "tls-ca-cert-file": errTLSUpdate,
		"tls-ca-cert-dir": errTLSUpdate, "tls-auth-clients": errTLSUpdate, "tls-protocols": errTLSUpdate}
	errTLSNoCA = errors.New("tls-auth-clients needs tls-ca-cert-file or tls-ca-cert-dir")
)

// parseTLSProtocols reads tls-protocols.
func parseTLSProtocols(s *Settings, words []string) error {
	words = strings.Fields(strings.Join(words, " ")) // in a file they are one, in quotes
	if _, _, ok := tlsVersions(words); !ok {
		return errTLSProtocols
	}
	s.TLS.Protocols = words
	return nil
}

// tlsVersions returns the oldest and the newest version that is named. There must be no gap between them.
func tlsVersions(names []string) (oldest, newest uint16, ok bool) {
	if len(names) == 0 {
		return tls.VersionTLS12, tls.VersionTLS13, true
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

// load reads the files that the settings name.
func (s *TLSSettings) load() (*tls.Config, error) {
	c := &tls.Config{ClientAuth: s.AuthClients}
	cert, err := tls.LoadX509KeyPair(s.CertFile, s.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("tls-cert-file and tls-key-file: %w", err)
	}
	c.Certificates = []tls.Certificate{cert}
	c.MinVersion, c.MaxVersion, _ = tlsVersions(s.Protocols)
	if s.AuthClients == tls.NoClientCert {
		return c, nil
	}
	if s.CAFile == "" && s.CADir == "" {
		return nil, errTLSNoCA
	}
	c.ClientCAs = x509.NewCertPool()
	if s.CAFile != "" {
		pem, err := os.ReadFile(s.CAFile)
		if err != nil {
			return nil, fmt.Errorf("tls-ca-cert-file: %w", err)
		}
		if !c.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls-ca-cert-file: no certificate in %s", s.CAFile)
		}
	}
	if s.CADir != "" {
		files, err := os.ReadDir(s.CADir)
		if err != nil {
			return nil, fmt.Errorf("tls-ca-cert-dir: %w", err)
		}
		found := false
		for _, f := range files {
			pem, err := os.ReadFile(filepath.Join(s.CADir, f.Name()))
			found = err == nil && c.ClientCAs.AppendCertsFromPEM(pem) || found
		}
		if !found {
			return nil, fmt.Errorf("tls-ca-cert-dir: no certificate in %s", s.CADir)
		}
	}
	return c, nil
}

// differ reports whether files must be read again. New connections see what has changed, others do not.
func (s *TLSSettings) differ(old *TLSSettings) bool {
	return s.CertFile != old.CertFile || s.KeyFile != old.KeyFile || s.CAFile != old.CAFile || s.CADir != old.CADir ||
		s.AuthClients != old.AuthClients || strings.Join(s.Protocols, " ") != strings.Join(old.Protocols, " ")
}

// updateTLS reads the certificates anew if the directives have changed, or if they are needed from now on.
func (srv *Server) updateTLS(old, set *Settings) error {
	if set.TLS.Port == 0 || old.TLS.Port != 0 && !set.TLS.differ(&old.TLS) {
		return nil
	}
	c, err := set.TLS.load()
	if err != nil {
		srv.log.Error("the TLS configuration cannot be used", "error", err.Error())
		return tlsChangeError
	}
	srv.tls.Store(c)
	return nil
}

// tlsDirectives are the directives of TLS that can be chosen.
func tlsDirectives() []*directive {
	return []*directive{
		number("tls-port", "0", 0, 65535, func(s *Settings) *int { return &s.TLS.Port }),
		text("tls-cert-file", "", func(s *Settings) *string { return &s.TLS.CertFile }),
		text("tls-key-file", "", func(s *Settings) *string { return &s.TLS.KeyFile }),
		text("tls-ca-cert-file", "", func(s *Settings) *string { return &s.TLS.CAFile }),
		text("tls-ca-cert-dir", "", func(s *Settings) *string { return &s.TLS.CADir }),
		choice("tls-auth-clients", "yes", func(s *Settings) *tls.ClientAuthType { return &s.TLS.AuthClients },
			option[tls.ClientAuthType]{"no", tls.NoClientCert}, option[tls.ClientAuthType]{"yes", tls.RequireAndVerifyClientCert},
			option[tls.ClientAuthType]{"optional", tls.VerifyClientCertIfGiven}),
		{name: "tls-protocols", many: true, parse: parseTLSProtocols,
			show: func(s *Settings) string { return strings.Join(s.TLS.Protocols, " ") }},
	}
}

// tcpPort returns the port that INFO names: that of TCP, or if there is none that of TLS.
func (s *Settings) tcpPort() int {
	if s.Port == 0 {
		return s.TLS.Port
	}
	return s.Port
}
