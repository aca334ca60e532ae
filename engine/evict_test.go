package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine/hashes"
)

// evictN evicts n keys, or as many as there are.
func evictN(ks *Keyspace, n int) (all bool) {
	return ks.Evict(ks.Now(), func() bool {
		n--
		return n >= 0
	}) == Relieved
}

// seeded makes the choice of candidates reproducible.
func seeded(ks *Keyspace, how Eviction) {
	ks.evicting.rng = rand.New(rand.NewPCG(1, 2))
	if how.Samples == 0 {
		how.Samples = 5
	}
	ks.SetEviction(how)
}

// keysOf returns the keys of a database.
func keysOf(ks *Keyspace, db int) (keys []string) {
	under(ks, func(g *Guard) {
		g.Each(db, func(e *Entry) bool {
			keys = append(keys, e.Key())
			return true
		})
	})
	slices.Sort(keys)
	return keys
}

func read(ks *Keyspace, key string) {
	under(ks, func(g *Guard) { g.Read(0, []byte(key)) })
}

func TestEvictionTellsEverybody(t *testing.T) {
	keyspaces(t, func(t *testing.T, ks *Keyspace, _ *ManualClock, log *eventLog) {
		ks.ObserveChanges(true)
		j := new(recordedJournal)
		ks.EndReplay(j)
		seeded(ks, Eviction{Policy: AllKeysLRU})
		under(ks, func(g *Guard) { g.CreateString(3, []byte("k"), []byte("v")) })
		var watch *Watch
		var version uint64
		under(ks, func(g *Guard) { watch, version = g.Watch(3, []byte("k")) })
		log.take()
		require.True(t, evictN(ks, 1))
		require.Equal(t, []string{"changed 3 k", "evicted 3 k"}, log.take())
		require.Equal(t, []string{"*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n"}, j.records)
		under(ks, func(g *Guard) {
			require.False(t, g.Unchanged(watch, version))
			require.EqualValues(t, 1, g.Stats().Evicted)
			g.Unwatch(watch)
		})
		require.False(t, evictN(ks, 1), "nothing is left")
	})
}

// recordedJournal keeps the journalled commands.
type recordedJournal struct{ records []string }

func (j *recordedJournal) Append(_ int64, commands []byte) {
	j.records = append(j.records, string(commands))
}

func TestNothingIsEvictedWithoutNeedOrPolicy(t *testing.T) {
	keyspaces(t, func(t *testing.T, ks *Keyspace, _ *ManualClock, _ *eventLog) {
		set(ks, "k", "v", 0)
		require.True(t, evictN(ks, 0))
		require.False(t, evictN(ks, 1))
		for _, policy := range []EvictionPolicy{VolatileLRU, VolatileLFU, VolatileRandom, VolatileTTL} {
			seeded(ks, Eviction{Policy: policy})
			require.False(t, evictN(ks, 1))
		}
		require.Equal(t, []string{"k"}, keysOf(ks, 0))
	})
}

func TestNothingIsEvictedWhileTheJournalIsRepeated(t *testing.T) {
	keyspaces(t, func(t *testing.T, ks *Keyspace, _ *ManualClock, _ *eventLog) {
		require.NoError(t, ks.Restore(StoredState{}))
		set(ks, "k", "v", 0)
		seeded(ks, Eviction{Policy: AllKeysRandom})
		require.False(t, evictN(ks, 1))
		ks.EndReplay(nil)
		require.True(t, evictN(ks, 1))
	})
}

// Half of the keys are used, then half of all are evicted: nearly all used ones stay.
func TestLRUKeepsWhatIsUsed(t *testing.T) {
	for _, policy := range []EvictionPolicy{AllKeysLRU, VolatileLRU} {
		keyspaces(t, func(t *testing.T, ks *Keyspace, clock *ManualClock, _ *eventLog) {
			seeded(ks, Eviction{Policy: policy})
			const n = 2000
			for i := range n {
				clock.Advance(time.Second)
				set(ks, fmt.Sprintf("key:%04d", i), "v", 1e9)
			}
			clock.Advance(time.Minute)
			for i := range n / 2 {
				read(ks, fmt.Sprintf("key:%04d", i*7919%(n/2)*2))
				clock.Advance(time.Second)
			}
			require.True(t, evictN(ks, n/2))
			kept := 0
			for _, key := range keysOf(ks, 0) {
				if (key[len(key)-1]-'0')%2 == 0 {
					kept++
				}
			}
			require.Greater(t, kept, n/2*8/10)
		})
	}
}

