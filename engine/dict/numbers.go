package dict

import "math"

// Numbers finds numbers by the hashes of their keys, for callers that number elements in another order than Table. It
// has no keys: the caller compares them. The zero value is empty and ready to use.
type Numbers struct{ index index }

// MaxNumber is the highest number.
const MaxNumber = math.MaxUint32 - 1

// HashOf returns the hash of a key; it differs in each process.
func HashOf(key string) Hash { return Hash(hashOf(key)) }

// Add adds a number. The same number may be added several times, also under equal hashes.
func (n *Numbers) Add(hash Hash, number uint32) { n.index.insert(uint32(hash), int(number)) }

// Remove removes one occurrence of a number, which must be present.
func (n *Numbers) Remove(hash Hash, number uint32) { n.index.remove(uint32(hash), int(number)) }

// Find returns a number with this hash for which the function is returns true.
func (n *Numbers) Find(hash Hash, is func(number uint32) bool) (number uint32, ok bool) {
	if len(n.index.dir) == 0 {
		return 0, false
	}
	slots := n.index.segment(uint32(hash)).slots
	mask := uint32(len(slots) - 1)
	for p := uint32(hash) & mask; ; p++ {
		s := slots[p&mask]
		if s == 0 {
			return 0, false
		}
		if slotHash(s) == uint32(hash) && is(uint32(slotEntry(s))) {
			return uint32(slotEntry(s)), true
		}
	}
}

// MemoryUsage returns how many bytes the index takes.
func (n *Numbers) MemoryUsage() int { return n.index.memoryUsage() }
