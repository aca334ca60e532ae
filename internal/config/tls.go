package config

import (
	"crypto/tls"
	"errors"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/doors/door"
)

// WantsTLS reports whether anything uses TLS.
func (s *Settings) WantsTLS() bool {
	return s.TLS.wanted() || slices.ContainsFunc(door.Kinds(), func(k *door.Kind) bool {
		return s.DoorTLS(k) && s.DoorAddress(k) != ""
	})
}

// TLSSettings are the directives tls-*.
type TLSSettings struct {
	Port                          int // 0 = no TLS
	CertFile, KeyFile, KeyPass    string
	ClientCertFile, ClientKeyFile string // for connections that the server opens; "" = as for clients
	ClientKeyPass                 string
	CAFile, CADir                 string // certificate authorities of the other side
	AuthClients                   tls.ClientAuthType
	AuthClientsUser               CertificateUser
	Protocols                     []string // as written; empty = 1.2 and 1.3
	Ciphers, CipherSuites         string   // up to TLS 1.2, and of TLS 1.3; "" = those of crypto/tls
	Groups                        string   // of key exchange; "" = those of crypto/tls
	Replication, Cluster          bool     // the link to the master, and MIGRATE
}

// CertificateUser says which name in a client's certificate is its user's.
type CertificateUser uint8

// The values of tls-auth-clients-user.
const (
	NoCertificateUser CertificateUser = iota // clients authenticate by themselves
	UserOfCommonName                         // the common name of the subject
	UserOfURI                                // the first URI among the alternative names that is an enabled user
)

// tlsProtocols are the names of versions in tls-protocols.
var tlsProtocols = []string{"TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"}

// ErrTLSProtocols is the error for an invalid value of tls-protocols.
var ErrTLSProtocols = errors.New("argument(s) must be neighbours among the following: " +
	strings.Join(tlsProtocols, ", "))

// TLSVersions returns the oldest and the newest named version. There must be no gap between them.
func TLSVersions(names []string) (oldest, newest uint16, ok bool) {
	if len(names) == 0 {
		return tls.VersionTLS12, tls.VersionTLS13, true // the defaults of crypto/tls
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

// wanted reports whether anything but doors uses TLS.
func (s *TLSSettings) wanted() bool { return s.Port != 0 || s.Replication || s.Cluster }

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
			option[tls.ClientAuthType]{"no", tls.NoClientCert},
			option[tls.ClientAuthType]{"yes", tls.RequireAndVerifyClientCert},
			option[tls.ClientAuthType]{"optional", tls.VerifyClientCertIfGiven}),
		choice("tls-auth-clients-user", "off", func(s *Settings) *CertificateUser { return &s.TLS.AuthClientsUser },
			option[CertificateUser]{"CN", UserOfCommonName},
			option[CertificateUser]{"URI", UserOfURI},
			option[CertificateUser]{"off", NoCertificateUser}).ours(),
		{name: "tls-protocols", initial: `""`, parse: func(s *Settings, words []string) error {
			s.TLS.Protocols = strings.Fields(words[0])
			return nil
		}, show: func(s *Settings) string { return strings.Join(s.TLS.Protocols, " ") }},
		text("tls-ciphers", "", func(s *Settings) *string { return &s.TLS.Ciphers }),
		text("tls-ciphersuites", "", func(s *Settings) *string { return &s.TLS.CipherSuites }),
		text("tls-groups", "", func(s *Settings) *string { return &s.TLS.Groups }).ours(),
		yesNo("tls-replication", "no", func(s *Settings) *bool { return &s.TLS.Replication }),
		yesNo("tls-cluster", "no", func(s *Settings) *bool { return &s.TLS.Cluster }),
	}
)

// TcpPort returns the port that INFO shows: that of TCP, or without it that of TLS.
func (s *Settings) TcpPort() int {
	if s.Network.Port == 0 {
		return s.TLS.Port
	}
	return s.Network.Port
}

// TLSNames returns the names of the directives tls-*.
func TLSNames() (names []string) {
	for _, d := range tlsDirectives {
		names = append(names, d.name)
	}
	return names
}
