package engine

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Every kind of change of a watched key is detected, and no change of another key.
func TestManyKeysAreWatchedAsOne(t *testing.T) {
	clock := NewManualClock(time.UnixMilli(1000))
	ks := New(Options{Shards: 4, Databases: 3, Clock: clock})
	keys := make([][]byte, 1000)
	for i := range keys {
		keys[i] = []byte("key" + strconv.Itoa(i))
	}
	each := func(yield func(key []byte) bool) {
		for _, key := range keys {
			if !yield(key) {
				return
			}
		}
	}
	under := func(fn func(g *Guard)) {
		var g Guard
		g.Lock(ks, AllShards, ks.Now())
		defer g.Unlock()
		fn(&g)
	}
	for name, c := range map[string]struct {
		change  func(g *Guard)
		noticed bool
	}{
		"another key":      {func(g *Guard) { g.Changed(g.CreateString(0, []byte("other"), []byte("v")), EventString, "set") }, false},
		"another database": {func(g *Guard) { g.Changed(g.CreateString(1, keys[1], []byte("v")), EventString, "set") }, false},
		"a read":           {func(g *Guard) { g.Read(0, keys[0]) }, false},
		"a change":         {func(g *Guard) { g.Changed(g.Write(0, keys[0]), EventString, "append") }, true},
		"a new key":        {func(g *Guard) { g.Changed(g.CreateString(0, keys[999], []byte("v")), EventString, "set") }, true},
		"a key that goes":  {func(g *Guard) { g.Remove(g.Write(0, keys[0]), EventGeneric, "del") }, true},
		"a key that moves": {func(g *Guard) {
			g.Move(g.Write(0, keys[0]), 2, keys[0])
			g.Vanished(0, keys[0], EventGeneric, "move_from")
		}, true},
		"FLUSHALL":                  {func(g *Guard) { g.Flush(-1) }, true},
		"FLUSHDB":                   {func(g *Guard) { g.Flush(0) }, true},
		"FLUSHDB of another":        {func(g *Guard) { g.Flush(2) }, false},
		"SWAPDB":                    {func(g *Guard) { g.Swap(2, 0) }, true},
		"SWAPDB of others":          {func(g *Guard) { g.Swap(1, 2) }, false},
		"a key whose time has come": {func(g *Guard) { g.Read(0, keys[500]) }, true},
	} {
		under(func(g *Guard) {
			g.Flush(-1)
			g.Changed(g.CreateString(0, keys[0], []byte("v")), EventString, "set")
			e := g.CreateString(0, keys[500], []byte("v"))
			g.SetDeadline(e, g.Now()+1000)
			g.Changed(e, EventString, "set")
		})
		var w *WatchedKeys
		under(func(g *Guard) { w = g.WatchKeys(0) })
		if name == "a key whose time has come" {
			clock.Advance(2 * time.Second)
		}
		under(c.change)
		under(func(g *Guard) { g.UnwatchKeys(w) })
		require.Empty(t, ks.watchedKeys)
		require.Equal(t, c.noticed, w.Changed(each), name)
		under(func(g *Guard) { g.Flush(-1) })
		require.Equal(t, c.noticed, w.Changed(each), "%s: nobody watches any more", name)
	}
	// More changes than are recorded count as changes of every key; repeated changes of one key do not.
	for others, noticed := range map[int]bool{1: false, 4*maxNoted + 1: true} {
		var w *WatchedKeys
		under(func(g *Guard) {
			w = g.WatchKeys(0)
			for i := range 4*maxNoted + 1 {
				key := []byte("other" + strconv.Itoa(i%others))
				if g.Peek(0, key) == nil {
					g.CreateString(0, key, []byte("v"))
				}
				g.Changed(g.Write(0, key), EventString, "set")
			}
			g.UnwatchKeys(w)
		})
		require.Equal(t, noticed, w.Changed(each), others)
	}
}
