package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/engine/sets"
)

// hset sets a field of a hash with a deadline ttl ms from now, 0 for none.
func hset(ks *Keyspace, key, field, value string, ttl int64) {
	under(ks, func(g *Guard) {
		e := g.Write(0, []byte(key))
		if e == nil {
			e = g.Create(0, []byte(key), new(hashes.Hash))
		}
		e.Hash().Set([]byte(field), []byte(value), hashes.Limits{Entries: 4, Value: 64})
		if ttl != 0 {
			e.Hash().SetDeadline([]byte(field), g.Now()+ttl)
		}
		g.Changed(e, EventHash, "hset")
	})
}

// fields returns the number of fields of a hash.
func fields(ks *Keyspace, key string) (n int) {
	under(ks, func(g *Guard) {
		if e := g.Peek(0, []byte(key)); e != nil {
			n = e.Hash().Len()
		}
	})
	return n
}

func TestFieldsExpireExactlyAtTheirDeadline(t *testing.T) {
	keyspaces(t, func(t *testing.T, ks *Keyspace, clock *ManualClock, log *eventLog) {
		hset(ks, "h", "a", "1", 100)
		hset(ks, "h", "b", "2", 200)
		hset(ks, "i", "a", "1", 0)
		log.take()
		clock.Advance(99 * time.Millisecond)
		require.Empty(t, log.take())
		require.Equal(t, DBStats{Keys: 2, FieldExpires: 1}, dbStats(ks, 0))
		clock.Advance(time.Millisecond)
		require.Equal(t, []string{"hexpired 0 h"}, log.take())
		require.Equal(t, DBStats{Keys: 2, FieldExpires: 1}, dbStats(ks, 0))
		clock.Advance(time.Hour)
		require.Equal(t, []string{"hexpired 0 h", "del 0 h"}, log.take())
		require.Equal(t, DBStats{Keys: 1}, dbStats(ks, 0))
		under(ks, func(g *Guard) {
			require.EqualValues(t, 2, g.Stats().ExpiredFields)
			require.Zero(t, g.Stats().Expired)
		})
	})
}

func TestTheEarlierDeadlineOfKeyAndFieldsCounts(t *testing.T) {
	keyspaces(t, func(t *testing.T, ks *Keyspace, clock *ManualClock, log *eventLog) {
		deadline := func(key string, ttl int64) {
			under(ks, func(g *Guard) {
				e := g.Write(0, []byte(key))
				g.SetDeadline(e, g.Now()+ttl)
				g.Changed(e, EventGeneric, "expire")
			})
		}
		hset(ks, "h", "a", "1", 100)
		hset(ks, "h", "b", "1", 300)
		deadline("h", 200)
		hset(ks, "i", "a", "1", 100)
		deadline("i", 50)
		hset(ks, "j", "a", "1", 100)
		hset(ks, "j", "b", "1", 0)
		deadline("j", 50)
		under(ks, func(g *Guard) { g.SetDeadline(g.Write(0, []byte("j")), 0) })
		log.take()
		clock.Advance(99 * time.Millisecond)
		require.Equal(t, []string{"expired 0 i"}, log.take())
		clock.Advance(time.Millisecond)
		require.ElementsMatch(t, []string{"hexpired 0 h", "hexpired 0 j"}, log.take())
		require.Equal(t, 1, fields(ks, "h"))
		clock.Advance(time.Hour)
		require.Equal(t, []string{"expired 0 h"}, log.take())
		require.Equal(t, 1, fields(ks, "j"))
		require.Equal(t, DBStats{Keys: 1}, dbStats(ks, 0))
	})
}

