package session

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The queued commands of a transaction do not stay in memory after it, however long the queue was.
func TestNothingQueuedStays(t *testing.T) {
	b := newHarness(t)
	s := b.session()
	for _, end := range []string{"EXEC", "DISCARD"} {
		for _, n := range []int{1, 16, 40} {
			b.feed(s, request("MULTI"))
			for range n {
				b.feed(s, request("SET", "k", strings.Repeat("x", 2000)))
			}
			require.NotZero(t, s.tx.room.queue[0])
			b.feed(s, request(end))
			require.Zero(t, s.tx.room.queue)
			require.Equal(t, transaction{room: s.tx.room}, s.tx)
		}
	}
}
