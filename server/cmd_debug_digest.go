package server

import (
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/streams"
)

// DEBUG DIGEST: a hash of the data that is the same as Redis's for the same data.

// digest is a hash in the making. What is mixed in depends on the order, what is XORed in does not.
type digest [sha1.Size]byte

// xor adds data without regard to its place.
func (d *digest) xor(data []byte) {
	for i, b := range sha1.Sum(data) {
		d[i] ^= b
	}
}

// mix adds data behind what is there.
func (d *digest) mix(data []byte) {
	d.xor(data)
	*d = sha1.Sum(d[:])
}

func (d *digest) mixNumber(n uint32) { d.mix(binary.BigEndian.AppendUint32(nil, n)) }

func (d *digest) String() string { return hex.EncodeToString(d[:]) }

// typeNumbers are the types as Redis counts them.
var typeNumbers = map[engine.Type]uint32{engine.String: 0, engine.List: 1, engine.Set: 2, engine.ZSet: 3, engine.Hash: 4, engine.Stream: 6}

// value adds a value and whether it expires.
func (d *digest) value(e *engine.Entry) {
	d.mixNumber(typeNumbers[e.Type()])
	switch e.Type() {
	case engine.String:
		d.mix(e.Bytes())
	case engine.List:
		l := e.List()
		l.Range(0, l.Len()-1, func(v []byte) bool {
			d.mix(v)
			return true
		})
	case engine.Set:
		for member := range e.Set().All() {
			d.xor(member)
		}
	case engine.ZSet:
		z := e.ZSet()
		z.RangeByRank(0, z.Len()-1, false, func(member []byte, score float64) bool {
			d.pair(member, appendScore17(nil, score))
			return true
		})
	case engine.Hash:
		for field, value := range e.Hash().All() {
			d.pair(field, value)
		}
	case engine.Stream:
		e.Stream().Range(streams.MinID, streams.MaxID, false, func(entry streams.Entry) bool {
			id := strconv.AppendUint(nil, entry.ID.Ms, 10)
			id = strconv.AppendUint(append(id, '.'), entry.ID.Seq, 10)
			d.mix(id)
			for field, value := range entry.Fields() {
				d.mix(field)
				d.mix(value)
			}
			return true
		})
	}
	if e.Deadline() != 0 {
		d.xor([]byte("!!expire!!"))
	}
}

// pair adds two things that belong together, without regard to the place of the pair.
func (d *digest) pair(a, b []byte) {
	var pair digest
	pair.mix(a)
	pair.mix(b)
	d.xor(pair[:])
}

// appendScore17 appends a score with 17 digits, as C prints it with %.17g.
func appendScore17(dst []byte, score float64) []byte {
	switch {
	case math.IsInf(score, 1):
		return append(dst, "inf"...)
	case math.IsInf(score, -1):
		return append(dst, "-inf"...)
	}
	return strconv.AppendFloat(dst, score, 'g', 17, 64)
}

func debugDigest(c *command.Ctx, _ [][]byte) {
	var all digest
	for db := range serverOf(c).ks.Databases() {
		if c.G.Len(db) == 0 {
			continue
		}
		all.mixNumber(uint32(db))
		c.G.Each(db, func(e *engine.Entry) bool {
			var one digest
			one.mix([]byte(e.Key()))
			one.value(e)
			all.xor(one[:])
			return true
		})
	}
	c.W.Simple(all.String())
}

func debugDigestValue(c *command.Ctx, args [][]byte) {
	c.W.Array(len(args))
	for _, key := range args {
		var d digest
		if e := c.G.Peek(c.DB, key); e != nil {
			d.value(e)
		}
		c.W.Simple(d.String())
	}
}