func TestExpiredFieldIsInvisibleBeforeItsTimerFires(t *testing.T) {
	for _, n := range []int{1, 100} {
		ks := New(Options{Clock: NewManualClock(time.UnixMilli(1000))})
		for i := range n {
			hset(ks, "gone", fmt.Sprint(i), "v", 10)
			hset(ks, "left", fmt.Sprint(i), "v", 10)
		}
		hset(ks, "left", "left", "v", 11)
		var g Guard
		g.Lock(ks, AllShards, 1010)
		for _, scan := range []func(fn func(e *Entry)){
			func(fn func(e *Entry)) { g.Each(0, func(e *Entry) bool { fn(e); return true }) },
			func(fn func(e *Entry)) { g.Scan(0, 0, 10, nil, fn) },
		} {
			var keys []string
			scan(func(e *Entry) { keys = append(keys, e.Key()) })
			require.Equal(t, []string{"left"}, keys)
		}
		require.Equal(t, 1, g.Read(0, []byte("left")).Hash().Len())
		require.Nil(t, g.Read(0, []byte("gone")))
		require.Equal(t, 1, g.Len(0))
		require.Equal(t, "left", g.RandomKey(0).Key())
		g.Unlock()
		ks.Close()
	}
}

func TestManyFieldsWithOneDeadlineAllExpire(t *testing.T) {
	keyspaces(t, func(t *testing.T, ks *Keyspace, clock *ManualClock, log *eventLog) {
		for i := range 1000 {
			hset(ks, fmt.Sprint("h", i%2), fmt.Sprint(i), "v", 50)
		}
		hset(ks, "h0", "stays", "v", 0)
		clock.Advance(50 * time.Millisecond)
		require.Equal(t, 1, fields(ks, "h0"))
		require.False(t, exists(ks, "h1"))
		require.Equal(t, DBStats{Keys: 1}, dbStats(ks, 0))
	})
}

func TestFieldsExpireWhereverTheirHashGoes(t *testing.T) {
	keyspaces(t, func(t *testing.T, ks *Keyspace, clock *ManualClock, log *eventLog) {
		hset(ks, "h", "a", "1", 100)
		hset(ks, "h", "b", "1", 0)
		under(ks, func(g *Guard) {
			h := g.Write(0, []byte("h"))
			g.Changed(g.Copy(h, h.CopyValue(), 2, []byte("copy")), EventGeneric, "copy_to")
			moved := g.Move(g.Write(0, []byte("h")), 1, []byte("moved"))
			g.Vanished(0, []byte("h"), EventGeneric, "rename_from")
			g.Changed(moved, EventGeneric, "rename_to")
			g.Swap(1, 3)
		})
		hset(ks, "overwritten", "a", "1", 100)
		hset(ks, "replaced", "a", "1", 100)
		hset(ks, "removed", "a", "1", 100)
		under(ks, func(g *Guard) {
			g.Overwrite(g.Write(0, []byte("overwritten")), []byte("v"))
			g.OverwriteCollection(g.Write(0, []byte("replaced")), new(hashes.Hash))
			g.Remove(g.Write(0, []byte("removed")), EventGeneric, "del")
		})
		require.Zero(t, dbStats(ks, 0).FieldExpires)
		require.Equal(t, 1, dbStats(ks, 3).FieldExpires)
		log.take()
		clock.Advance(time.Hour)
		require.ElementsMatch(t, []string{"hexpired 2 copy", "hexpired 3 moved"}, log.take())

		hset(ks, "flushed", "a", "1", 100)
		set(ks, "k", "v", 100)
		under(ks, func(g *Guard) { g.Flush(0) })
		log.take()
		clock.Advance(time.Hour)
		require.Empty(t, log.take())
	})
}

