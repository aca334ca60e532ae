package transport

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"hash"
	"os"
)

// Certificates whose private key may be encrypted with a password, in the two forms that OpenSSL writes.

var (
	errKeyEncrypted = errors.New("the key is encrypted and there is no password: set tls-key-file-pass, or tls-client-key-file-pass")
	errKeyPassword  = errors.New("the password of the key is wrong")
	errKeyCipher    = errors.New("the key is encrypted in a way that is not supported: convert it with openssl pkcs8 -topk8 -v2 aes256")
)

// LoadCertificate reads a certificate, with those that certify it, and its key, both as PEM. password is for a key that
// is encrypted (PKCS #8, or the older form of OpenSSL).
func LoadCertificate(certFile, keyFile, password string) (tls.Certificate, error) {
	cert, err := os.ReadFile(certFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	if key, err = decryptKey(key, password); err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// decryptKey returns a file of keys with the first key that is encrypted decrypted.
func decryptKey(file []byte, password string) ([]byte, error) {
	for rest := file; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return file, nil
		}
		modern := block.Type == "ENCRYPTED PRIVATE KEY"
		//lint:ignore SA1019 Redis reads such keys, and users have them.
		if !modern && !x509.IsEncryptedPEMBlock(block) {
			continue
		}
		if password == "" {
			return nil, errKeyEncrypted
		}
		if modern {
			der, err := decryptPKCS8(block.Bytes, password)
			return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
		}
		der, err := x509.DecryptPEMBlock(block, []byte(password)) //lint:ignore SA1019 what users have
		if err != nil {
			return nil, errKeyPassword
		}
		return pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: der}), nil
	}
}

// The structures of PKCS #8 and of PBES2 in PKCS #5 (RFC 5958, RFC 8018).
type (
	encryptedKey struct {
		Algorithm pkix.AlgorithmIdentifier
		Data      []byte
	}
	pbes2Params  struct{ Derivation, Encryption pkix.AlgorithmIdentifier }
	pbkdf2Params struct {
		Salt       []byte
		Iterations int
		KeyLength  int                      `asn1:"optional"`
		PRF        pkix.AlgorithmIdentifier `asn1:"optional"`
	}
)

// Names of algorithms.
var (
	oidPBES2  = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 13}
	oidPBKDF2 = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 12}
	// pbkdf2Hashes are the functions of HMAC by the name of the pseudo-random function.
	pbkdf2Hashes = map[string]func() hash.Hash{
		"":                    sha1.New,
		"1.2.840.113549.2.7":  sha1.New,
		"1.2.840.113549.2.9":  sha256.New,
		"1.2.840.113549.2.10": sha512.New384,
		"1.2.840.113549.2.11": sha512.New,
	}
	// aesKeyLengths are the lengths in bytes of the keys of AES in CBC mode.
	aesKeyLengths = map[string]int{"2.16.840.1.101.3.4.1.2": 16, "2.16.840.1.101.3.4.1.22": 24,
		"2.16.840.1.101.3.4.1.42": 32}
)

// maxKeyIterations bounds the time that deriving a key takes.
const maxKeyIterations = 10_000_000

func decryptPKCS8(der []byte, password string) ([]byte, error) {
	var key encryptedKey
	var params pbes2Params
	var derivation pbkdf2Params
	var iv []byte
	if !unmarshal(der, &key) || !key.Algorithm.Algorithm.Equal(oidPBES2) ||
		!unmarshal(key.Algorithm.Parameters.FullBytes, &params) ||
		!params.Derivation.Algorithm.Equal(oidPBKDF2) || !unmarshal(params.Derivation.Parameters.FullBytes, &derivation) {
		return nil, errKeyCipher
	}
	newHash := pbkdf2Hashes[derivation.PRF.Algorithm.String()]
	length := aesKeyLengths[params.Encryption.Algorithm.String()]
	if newHash == nil || length == 0 || !unmarshal(params.Encryption.Parameters.FullBytes, &iv) ||
		len(iv) != aes.BlockSize ||
		len(key.Data) == 0 || len(key.Data)%aes.BlockSize != 0 || derivation.Iterations < 1 ||
		derivation.Iterations > maxKeyIterations {
		return nil, errKeyCipher
	}
	secret, err := pbkdf2.Key(newHash, password, derivation.Salt, derivation.Iterations, length)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	plain := make([]byte, len(key.Data))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, key.Data)
	padding := int(plain[len(plain)-1])
	if padding == 0 || padding > aes.BlockSize {
		return nil, errKeyPassword
	}
	plain = plain[:len(plain)-padding]
	if _, err := x509.ParsePKCS8PrivateKey(plain); err != nil {
		return nil, errKeyPassword
	}
	return plain, nil
}

func unmarshal(der []byte, to any) bool {
	rest, err := asn1.Unmarshal(der, to)
	return err == nil && len(rest) == 0
}
