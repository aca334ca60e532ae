package command

import (
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"

	"github.com/atomredis/atomredis/engine"
)

// Digest is that of DEBUG DIGEST in the making: a hash of the data that is the same as Redis's for the same data.
// What is mixed in depends on the order, what is XORed in does not.
type Digest [sha1.Size]byte

// Xor adds data without regard to its place.
func (d *Digest) Xor(data []byte) {
	for i, b := range sha1.Sum(data) {
		d[i] ^= b
	}
}

// Mix adds data behind what is there.
func (d *Digest) Mix(data []byte) {
	d.Xor(data)
	*d = sha1.Sum(d[:])
}

// MixNumber adds a number behind what is there.
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

// Pair adds two things that belong together, without regard to the place of the pair.
func (d *Digest) Pair(a, b []byte) {
	var pair Digest
	pair.Mix(a)
	pair.Mix(b)
	d.Xor(pair[:])
}