// Members of sets expire as fields of hashes do.
func TestMembersExpireWhereverTheirSetGoes(t *testing.T) {
	keyspaces(t, func(t *testing.T, ks *Keyspace, clock *ManualClock, log *eventLog) {
		sadd := func(key string, ttl int64, members ...string) {
			under(ks, func(g *Guard) {
				lim := sets.Limits{IntsetEntries: 4, ListpackEntries: 4, ListpackValue: 64}
				e := g.Write(0, []byte(key))
				if e == nil {
					e = g.Create(0, []byte(key), new(sets.Set))
				}
				for _, m := range members {
					e.Set().Add([]byte(m), lim)
					if ttl != 0 {
						e.Set().SetDeadline([]byte(m), g.Now()+ttl, lim)
					}
				}
				g.Changed(e, EventSet, "sadd")
			})
		}
		sadd("s", 100, "a")
		sadd("s", 0, "b", "c", "d", "e")
		sadd("gone", 100, "1", "2", "3")
		hset(ks, "h", "a", "1", 100)
		require.Equal(t, DBStats{Keys: 3, FieldExpires: 3, MemberExpires: 2}, dbStats(ks, 0))
		under(ks, func(g *Guard) {
			s := g.Write(0, []byte("s"))
			g.Changed(g.Copy(s, s.CopyValue(), 2, []byte("copy")), EventGeneric, "copy_to")
			moved := g.Move(g.Write(0, []byte("s")), 1, []byte("moved"))
			g.Vanished(0, []byte("s"), EventGeneric, "rename_from")
			g.Changed(moved, EventGeneric, "rename_to")
		})
		sadd("overwritten", 100, "a")
		under(ks, func(g *Guard) {
			g.OverwriteCollection(g.Write(0, []byte("overwritten")), new(hashes.Hash))
			g.Remove(g.Write(0, []byte("h")), EventGeneric, "del")
		})
		require.Equal(t, DBStats{Keys: 2, FieldExpires: 1, MemberExpires: 1}, dbStats(ks, 0))
		log.take()
		clock.Advance(99 * time.Millisecond)
		require.Empty(t, log.take())
		clock.Advance(time.Millisecond)
		require.ElementsMatch(t, []string{"sexpired 2 copy", "sexpired 1 moved", "sexpired 0 gone", "del 0 gone"}, log.take())
		require.Equal(t, DBStats{Keys: 1}, dbStats(ks, 0))
		under(ks, func(g *Guard) {
			require.EqualValues(t, 5, g.Stats().ExpiredFields)
			require.Equal(t, 4, g.Peek(1, []byte("moved")).Set().Len())
		})
	})
}

// A watched missing key stays missing when a swap puts an expired key in its place whose timer has not fired.
func TestSwapPutsNoExpiredKeyInAnyPlace(t *testing.T) {
	for name, fill := range map[string]func(ks *Keyspace){
		"key": func(ks *Keyspace) { set(ks, "k", "v", 10) },
		"fields": func(ks *Keyspace) {
			hset(ks, "k", "a", "1", 5)
			hset(ks, "k", "b", "1", 10)
		},
		"many fields": func(ks *Keyspace) {
			for i := range 100 {
				hset(ks, "k", fmt.Sprint(i), "v", 10)
			}
		},
	} {
		for _, left := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, left %t", name, left), func(t *testing.T) {
				journal := &textJournal{}
				ks := New(Options{Clock: NewManualClock(time.UnixMilli(1000))})
				defer ks.Close()
				require.NoError(t, ks.Restore(StoredState{}))
				ks.EndReplay(journal)
				fill(ks)
				now := int64(1010)
				if left {
					now = 1009
				}
				var g Guard
				g.Lock(ks, AllShards, now)
				w, version := g.Watch(1, []byte("k"))
				g.Swap(0, 1)
				unchanged, first, second := g.Unchanged(w, version), g.Peek(0, []byte("k")), g.Peek(1, []byte("k"))
				g.Unwatch(w)
				g.Unlock()
				require.Equal(t, !left, unchanged)
				require.Nil(t, first)
				require.Equal(t, left, second != nil)
				if !left {
					require.Equal(t, []string{"DEL k"}, journal.records, "a key that has expired is journalled in its own database")
				}
			})
		}
	}
}

// Expired keys make room without being evicted, even between the draw and the choice.
func TestWhatHasExpiredIsNotEvicted(t *testing.T) {
	for name, fill := range map[string]func(ks *Keyspace){
		"key":    func(ks *Keyspace) { set(ks, "k", "v", 10) },
		"fields": func(ks *Keyspace) { hset(ks, "k", "a", "1", 10) },
	} {
		for _, drawn := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, drawn before %t", name, drawn), func(t *testing.T) {
				ks := New(Options{Clock: NewManualClock(time.UnixMilli(1000))})
				defer ks.Close()
				seeded(ks, Eviction{Policy: AllKeysLRU})
				fill(ks)
				v := &ks.evicting
				v.Eviction = *v.how.Load()
				if drawn {
					require.True(t, v.draw(ks, 1009))
					require.Len(t, v.pool, 1)
					require.True(t, v.evict(ks, v.pool[0], 1010))
				} else {
					require.True(t, v.draw(ks, 1010))
					require.Empty(t, v.pool)
				}
				under(ks, func(g *Guard) {
					require.Zero(t, g.Len(0))
					stats := g.Stats()
					require.Zero(t, stats.Evicted)
					require.EqualValues(t, 1, stats.Expired+stats.ExpiredFields)
				})
			})
		}
	}
}

