package tlsconfig

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/files"
	"github.com/atomredis/atomredis/internal/transport"
)

var errNoCA = errors.New("tls-auth-clients, tls-replication and tls-cluster need tls-ca-cert-file or tls-ca-cert-dir")

// loaded is the configuration made from directives and the files that they name.
type loaded struct {
	server, client *tls.Config // for clients, and for connections that the server opens
	by             config.TLSSettings
	files          files.States // their states before they were read
}

// load reads the files that the settings name.
func load(s *config.TLSSettings) (*loaded, error) {
	l := &loaded{by: *s, files: files.Stat(fileNames(s)...)}
	common, err := bothWays(s)
	if err != nil {
		return nil, err
	}
	l.server, l.client = common, common.Clone()
	cert, err := transport.LoadCertificate(s.CertFile, s.KeyFile, s.KeyPass)
	if err != nil {
		return nil, fmt.Errorf("tls-cert-file and tls-key-file: %w", err)
	}
	l.server.Certificates, l.client.Certificates = []tls.Certificate{cert}, []tls.Certificate{cert}
	if s.ClientCertFile != "" {
		if cert, err = transport.LoadCertificate(s.ClientCertFile, s.ClientKeyFile, s.ClientKeyPass); err != nil {
			return nil, fmt.Errorf("tls-client-cert-file and tls-client-key-file: %w", err)
		}
		l.client.Certificates = []tls.Certificate{cert}
	}
	l.server.ClientAuth = s.AuthClients
	if s.AuthClients == tls.NoClientCert && !s.Replication && !s.Cluster {
		return l, nil
	}
	pool, err := authorities(s)
	if err != nil {
		return nil, err
	}
	l.server.ClientCAs = pool
	// Any name in a certificate of the authority is accepted, because masters are configured by address.
	l.client.InsecureSkipVerify = true
	l.client.VerifyConnection = func(c tls.ConnectionState) error { return transport.VerifyChain(c.PeerCertificates, pool) }
	return l, nil
}

// bothWays returns the common part of the configurations of both directions.
func bothWays(s *config.TLSSettings) (*tls.Config, error) {
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
	if s.Groups != "" {
		var err error
		if c.CurvePreferences, err = transport.Groups(s.Groups); err != nil {
			return nil, fmt.Errorf("tls-groups: %w", err)
		}
	}
	return c, nil
}

// authorities returns the certificates of the authorities.
func authorities(s *config.TLSSettings) (*x509.CertPool, error) {
	if s.CAFile == "" && s.CADir == "" {
		return nil, errNoCA
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

// fileNames returns the names of the files that load reads.
func fileNames(s *config.TLSSettings) []string {
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
