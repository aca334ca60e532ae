package replication_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/replication"
)

func TestAHistoryKeepsTheEndOfTheStream(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h replication.History
	limit := 64
	h.Limit(limit)
	h.Begin("a", 1000)
	var all []byte
	kept := 0
	for range 3000 {
		if r.IntN(50) == 0 {
			limit = 1 + r.IntN(100)
			h.Limit(limit)
			kept = min(kept, limit)
		}
		b := make([]byte, r.IntN(150)*r.IntN(2)+r.IntN(20))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		h.Add(b)
		all = append(all, b...)
		kept = min(kept+len(b), limit)
		require.Equal(t, kept, h.Kept())
		require.Equal(t, int64(1000+len(all)), h.Offset)
		require.Equal(t, string(all[len(all)-kept:]), string(h.All()))
		from := r.IntN(kept + 1)
		got, ok := h.Since("a", h.Offset-int64(from))
		require.True(t, ok)
		require.Equal(t, string(all[len(all)-from:]), string(got))
		_, ok = h.Since("a", h.Offset-int64(kept)-1)
		require.False(t, ok)
	}
}

func TestAHistoryIsKnownByItsFormerNameUpToWhereItGotTheOther(t *testing.T) {
	var h replication.History
	h.Limit(100)
	for _, id := range []string{"a", ""} {
		_, ok := h.Since(id, 0)
		require.False(t, ok, "there is none")
	}
	h.Begin("a", 10)
	_, ok := h.Since("", 10)
	require.False(t, ok)
	h.Add([]byte("12345"))
	h.Rename("b")
	h.Add([]byte("678"))
	for _, c := range []struct {
		id     string
		offset int64
		want   string
		ok     bool
	}{{"a", 10, "12345678", true}, {"a", 15, "678", true}, {"a", 16, "", false}, {"a", 9, "", false}, {"b", 16, "78", true},
		{"b", 18, "", true}, {"b", 19, "", false}, {"c", 12, "", false}, {"before a", 10, "", false}} {
		got, ok := h.Since(c.id, c.offset)
		require.Equal(t, c.ok, ok, c)
		require.Equal(t, c.want, string(got), c)
	}
	// Several names are remembered, not all.
	other := h
	other.Former = slices.Clone(h.Former)
	for i := range 7 {
		got, ok := other.Since("a", 15)
		require.True(t, ok, i)
		require.Equal(t, "678", string(got))
		other.Rename(fmt.Sprint("c", i))
	}
	other.Rename("d")
	_, ok = other.Since("a", 15)
	require.False(t, ok)
	_, ok = other.Since("b", 18)
	require.True(t, ok)

	var again replication.History
	again.Limit(100)
	db, err := again.Recall(h.Note(7))
	require.NoError(t, err)
	require.Equal(t, 7, db)
	again.Remember(h.All())
	require.Equal(t, h, again)
	// The kept end stays if the history is the same, under any name.
	_, err = again.Recall(h.Note(3))
	require.NoError(t, err)
	require.Equal(t, h, again)
	other = h
	other.Former = slices.Clone(h.Former)
	other.Rename("e")
	_, err = again.Recall(other.Note(3))
	require.NoError(t, err)
	require.Equal(t, other, again)
	other.Rename("f")
	other.Add([]byte("9"))
	_, err = again.Recall(other.Note(3))
	require.NoError(t, err)
	require.Zero(t, again.Kept(), "it is not the end of this one")
	// Those of earlier versions have one former name at most.
	db, err = again.Recall([]string{"1", "master", "g", "20", "f", "18", "2"})
	require.NoError(t, err)
	require.Equal(t, 2, db)
	require.Equal(t, []replication.Former{{ID: "f", Shared: 18}}, again.Former)
	db, err = again.Recall([]string{"1", "replica", "g", "20", "-", "0", "-1"})
	require.NoError(t, err)
	require.Equal(t, replication.NoDatabase, db)
	require.Empty(t, again.Former)
	require.True(t, again.Relayed)
	h.End("c")
	_, ok = h.Since("c", 18)
	require.False(t, ok)
	_, err = again.Recall(h.Note(replication.NoDatabase))
	require.NoError(t, err)
	require.False(t, again.Known)
	_, err = again.Recall([]string{"0", "what", "another", "version", "says"})
	require.NoError(t, err)
	require.False(t, again.Known)
	for _, words := range [][]string{nil, {"1"}, {"1", "boss", "a", "1", "-", "0", "0"}, {"1", "master", "a", "x", "-", "0", "0"},
		{"1", "master", "a", "-1", "-", "0", "0"}, {"2", "master", "a", "1", "0", "b"}, {"2", "master", "a", "1", "-2"},
		{"2", "master", "a", "1", "0", "b", "-1"}, {"2", "boss", "a", "1", "0"}} {
		_, err := again.Recall(words)
		require.Error(t, err, words)
	}
}
