package peer

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net"
	"net/netip"
)

// Servers with a secret prove to each other that they know it, and do not send it. The hello and its answer each have a
// nonce, and the hello names the dialled server. Then the dialling server sends a second hello with its proof, and the
// dialled server sends a second answer with its own. The dialling server proves first, so a stranger that connects gets
// no proof to guess the secret from. A server refuses a hello that names another server, so nobody can relay a connection
// to it.

// The names of fields for authentication.
const (
	authTo    = "to" // the address that was dialled
	authNonce = "nonce"
	authProof = "proof"
)

const nonceSize = 32

// The two ends of a connection, for which proofs differ.
const (
	dialling  = "dialling"
	accepting = "accepting"
)

var (
	errNoSecret    = &Error{Untrusted, "raft-secret is needed, and the connecting server has none"}
	errWrongSecret = &Error{Untrusted, "the servers have different values of raft-secret"}
	errUnproven    = &Error{Untrusted, "the other server has no raft-secret, and this one has"}
)

// transcript is what a proof is about.
type transcript struct {
	purpose      Purpose
	to           string // the address that was dialled
	asked, given []byte // the nonces of the dialling and of the accepting server
}

// isFor returns the reason to refuse a proof that is meant for another server than the one with an address, which has the
// connection raw. CLUSTER MEET dials an IP address: it must be that of the connection.
func (t transcript) isFor(addr string, raw net.Conn) error {
	if t.to == addr {
		return nil
	}
	dialled, err := netip.ParseAddrPort(t.to)
	if tcp, ok := raw.LocalAddr().(*net.TCPAddr); ok && err == nil {
		local := tcp.AddrPort()
		if dialled == netip.AddrPortFrom(local.Addr().Unmap(), local.Port()) {
			return nil
		}
	}
	return &Error{Untrusted, fmt.Sprintf("%q was dialled, which is not the raft-addr of the server that answers", t.to)}
}

// proof returns the proof of one end.
func (t transcript) proof(secret, end string) []byte {
	m := hmac.New(sha256.New, []byte(secret))
	for _, part := range [][]byte{[]byte("atomredis raft-secret"), []byte(end), []byte(t.purpose), []byte(t.to), t.asked,
		t.given} {
		m.Write(AppendPart(nil, part))
	}
	return m.Sum(nil)
}

// fits reports whether fields have the proof of one end.
func (t transcript) fits(secret, end string, fields []Field) bool {
	return hmac.Equal(t.proof(secret, end), authOf(fields, authProof))
}

// prove sends the dialling server's proof, and checks that of the other one.
func prove(raw net.Conn, secret string, t transcript) error {
	if len(t.given) != nonceSize {
		return errUnproven
	}
	h := Hello{Auth: []Field{{authProof, t.proof(secret, dialling)}}}
	if _, err := raw.Write(h.Append(nil)); err != nil {
		return err
	}
	a, err := ReadAnswer(raw)
	switch {
	case err != nil:
		return fmt.Errorf("the answer to a proof of raft-secret: %w", err)
	case a.Version == 0:
		return &a.Refusal
	case !t.fits(secret, accepting, a.Auth):
		return errWrongSecret
	}
	return nil
}

// proven reads the dialling server's proof and returns the reason to refuse it.
func proven(raw net.Conn, secret string, t transcript) (refusal, err error) {
	h, err := ReadHello(raw)
	if err == nil && !t.fits(secret, dialling, h.Auth) {
		refusal = errWrongSecret
	}
	return refusal, err
}

func newNonce() []byte {
	b := make([]byte, nonceSize)
	_, _ = rand.Read(b) // it never fails
	return b
}

// authOf returns the value of a field, or nil.
func authOf(fields []Field, name string) []byte {
	for _, f := range fields {
		if f.Name == name {
			return f.Value
		}
	}
	return nil
}
