package engine

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// described returns some keys of a database, without their deadlines.
func described(ks *Keyspace, db int, keys [][]byte) string {
	var g Guard
	g.Lock(ks, AllShards, ks.Now())
	defer g.Unlock()
	var lines []string
	for _, key := range keys {
		if e := g.Peek(db, key); e != nil {
			lines = append(lines, fmt.Sprintf("%q %s %s", key, e.Type(), content(e)))
		}
	}
	return strings.Join(lines, "\n")
}

// names returns the names of all keys of a database.
func names(ks *Keyspace, db int) []string {
	var g Guard
	g.Lock(ks, AllShards, ks.Now())
	defer g.unlockShards()
	var all []string
	g.Each(db, func(e *Entry) bool {
		all = append(all, e.Key())
		return true
	})
	sort.Strings(all)
	return all
}

func TestAViewIsItsKeysAtOneInstant(t *testing.T) {
	for seed := range histories(t, 40) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		clock := NewManualClock(time.UnixMilli(1e12))
		o := Options{Shards: 1 << (seed % 3), Databases: 3, Clock: clock}
		store := newMemoryStore()
		if seed%2 == 0 {
			o.Source = store
		}
		ks := New(o)
		if o.Source != nil {
			require.NoError(t, ks.Restore(store.state))
			ks.EndReplay(nil)
		}
		ks.texts = smallTexts
		ks.SetTier(seed%2 == 0)
		c := &churn{ks: ks, clock: clock, rnd: rnd}
		small := pieces{entries: 1 + rnd.IntN(4), parts: 1 + rnd.IntN(4), bytes: 1 + rnd.IntN(100), step: 1}
		change := func() {
			for range rnd.IntN(3) {
				c.change()
			}
		}
		type looked struct {
			view *View
			want string
			keys [][]byte
		}
		for range 12 {
			for range rnd.IntN(80) {
				c.change()
			}
			var views []looked
			for range 1 + rnd.IntN(3) { // several at a time, usually of the same keys
				db := rnd.IntN(3)
				var keys [][]byte
				for _, name := range names(ks, db) {
					if rnd.IntN(3) > 0 {
						keys = append(keys, []byte(name))
					}
				}
				want := described(ks, db, keys) // also loads the values
				under(ks, func(g *Guard) {
					if v := g.View(db, keys); v != nil {
						v.pieces, v.Pause = small, change
						views = append(views, looked{v, want, keys})
					}
				})
				change()
			}
			var all *Names
			var want []string
			db := rnd.IntN(3)
			if want = names(ks, db); rnd.IntN(2) == 0 {
				under(ks, func(g *Guard) { all = g.Names(db) })
				require.NotNil(t, all)
				all.s.pieces, all.s.Pause = pieces{entries: 1 + rnd.IntN(4), bytes: 1, step: 1}, change
			}
			for _, v := range views {
				var stop atomic.Bool
				if rnd.IntN(8) == 0 {
					stop.Store(true)
				}
				own, err := v.view.Keyspace(&stop)
				require.NoError(t, err)
				if own == nil {
					require.True(t, stop.Load())
				} else {
					require.Equal(t, v.want, described(own, v.view.db, v.keys), "seed %d", seed)
				}
				v.view.Close()
			}
			if all != nil {
				var stop atomic.Bool
				var got []string
				for name := range all.All(&stop) {
					got = append(got, name)
					if stop.Store(rnd.IntN(100) == 0); stop.Load() {
						want = nil
					}
				}
				if all.Close(); want != nil {
					sort.Strings(got)
					require.Equal(t, want, got, "seed %d", seed)
				}
			}
			checkNothingLent(t, ks)
			checkDeadlines(t, ks)
			checkMemory(t, ks)
		}
	}
}
