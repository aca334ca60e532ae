package search

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/search/catalog"
)

// Of two versions of an item exactly one is later, and all shards agree on it.
func TestOneOfTwoVersionsIsLater(t *testing.T) {
	args := func(text string) [][][]byte { return [][][]byte{{[]byte("FT._CREATEIFNX"), []byte(text)}} }
	versions := []item{ // in order
		{Commands: args("a")},
		{Commands: args("b")},
		{stamp: stamp{Gone: true}},
		{stamp: stamp{Count: 1, Shard: "a"}, Commands: args("z")},
		{stamp: stamp{Count: 1, Shard: "a", Gone: true}},
		{stamp: stamp{Count: 1, Shard: "b"}, Commands: args("a")},
		{stamp: stamp{Count: 2, Shard: "a"}, Commands: args("a")},
	}
	for i := range versions {
		for j := range versions {
			require.Equal(t, i > j, versions[i].later(&versions[j]), "%d %d", i, j)
		}
	}
}

func TestTheLatestDroppedItemsAreRemembered(t *testing.T) {
	var d definitions
	key := func(i int) catalog.Item { return catalog.Item{Kind: catalog.IndexItem, Name: fmt.Sprint(i)} }
	for _, n := range rand.New(rand.NewPCG(1, 1)).Perm(maxGone + 20) {
		d.set(key(n), stamp{Count: uint64(n + 1), Shard: "s", Gone: true})
	}
	require.Len(t, d.all(), maxGone)
	for n := range 40 {
		_, ok := d.get(key(n))
		require.Equal(t, n >= 20, ok, n)
		require.Equal(t, n < 20, d.forgotten(key(n), stamp{Count: uint64(n + 1), Shard: "s", Gone: true}), n)
	}
	require.Equal(t, uint64(maxGone+21), d.next())
	d.set(key(maxGone), stamp{Count: uint64(maxGone + 30), Shard: "s"}) // the item is made again
	require.Equal(t, maxGone-1, d.gone)
}

func TestStampsAreStored(t *testing.T) {
	s := &service{}
	k, st := catalog.Item{Kind: catalog.AliasItem, Name: "a\x00b"}, stamp{Count: 1 << 60, Shard: "s", Gone: true, Deletes: true}
	require.NoError(t, s.setStamp(stampArgs(k, st)))
	got, ok := s.defs.get(k)
	require.True(t, ok)
	require.Equal(t, st, got)
	require.Error(t, s.setStamp(stampArgs(k, st)[:5]))
}
