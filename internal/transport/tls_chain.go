package transport

import (
	"crypto/x509"
	"errors"
)

// VerifyChain returns an error if the certificates of another server are not trusted.
func VerifyChain(certs []*x509.Certificate, authorities *x509.CertPool) error {
	if len(certs) == 0 {
		return errors.New("the server has no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range certs[1:] {
		between.AddCert(c)
	}
	_, err := certs[0].Verify(x509.VerifyOptions{Roots: authorities, Intermediates: between,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	return err
}