// Half of the keys are changed, and all are read later: nearly all changed ones stay.
func TestLRMKeepsWhatIsChanged(t *testing.T) {
	for _, policy := range []EvictionPolicy{AllKeysLRM, VolatileLRM} {
		keyspaces(t, func(t *testing.T, ks *Keyspace, clock *ManualClock, _ *eventLog) {
			seeded(ks, Eviction{Policy: policy})
			const n = 2000
			for i := range n {
				clock.Advance(time.Second)
				set(ks, fmt.Sprintf("key:%04d", i), "v", 1e9)
			}
			clock.Advance(time.Minute)
			for i := range n / 2 {
				set(ks, fmt.Sprintf("key:%04d", i*7919%(n/2)*2), "w", 1e9)
				clock.Advance(time.Second)
			}
			for i := range n {
				read(ks, fmt.Sprintf("key:%04d", i))
				clock.Advance(time.Second)
			}
			require.True(t, evictN(ks, n/2))
			kept := 0
			for _, key := range keysOf(ks, 0) {
				if (key[len(key)-1]-'0')%2 == 0 {
					kept++
				}
			}
			require.Greater(t, kept, n/2*8/10)
		})
	}
}

// A few keys are used often but long ago, the others once and lately.
func TestLFUKeepsWhatIsUsedOften(t *testing.T) {
	for _, policy := range []EvictionPolicy{AllKeysLFU, VolatileLFU} {
		keyspaces(t, func(t *testing.T, ks *Keyspace, clock *ManualClock, _ *eventLog) {
			seeded(ks, Eviction{Policy: policy, LogFactor: 1, DecayMinutes: 10})
			const n = 1000
			for i := range n {
				set(ks, fmt.Sprintf("key:%04d", i), "v", 1e9)
			}
			for range 100 {
				for i := range n / 10 {
					read(ks, fmt.Sprintf("key:%04d", i))
				}
			}
			clock.Advance(time.Minute)
			for i := n / 10; i < n; i++ {
				read(ks, fmt.Sprintf("key:%04d", i))
			}
			require.True(t, evictN(ks, n*8/10))
			kept := 0
			for _, key := range keysOf(ks, 0) {
				if key < "key:0100" {
					kept++
				}
			}
			require.Greater(t, kept, n/10*7/10)
		})
	}
}

func TestVolatileTTLEvictsWhatExpiresFirst(t *testing.T) {
	keyspaces(t, func(t *testing.T, ks *Keyspace, _ *ManualClock, log *eventLog) {
		seeded(ks, Eviction{Policy: VolatileTTL})
		const n = 100
		for i := range n {
			set(ks, fmt.Sprintf("key:%04d", i), "v", int64(1e6+(i*37)%n))
		}
		under(ks, func(g *Guard) { // a hash of which only a field expires stays
			h := new(hashes.Hash)
			h.Set([]byte("f"), []byte("v"), hashes.Limits{})
			h.SetDeadline([]byte("f"), g.Now()+2e6)
			g.Changed(g.Create(0, []byte("hash"), h), EventHash, "hset")
		})
		log.take()
		require.False(t, evictN(ks, n+1))
		var want, got []string
		for at := range n {
			for i := range n {
				if (i*37)%n == at {
					want = append(want, fmt.Sprintf("evicted 0 key:%04d", i))
				}
			}
		}
		got = log.take()
		require.Equal(t, want, got)
		require.Equal(t, []string{"hash"}, keysOf(ks, 0))
	})
}

func TestRandomPoliciesEvictAnything(t *testing.T) {
	keyspaces(t, func(t *testing.T, ks *Keyspace, _ *ManualClock, _ *eventLog) {
		for _, policy := range []EvictionPolicy{AllKeysRandom, VolatileRandom} {
			seeded(ks, Eviction{Policy: policy})
			const n = 1000
			for i := range n {
				ttl := int64(0)
				if i%2 == 0 {
					ttl = 1e6
				}
				set(ks, fmt.Sprintf("key:%04d", i), "v", ttl)
			}
			require.True(t, evictN(ks, n/4))
			left := [2]int{}
			for _, key := range keysOf(ks, 0) {
				left[(key[len(key)-1]-'0')%2]++
			}
			if policy == VolatileRandom {
				require.Equal(t, [2]int{n / 4, n / 2}, left)
			} else {
				require.Equal(t, n*3/4, left[0]+left[1])
				require.InDelta(t, n*3/8, left[0], n/16)
			}
		}
	})
}

