package dict

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// requireSoundIndex checks the invariants of an index over entries 0..n-1.
func requireSoundIndex(t require.TestingT, x *index, n int) {
	if len(x.dir) == 0 {
		require.Zero(t, n)
		return
	}
	require.Len(t, x.dir, 1<<x.depth)
	seen, deepest, segments, slots := 0, 0, 0, 0
	for i := 0; i < len(x.dir); {
		s := x.dir[i]
		require.LessOrEqual(t, s.depth, x.depth)
		width := 1 << (x.depth - s.depth)
		require.Zero(t, i%width)
		for _, other := range x.dir[i : i+width] {
			if s != other {
				require.Fail(t, "a segment's places are not adjacent")
			}
		}
		if s.depth == x.depth {
			deepest++
		}
		count, mask := 0, uint32(len(s.slots)-1)
		require.Zero(t, uint32(len(s.slots))&mask)
		for p, v := range s.slots {
			if v == 0 {
				continue
			}
			count++
			if slotHash(v)>>(32-s.depth) != uint32(i/width) || slotEntry(v) >= n {
				require.Fail(t, "a slot in the wrong segment or for no entry")
			}
			for q := slotHash(v) & mask; q != uint32(p); q = (q + 1) & mask {
				if s.slots[q] == 0 {
					require.Fail(t, "a hole before a slot's place")
				}
			}
		}
		require.Equal(t, s.count, count)
		require.Less(t, count, len(s.slots))
		seen += count
		slots += len(s.slots)
		segments++
		i += width
	}
	require.Equal(t, [2]int{segments, slots}, [2]int{x.segments, x.slots})
	require.Equal(t, x.deepest, deepest)
	require.True(t, deepest > 0, "the directory is deeper than any segment")
	require.Equal(t, n, seen)
}

// Hashes that agree in many bits split segments unevenly and make long runs.
func TestIndexStaysSoundWithClusteredHashes(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		var x index
		var hashes []uint32
		masks := []uint32{0xffffffff, 0xfffffff0, 0x00ffffff, 0x03ffffff}
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				mask := rapid.SampledFrom(masks).Draw(t, "mask")
				h := rapid.Uint32().Draw(t, "hash")
				for range rapid.IntRange(1, 2000).Draw(t, "n") {
					h = h*1664525 + 1013904223
					x.insert(h&mask, len(hashes))
					hashes = append(hashes, h&mask)
				}
			},
			"remove": func(t *rapid.T) {
				at := rapid.IntRange(0, 1<<20).Draw(t, "at")
				for range rapid.IntRange(0, len(hashes)).Draw(t, "n") {
					last := len(hashes) - 1
					i := at % len(hashes)
					x.remove(hashes[i], i)
					if i != last {
						x.renumber(hashes[last], last, i)
						hashes[i] = hashes[last]
					}
					hashes = hashes[:last]
				}
			},
			"clone": func(*rapid.T) { x = x.clone() },
			"":      func(t *rapid.T) { requireSoundIndex(t, &x, len(hashes)) },
		})
	})
}

func TestIndexTakesManyEqualHashes(t *testing.T) {
	var x index
	const n = 3000
	for i := range n {
		x.insert(0xdeadbeef, i)
	}
	require.LessOrEqual(t, x.depth, maxDepth)
	requireSoundIndex(t, &x, n)
	for i := n - 1; i >= 0; i-- {
		x.remove(0xdeadbeef, i)
	}
	requireSoundIndex(t, &x, 0)
	require.Zero(t, x.depth)
}