// textJournal is a Journal that keeps its records as text.
type textJournal struct{ records []string }

func (j *textJournal) Append(_ int64, commands []byte) {
	var words []string
	for line := range strings.SplitSeq(string(commands), "\r\n") {
		if line != "" && line[0] != '*' && line[0] != '$' {
			words = append(words, line)
		}
	}
	j.records = append(j.records, strings.Join(words, " "))
}

func TestExpiredFieldsAreJournalledAndNotReplayed(t *testing.T) {
	clock, journal := NewManualClock(time.UnixMilli(1000)), &textJournal{}
	ks := New(Options{Clock: clock})
	defer ks.Close()
	require.NoError(t, ks.Restore(StoredState{}))
	hset(ks, "h", "a", "1", 10)
	hset(ks, "h", "b", "1", 20)
	hset(ks, "h", "c", "1", 20)
	hset(ks, "i", "a", "1", 40)
	clock.Advance(15 * time.Millisecond)
	require.Equal(t, 3, fields(ks, "h"), "a field expired while the journal was repeated")
	ks.EndReplay(journal)
	clock.Advance(0)
	require.Equal(t, []string{"HDEL h a"}, journal.records)
	var g Guard
	g.Lock(ks, AllShards, 1020)
	changes := g.Changes()
	require.Nil(t, g.Read(0, []byte("h")))
	require.Equal(t, changes, g.Changes(), "what expired is no change by a command")
	g.Unlock()
	require.Equal(t, []string{"HDEL h a", "DEL h"}, journal.records)
}

// brokenSource is a memoryStore that cannot be read while broken.
type brokenSource struct {
	*memoryStore
	broken bool
}

func (b *brokenSource) Parts(id uint64, fn func(name, data []byte) error) error {
	if b.broken {
		return errors.New("broken")
	}
	return b.memoryStore.Parts(id, fn)
}

func TestFieldsThatCannotBeReadExpireLater(t *testing.T) {
	source, clock := &brokenSource{memoryStore: newMemoryStore()}, NewManualClock(time.UnixMilli(1000))
	ks := New(Options{Databases: 3, Clock: clock, Source: source})
	require.NoError(t, ks.Restore(source.state))
	ks.EndReplay(nil)
	for i := range 10 {
		for _, key := range []string{"h", "i"} {
			hset(ks, key, fmt.Sprint(i), "v", int64(100+i))
		}
	}
	f := ks.Freeze(func() {})
	source.write(t, f, func() {})
	f.Done()
	ks.Close()

	ks = New(Options{Databases: 3, Clock: clock, Source: source})
	defer ks.Close()
	require.NoError(t, ks.Restore(source.state))
	ks.EndReplay(nil)
	require.NoError(t, ks.LoadDirectory(source.eachHead, func(int) bool { return true }))
	require.Equal(t, 2, dbStats(ks, 0).FieldExpires)
	source.broken = true
	clock.Advance(105 * time.Millisecond)
	require.Equal(t, DBStats{Keys: 2, FieldExpires: 2}, dbStats(ks, 0))
	under(ks, func(g *Guard) {
		keys := 0
		g.Each(0, func(*Entry) bool { keys++; return true })
		require.Equal(t, 2, keys)
		var failed *LoadError
		func() {
			defer func() { failed, _ = recover().(*LoadError) }()
			g.Peek(0, []byte("h"))
		}()
		require.NotNil(t, failed)
		require.EqualValues(t, 1, g.fieldDeadline(g.ks.entryOf("h")))
	})
	source.broken = false
	require.Equal(t, 4, fields(ks, "h"), "a command met expired fields")
	clock.Advance(2 * time.Second)
	require.Equal(t, DBStats{}, dbStats(ks, 0))
}

// entryOf returns the entry of a key of database 0, expired or not.
func (ks *Keyspace) entryOf(key string) *Entry {
	e, _ := ks.shards[ks.shardIndex(key)].dbs[0].dict.GetString(key)
	return *e
}