// Keys with deadlines are found among many hashes of which only fields expire.
func TestVolatileKeysAreFoundAmongHashes(t *testing.T) {
	keyspaces(t, func(t *testing.T, ks *Keyspace, _ *ManualClock, _ *eventLog) {
		seeded(ks, Eviction{Policy: VolatileLRU})
		for i := range 1000 {
			under(ks, func(g *Guard) {
				h := new(hashes.Hash)
				h.Set([]byte("f"), []byte("v"), hashes.Limits{})
				h.SetDeadline([]byte("f"), g.Now()+1000)
				g.Changed(g.Create(0, fmt.Appendf(nil, "hash:%d", i), h), EventHash, "hset")
			})
		}
		set(ks, "k", "v", 1e6)
		for range 1 + 1000/maxWalk {
			evictN(ks, 1)
		}
		require.Len(t, keysOf(ks, 0), 1000)
		require.False(t, evictN(ks, 1))
	})
}

func TestFrequencyGrowsAndFades(t *testing.T) {
	keyspaces(t, func(t *testing.T, ks *Keyspace, clock *ManualClock, _ *eventLog) {
		seeded(ks, Eviction{Policy: AllKeysLFU, LogFactor: 10, DecayMinutes: 2})
		set(ks, "k", "v", 0)
		frequency := func() (n int) {
			under(ks, func(g *Guard) { n = g.Frequency(g.Peek(0, []byte("k"))) })
			return n
		}
		require.Equal(t, newFrequency, frequency())
		read(ks, "k")
		require.Equal(t, newFrequency+1, frequency(), "the first use always counts")
		for range 1000 {
			read(ks, "k")
		}
		require.InDelta(t, newFrequency+14, frequency(), 10) // sqrt(2*1000/10) above the start
		before := frequency()
		clock.Advance(4 * time.Minute)
		require.Equal(t, before-2, frequency())
		clock.Advance(24 * time.Hour)
		require.Zero(t, frequency())
		under(ks, func(g *Guard) {
			g.SetFrequency(g.Peek(0, []byte("k")), 300)
			g.SetIdleTime(g.Peek(0, []byte("k")), 300) // has no meaning now
		})
		require.Equal(t, maxFrequency, frequency())
		read(ks, "k")
		require.Equal(t, maxFrequency, frequency())
		ks.SetEviction(Eviction{Policy: AllKeysLFU})
		clock.Advance(24 * time.Hour)
		require.Equal(t, maxFrequency, frequency(), "0 is never")
	})
}

// Removed entries do not stay in memory until the next checkpoint.
func TestEntriesThatHaveGoneLeaveTheListOfChanges(t *testing.T) {
	var l entryList
	live := 0
	rng := rand.New(rand.NewPCG(3, 4))
	var all []*Entry
	for range 50_000 {
		if len(all) == 0 || rng.IntN(2) == 0 || live < 5000 {
			e := new(Entry)
			all = append(all, e)
			l.add(e)
			live++
			continue
		}
		i := rng.IntN(len(all))
		all[i].flags |= flagRemoved
		all[i] = all[len(all)-1]
		all = all[:len(all)-1]
		live--
		l.sweep()
	}
	require.LessOrEqual(t, l.len(), live*3/2)
	listed := map[*Entry]int{}
	for i := range l.len() {
		listed[l.chunks[i/entryChunk][i%entryChunk]]++
	}
	for _, e := range all {
		require.Equal(t, 1, listed[e])
	}
}

// A key must not be in the pool twice, however often it is drawn.
func TestThePoolHasEachKeyOnce(t *testing.T) {
	keyspaces(t, func(t *testing.T, ks *Keyspace, clock *ManualClock, _ *eventLog) {
		seeded(ks, Eviction{Policy: AllKeysLRU})
		for i := range 12 {
			set(ks, fmt.Sprintf("key:%02d", i), "v", 0)
			clock.Advance(time.Second)
		}
		for i := range 10 {
			require.True(t, evictN(ks, 1))
			require.Len(t, keysOf(ks, 0), 11-i)
			seen := map[string]bool{}
			for at, c := range ks.evicting.pool {
				require.False(t, seen[c.key], "%s twice", c.key)
				seen[c.key] = true
				require.True(t, at == 0 || ks.evicting.pool[at-1].score <= c.score, "the best are at the end")
			}
		}
	})
}

