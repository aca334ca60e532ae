package engine

import "math/bits"

// SizeBits is the number of different bit lengths that a size can have.
const SizeBits = 64

// KeySizes counts the keys of a database by type and by the bit length of their size: the length of a string, or a
// number of elements. It visits all keys, and reads values whose size is unknown in memory. The guard must hold all
// shards.
func (g *Guard) KeySizes(db int) map[Type]*[SizeBits]int {
	sizes := map[Type]*[SizeBits]int{}
	for _, t := range [...]Type{String, List, Set, ZSet, Hash} {
		sizes[t] = new([SizeBits]int)
	}
	for i := range g.ks.shards {
		for p := range g.shard(uint8(i)).dbs[db].dict.All() {
			if counts := sizes[(*p).typ]; counts != nil {
				counts[bits.Len(uint((*p).length()))]++
			}
		}
	}
	return sizes
}

// length returns the number of bytes of a string, or of elements of a list, set, sorted set or hash.
func (e *Entry) length() int {
	switch {
	case e.typ != String:
		return e.Count()
	case e.flags&flagUnloaded != 0 && e.unloaded().length != 0:
		return int(e.unloaded().length)
	}
	return len(e.Bytes())
}
