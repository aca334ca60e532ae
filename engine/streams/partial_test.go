package streams

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine/delta"
)

// storedParts returns a stream's stored parts, in the order of the names.
func storedParts(s *Stream) (parts [][2]string) {
	s.eachPart(func(name string) {
		data, _ := s.AppendPart(nil, name)
		parts = append(parts, [2]string{strings.Clone(name), string(data)})
	})
	slices.SortFunc(parts, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return parts
}

// read reads a lack as from a store: from the last part that is not after from.
func read(t *testing.T, parts [][2]string, l Lack) *Blocks {
	from, to, reverse := l.Between()
	r := NewBlocks(l)
	step, i := 1, 0
	if reverse {
		step, i = -1, len(parts)-1
		for i >= 0 && parts[i][0] > string(to) {
			i--
		}
	} else {
		for i+1 < len(parts) && parts[i+1][0] <= string(from) {
			i++
		}
	}
	for ; i >= 0 && i < len(parts); i += step {
		if !reverse && parts[i][0] > string(to) {
			break
		}
		more, err := r.Add([]byte(parts[i][0]), []byte(parts[i][1]), 3)
		require.NoError(t, err)
		if !more || reverse && parts[i][0] <= string(from) {
			break
		}
	}
	return r
}

// A stream with only the needed blocks in memory has the same entries as the whole stream, and changes like it.
func TestPartOfAStreamIsLikeTheWhole(t *testing.T) {
	limits := Limits{Entries: 3}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		whole := New()
		for i := range 20 + r.IntN(100) {
			require.NoError(t, whole.Append(ID{uint64(i + 1), 0}, [][]byte{[]byte("f"), []byte("v")}, limits))
		}
		whole.CreateGroup([]byte("g"), ID{3, 0}, 3)
		for range r.IntN(20) {
			whole.Delete(ID{uint64(r.IntN(120)), 0})
		}
		stored := storedParts(whole)
		some := NewPartial(whole.Len(), delta.NewLog(1, &delta.Epochs{}))
		require.NoError(t, some.SetRest(func(yield func(name, data []byte) bool) {
			for _, p := range stored {
				if p[0][0] != kindBlock && !yield([]byte(p[0]), []byte(p[1])) {
					return
				}
			}
		}))
		need := func(n Stretch) {
			for {
				l, lacks := some.Lack(n)
				if !lacks {
					return
				}
				require.NoError(t, some.Reach(read(t, stored, l)), "seed %d, %+v", seed, n)
			}
		}
		id := func() ID { return ID{uint64(r.IntN(130)), uint64(r.IntN(2))} }
		entries := func(s *Stream, n Stretch) (ids []ID) {
			s.Range(n.From, n.To, n.Reverse, func(e Entry) bool {
				ids = append(ids, e.ID)
				return len(ids) != n.N
			})
			return ids
		}
		for range 30 {
			n := Stretch{From: id(), To: id(), N: r.IntN(8), Reverse: r.IntN(2) == 0}
			switch r.IntN(8) {
			case 0:
				n.From = MinID
			case 1:
				n.To = MaxID
			case 2: // parts that are in memory and not stored
				next := ID{whole.LastID().Ms + 1, 0}
				need(Stretch{To: MaxID, N: 1, Reverse: true})
				for _, s := range []*Stream{whole, some} {
					require.NoError(t, s.Append(next, [][]byte{[]byte("f"), []byte("v")}, limits))
				}
			case 3:
				gone := id()
				need(Stretch{From: gone, To: gone})
				require.Equal(t, whole.Delete(gone), some.Delete(gone))
			case 4:
				n := r.IntN(5)
				need(Stretch{To: MaxID, N: n + 1})
				need(Stretch{To: MaxID, N: 1, Reverse: true})
				require.Equal(t, whole.TrimByLength(whole.Len()-n, Trim{}), some.TrimByLength(some.Len()-n, Trim{}))
			}
			need(n)
			require.Equal(t, entries(whole, n), entries(some, n), "seed %d, %+v", seed, n)
			require.Equal(t, whole.Len(), some.Len())
		}
		l := NewLoader()
		for _, p := range stored {
			require.NoError(t, l.Add([]byte(p[0]), []byte(p[1])))
		}
		again, err := l.Finish(nil)
		require.NoError(t, err)
		require.NoError(t, some.Fill(again))
		require.Equal(t, storedParts(whole), storedParts(some), "seed %d", seed)
		require.Nil(t, some.Known())
	}
}