// With keys used by Zipf's law, almost as many uses find their key as with an exact LRU list.
func TestLRUServesSkewedUseAsAnExactOneWould(t *testing.T) {
	keyspaces(t, func(t *testing.T, ks *Keyspace, clock *ManualClock, _ *eventLog) {
		seeded(ks, Eviction{Policy: AllKeysLRU})
		const keys, room, uses = 2000, 400, 20_000
		use := rand.NewZipf(rand.New(rand.NewPCG(3, 4)), 1.1, 5, keys-1)
		var exact []string // latest last
		hits, exactHits := 0, 0
		for range uses {
			clock.Advance(time.Second)
			key := fmt.Sprintf("key:%04d", use.Uint64())
			if at := slices.Index(exact, key); at >= 0 {
				exactHits++
				exact = slices.Delete(exact, at, at+1)
			} else if len(exact) == room {
				exact = exact[1:]
			}
			exact = append(exact, key)
			found := false
			under(ks, func(g *Guard) { found = g.Read(0, []byte(key)) != nil })
			if found {
				hits++
				continue
			}
			set(ks, key, "v", 0)
			if len(keysOf(ks, 0)) > room {
				require.True(t, evictN(ks, 1))
			}
		}
		require.Greater(t, hits, exactHits*95/100)
	})
}

func TestBlessedKeysAreNotEvicted(t *testing.T) {
	keyspaces(t, func(t *testing.T, ks *Keyspace, _ *ManualClock, _ *eventLog) {
		const keys = 300
		bless := func(key string, on bool) {
			under(ks, func(g *Guard) { g.Bless(g.Write(0, []byte(key)), on) })
		}
		for _, policy := range []EvictionPolicy{AllKeysLRU, AllKeysLFU, AllKeysRandom, VolatileLRU, VolatileRandom, VolatileTTL} {
			seeded(ks, Eviction{Policy: policy})
			for i := range keys {
				key := fmt.Sprint("k", i)
				set(ks, key, "v", ks.Now()+int64(i+1)*1000)
				bless(key, true)
			}
			evict := func() Relief {
				return ks.Evict(ks.Now(), func() bool { return true })
			}
			require.Equal(t, Spared, evict(), "all are blessed")
			bless("k7", false)
			bless("k8", false)
			require.True(t, evictN(ks, 1), "even if few are not")
			require.Equal(t, Spared, evict())
			left := keysOf(ks, 0)
			require.Len(t, left, keys-2)
			require.NotContains(t, left, "k7")
			under(ks, func(g *Guard) {
				require.Equal(t, keys-2, g.DBStats(0).Blessed)
				require.True(t, g.Peek(0, []byte("k1")).Blessed())
				g.Remove(g.Write(0, []byte("k1")), EventGeneric, "del")
				require.False(t, g.CreateString(0, []byte("k1"), nil).Blessed(), "a new key")
				require.True(t, g.Move(g.Write(0, []byte("k2")), 1, []byte("x")).Blessed())
				require.Equal(t, 1, g.DBStats(1).Blessed)
				g.Flush(-1)
				require.Zero(t, g.DBStats(0).Blessed+g.DBStats(1).Blessed)
			})
		}
	})
}

// No draw visits a whole table under its lock: the next one goes on where it ended.
func TestDrawsForTheOnlyKeyOfManyAreBounded(t *testing.T) {
	for _, policy := range []EvictionPolicy{AllKeysLRU, AllKeysRandom, VolatileLRU, VolatileTTL} {
		ks := New(Options{Shards: 1, Databases: 1})
		seeded(ks, Eviction{Policy: policy})
		const keys = 10*maxWalk - 1
		for i := range keys {
			key := fmt.Sprint("k", i)
			set(ks, key, "v", ks.Now()+1000_000+int64(i))
			under(ks, func(g *Guard) { g.Bless(g.Write(0, []byte(key)), true) })
		}
		set(ks, "only", "v", ks.Now()+3000_000)
		for range 3 {
			require.True(t, evictN(ks, 1), "there is a key to evict")
		}
		require.Len(t, keysOf(ks, 0), keys+1, "it is found later")
		for range 10 {
			evictN(ks, 1)
		}
		require.NotContains(t, keysOf(ks, 0), "only")
		set(ks, "forever", "v", 0)
		if policy.volatile() {
			require.Equal(t, Spared, ks.Evict(ks.Now(), func() bool { return true }))
		}
		require.Len(t, keysOf(ks, 0), keys+1)
		ks.Close()
	}
}

func TestKeyBlessedAfterItWasDrawnIsNotEvicted(t *testing.T) {
	ks := New(Options{Shards: 1, Databases: 1})
	defer ks.Close()
	seeded(ks, Eviction{Policy: AllKeysLRU, Samples: 10})
	for i := range 10 {
		set(ks, fmt.Sprint("k", i), "v", 0)
	}
	require.True(t, evictN(ks, 1))
	under(ks, func(g *Guard) {
		g.Each(0, func(e *Entry) bool {
			g.setBlessed(e, true)
			return true
		})
	})
	require.False(t, evictN(ks, 1))
	require.Len(t, keysOf(ks, 0), 9)
}
