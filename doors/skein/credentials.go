package skein

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"
)

// Name is the common name of an application's certificate. Clients of Skein expect it from every server.
const Name = "skein-internal"

// validity is how long a certificate is valid.
const validity = 365 * 24 * time.Hour

// NewCredentials makes a key and a certificate in the form of Skein, for the server and the clients of an application.
// Both are PEM; the key is PKCS8 without a password. The certificate is valid for 365 days.
func NewCredentials() (cert, key []byte, err error) {
	secret, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 159))
	if err != nil {
		return nil, nil, err
	}
	now := time.Now().UTC()
	name := pkix.Name{CommonName: Name}
	template := &x509.Certificate{SerialNumber: serial, Subject: name, Issuer: name, NotBefore: now.Add(-time.Minute),
		NotAfter: now.Add(validity), SignatureAlgorithm: x509.SHA256WithRSA}
	cert, err = x509.CreateCertificate(rand.Reader, template, template, &secret.PublicKey, secret)
	if err != nil {
		return nil, nil, err
	}
	if key, err = x509.MarshalPKCS8PrivateKey(secret); err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), nil
}
