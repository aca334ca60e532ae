package buffers

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// The bytes are complete however they were split. Until a quarter has arrived, the memory is at most the first part
// or one and a half times what has arrived.
func TestIncoming(t *testing.T) {
	clear(shared[:]) // buffers of other tests have other sizes
	for _, size := range []int{1, firstPart, firstPart + 1, 4*firstPart - 1, 1_000_003, 40 << 20} {
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(uint32(i) * 2654435761 >> 13)
		}
		for _, step := range []int{1000, firstPart, 3 << 20, size + 5} {
			t.Run(fmt.Sprint(size, " by ", step), func(t *testing.T) {
				var in Incoming
				require.False(t, in.Active())
				require.Empty(t, in.Room())
				in.Begin(size, 0)
				require.True(t, in.Active())
				rest, direct := append(append([]byte(nil), want...), "tail"...), false
				for in.Arrived() < size {
					n := min(step, len(rest))
					if direct = !direct; direct {
						n = copy(in.Room(), rest[:n])
						in.Received(n)
						rest = rest[n:]
					} else {
						left := in.Take(rest[:n])
						rest = rest[n-len(left):]
					}
					if arrived := in.Arrived(); size > firstPart && incomingShare*arrived < size {
						require.LessOrEqual(t, in.Memory(), max(arrived+arrived/2, arrived+firstPart))
					}
				}
				require.Empty(t, in.Room())
				require.Equal(t, "tail", string(rest))
				require.True(t, string(want) == string(in.Whole()))
				require.False(t, in.Active())
			})
		}
	}
	var in Incoming
	in.Begin(math.MaxInt, 0)
	require.LessOrEqual(t, in.Memory(), 2*firstPart, "what is only announced takes nothing")
	in.Received(len(in.Room()))
	in.Drop()
	require.False(t, in.Active())
}
