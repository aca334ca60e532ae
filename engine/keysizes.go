package engine

import "math/bits"

// SizeBits is one more than the number of bits that a size has at most.
const SizeBits = 64

// KeySizes counts the keys of a database by type and by how many bits the length of a string or the number of elements
// has. It goes through all keys, and reads values whose size is not known in memory. The guard must hold all shards.
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

// length returns how many bytes a string has, or how many elements a list, set, sorted set or hash has.
func (e *Entry) length() int {
	switch {
	case e.typ != String:
		return e.Count()
	case e.flags&flagUnloaded != 0 && e.unloaded().length != 0:
		return int(e.unloaded().length)
	}
	return len(e.Bytes())
}
