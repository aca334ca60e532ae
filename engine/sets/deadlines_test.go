package sets

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDeadlinesChangeTheRepresentation(t *testing.T) {
	tests := []struct {
		name    string
		lim     Limits
		members []string
		want    string
	}{
		{"words", usual, words(128), "listpackex"},
		{"integers", usual, numbers(128), "listpackex"},
		{"more integers than a listpack may have", usual, numbers(129), "hashtable"},
		{"integers longer than in a listpack", Limits{512, 128, 3}, []string{"1", "-100"}, "hashtable"},
		{"a hash table", Limits{}, words(3), "hashtable"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := setOf(tt.lim, tt.members...)
			before := s.Encoding()
			first := []byte(tt.members[0])
			require.True(t, s.SetDeadline(first, 0, tt.lim))
			require.False(t, s.SetDeadline([]byte("no member"), 5, tt.lim))
			require.Equal(t, before, s.Encoding())
			require.True(t, s.SetDeadline(first, 5, tt.lim))
			require.Equal(t, tt.want, s.Encoding())
			requireDeadlines(t, s, map[string]int64{string(first): 5})
			require.Equal(t, len(tt.members), len(members(t, s)))
			require.False(t, s.Add(first, tt.lim), "adding it again")
			requireDeadlines(t, s, map[string]int64{string(first): 5})
			require.True(t, s.SetDeadline(first, 0, tt.lim))
			require.Equal(t, tt.want, s.Encoding())
		})
	}
}

func TestDeadlinesSurviveGrowth(t *testing.T) {
	s, want := setOf(usual, words(100)...), map[string]int64{}
	for i, w := range words(100) {
		if i%3 == 0 {
			want[w] = int64(i + 1)
			s.SetDeadline([]byte(w), want[w], usual)
		}
	}
	require.Equal(t, "listpackex", s.Encoding())
	for i := range 100 {
		s.Add([]byte("x"+strconv.Itoa(i)), usual)
	}
	require.Equal(t, "hashtable", s.Encoding())
	requireDeadlines(t, s, want)
	requireDeadlines(t, s.Clone(), want)
}

// A deadline takes 16 bytes in a hash table, whichever members have one.
func TestDeadlinesTakeLittleMemory(t *testing.T) {
	const n = 100_000
	list := names(n)
	s := filled(list)
	without := s.MemoryUsage()
	for i, m := range list {
		require.True(t, s.SetDeadline(m, int64(1+i*7919%n), usual))
	}
	require.InDelta(t, 16*n, s.MemoryUsage()-without, n)
	require.Equal(t, n, s.Expire(n, n+1, func([]byte) {}))
	require.Zero(t, s.Len())
}
