package transport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// This file reads lists of ciphers in OpenSSL's form, which tls-ciphers has: names and classes of ciphers
// ("ECDHE+AESGCM"), which are added, or removed ("!", "-"). The order is ignored, because crypto/tls has its own.

// suite is a cipher suite of TLS up to 1.2.
type suite struct {
	id      uint16
	name    string   // OpenSSL's name
	classes []string // that it belongs to
}

// suites are the suites that crypto/tls has.
var suites = func() (list []suite) {
	for _, group := range [][]*tls.CipherSuite{tls.CipherSuites(), tls.InsecureCipherSuites()} {
		for _, s := range group {
			if slices.Contains(s.SupportedVersions, tls.VersionTLS12) {
				list = append(list, newSuite(s))
			}
		}
	}
	return list
}()

// newSuite takes apart a name such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256.
func newSuite(s *tls.CipherSuite) suite {
	exchange, rest, _ := strings.Cut(strings.TrimPrefix(s.Name, "TLS_"), "_WITH_")
	c := suite{id: s.ID, classes: []string{"ALL", s.Name}}
	if !s.Insecure {
		c.classes = append(c.classes, "DEFAULT")
	}
	algorithm, hash := rest, ""
	if i := strings.LastIndexByte(rest, '_'); i >= 0 {
		algorithm, hash = rest[:i], rest[i+1:]
	}
	prefix := ""
	switch exchange {
	case "ECDHE_RSA":
		prefix = "ECDHE-RSA-"
		c.classes = append(c.classes, "ECDHE", "EECDH", "KECDHE", "KEECDH", "ARSA")
	case "ECDHE_ECDSA":
		prefix = "ECDHE-ECDSA-"
		c.classes = append(c.classes, "ECDHE", "EECDH", "KECDHE", "KEECDH", "ECDSA", "AECDSA")
	default:
		c.classes = append(c.classes, "RSA", "KRSA", "ARSA")
	}
	short := strings.ReplaceAll(strings.TrimSuffix(algorithm, "_CBC"), "_", "-")
	switch {
	case strings.HasPrefix(algorithm, "AES_"):
		short = strings.Replace(short, "AES-", "AES", 1)
		size, _, _ := strings.Cut(short, "-")
		c.classes = append(c.classes, "AES", size, "HIGH")
		if strings.HasSuffix(algorithm, "_GCM") {
			c.classes = append(c.classes, "AESGCM")
		}
	case strings.HasPrefix(algorithm, "CHACHA20"):
		short, hash = "CHACHA20-POLY1305", ""
		c.classes = append(c.classes, "CHACHA20", "HIGH")
	case strings.HasPrefix(algorithm, "3DES"):
		short = "DES-CBC3"
		c.classes = append(c.classes, "3DES", "MEDIUM")
	case strings.HasPrefix(algorithm, "RC4"):
		short = "RC4"
		c.classes = append(c.classes, "RC4", "MEDIUM")
	}
	c.name = prefix + short
	if hash != "" {
		c.name += "-" + hash
	}
	switch hash {
	case "SHA":
		c.classes = append(c.classes, "SHA", "SHA1")
	case "SHA256", "SHA384":
		c.classes = append(c.classes, "TLSV1.2")
		if !slices.Contains(c.classes, "AESGCM") {
			c.classes = append(c.classes, hash)
		}
	default:
		c.classes = append(c.classes, "TLSV1.2")
	}
	return c
}

// is reports whether a name, or several classes with + between them, stand for the cipher.
func (c *suite) is(word string) bool {
	if word == c.name {
		return true
	}
	for class := range strings.SplitSeq(strings.ToUpper(word), "+") {
		if !slices.Contains(c.classes, class) {
			return false
		}
	}
	return true
}

var errNoCipher = errors.New("the server has none of these ciphers")

// CipherSuites returns the ciphers of TLS up to 1.2 that a list, written as for OpenSSL, allows.
func CipherSuites(list string) ([]uint16, error) {
	var allowed []uint16
	var banned []uint16
	for _, word := range strings.FieldsFunc(list,
		func(r rune) bool { return r == ':' || r == ',' || r == ' ' || r == ';' }) {
		if word[0] == '@' || word[0] == '+' { // @STRENGTH, or an order
			continue
		}
		name := strings.TrimLeft(word, "!-")
		for _, c := range suites {
			switch {
			case !c.is(name):
			case word[0] == '!':
				banned = append(banned, c.id)
			case word[0] == '-':
				allowed = slices.DeleteFunc(allowed, func(id uint16) bool { return id == c.id })
			case !slices.Contains(allowed, c.id):
				allowed = append(allowed, c.id)
			}
		}
	}
	allowed = slices.DeleteFunc(allowed, func(id uint16) bool { return slices.Contains(banned, id) })
	if len(allowed) == 0 {
		return nil, errNoCipher
	}
	return allowed, nil
}

// tls13Suites are the ciphers of TLS 1.3, of which crypto/tls always offers all.
var tls13Suites = []string{"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}

// CheckTLS13Suites returns an error if a list, of names between colons, lacks a cipher of TLS 1.3 that would be used.
func CheckTLS13Suites(list string) error {
	names := strings.Split(list, ":")
	for _, suite := range tls13Suites {
		if !slices.Contains(names, suite) {
			return fmt.Errorf("TLS 1.3 always has %s here; leave the directive out, or use tls-protocols TLSv1.2 with tls-ciphers", suite)
		}
	}
	return nil
}