func TestAChangedDeadlineIsOneSmallWrite(t *testing.T) {
	source := newMemoryStore()
	ks := New(Options{Databases: 3, Clock: NewManualClock(time.UnixMilli(1000)), Source: source})
	defer ks.Close()
	require.NoError(t, ks.Restore(source.state))
	ks.EndReplay(nil)
	for i := range 500 {
		hset(ks, "h", fmt.Sprint(i), "value", 0)
	}
	checkpoint := func() (put map[string]int, removed int) {
		f := ks.Freeze(func() {})
		put = map[string]int{}
		require.NoError(t, f.Heads(func(*Image) error { return nil }, nil))
		require.NoError(t, f.Parts(nil, nil, func(_ uint64, name string, data []byte) error {
			put[name] = len(data)
			return nil
		}, func(uint64, string) error {
			removed++
			return nil
		}))
		f.Done()
		return put, removed
	}
	deadline := func(field string, at int64) {
		under(ks, func(g *Guard) {
			e := g.Write(0, []byte("h"))
			require.True(t, e.Hash().SetDeadline([]byte(field), at))
			g.Changed(e, EventHash, "hexpire")
		})
	}
	put, _ := checkpoint()
	require.Len(t, put, 500)
	for _, field := range []string{"1", "2", "2"} {
		deadline(field, 1e12)
		put, removed := checkpoint()
		require.Equal(t, map[string]int{field: 6}, put)
		require.Zero(t, removed)
	}
	deadline("1", 0)
	put, removed := checkpoint()
	require.Empty(t, put)
	require.Equal(t, 1, removed)
	hset(ks, "h", "2", "new", 0)
	put, removed = checkpoint()
	require.Equal(t, map[string]int{"2": 3}, put)
	require.Equal(t, 1, removed)
}

// timesOfSteps returns a keyspace, its clock, and the list to which each expiry step adds its time, each time once.
func timesOfSteps(t *testing.T) (*Keyspace, *ManualClock, *[]int64) {
	clock, times := NewManualClock(time.UnixMilli(1_000_000)), new([]int64)
	ks := New(Options{Clock: clock, Shards: 8, LockedFor: func(by LockReason, _ time.Duration) {
		if now := clock.Now().UnixMilli(); len(*times) == 0 || (*times)[len(*times)-1] != now {
			*times = append(*times, now)
		}
	}})
	t.Cleanup(ks.Close)
	return ks, clock, times
}

func TestManyDeadlinesWakeNobodyUpBeforeAndFewTimesThen(t *testing.T) {
	ks, clock, times := timesOfSteps(t)
	const keys, seconds = 30_000, 30
	for i := range keys {
		set(ks, fmt.Sprint(i), "v", 100_000+int64(i)*seconds*1000/keys)
	}
	clock.Advance(99_999 * time.Millisecond)
	require.Empty(t, *times)

	for range seconds * 10 {
		clock.Advance(expiryPace * time.Millisecond)
		due := (clock.Now().UnixMilli() - 1_100_000) * keys / seconds / 1000
		// Only keys that fell due within the last moment may still be there.
		require.InDelta(t, keys-due, dbStats(ks, 0).Keys, expiryPace+1)
	}
	require.Less(t, len(*times), expirySteps+2*seconds*1000/expiryPace)
}

func TestFewDeadlinesAreMetExactly(t *testing.T) {
	ks, clock, times := timesOfSteps(t)
	for round := range 2 {
		start := clock.Now().UnixMilli()
		*times = nil
		var want []int64
		for i := range int64(expirySteps) {
			set(ks, fmt.Sprint(round, i), "v", 3*i+1)
			want = append(want, start+3*i+1)
		}
		clock.Advance(expirySteps * expiryPace * time.Millisecond) // pays for that many steps
		require.Equal(t, want, *times)
	}
}

func TestKeysThatFallDueTogetherGoAtOnce(t *testing.T) {
	ks, clock, _ := timesOfSteps(t)
	for i := range 20_000 {
		set(ks, fmt.Sprint(i), "v", 5000)
	}
	clock.Advance(5 * time.Second)
	require.Zero(t, dbStats(ks, 0).Keys)
}
