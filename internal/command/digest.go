package command

import (
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"

	"github.com/atomredis/atomredis/engine"
)

// Digest computes DEBUG DIGEST: a hash that equals Redis's for the same data. Mixed values depend on their order, XORed
// ones do not.
type Digest [sha1.Size]byte

// Xor adds data; its order does not matter.
func (d *Digest) Xor(data []byte) {
	for i, b := range sha1.Sum(data) {
		d[i] ^= b
	}
}

// Mix appends data; its order matters.
func (d *Digest) Mix(data []byte) {
	d.Xor(data)
	*d = sha1.Sum(d[:])
}

// MixNumber appends a number.
func (d *Digest) MixNumber(n uint32) { d.Mix(binary.BigEndian.AppendUint32(nil, n)) }

// String returns the digest in hexadecimal digits.
func (d *Digest) String() string { return hex.EncodeToString(d[:]) }

// Value adds a value and whether it expires.
func (d *Digest) Value(e *engine.Entry) {
	k := kinds[e.Type()]
	d.MixNumber(k.Number)
	k.Digest(d, e)
	if e.Deadline() != 0 {
		d.Xor([]byte("!!expire!!"))
	}
}

// Pair adds a pair; the order of pairs does not matter.
func (d *Digest) Pair(a, b []byte) {
	var pair Digest
	pair.Mix(a)
	pair.Mix(b)
	d.Xor(pair[:])
}
