package engine

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// keyspaces runs a test with one shard and with many.
func keyspaces(t *testing.T, test func(t *testing.T, ks *Keyspace, clock *ManualClock, log *eventLog)) {
	for _, n := range []int{1, 16} {
		t.Run(fmt.Sprintf("%d shards", n), func(t *testing.T) {
			clock := NewManualClock(time.UnixMilli(1_000_000))
			log := &eventLog{}
			ks := New(Options{Shards: n, Slots: testSlots, SlotOf: testSlotOf, Clock: clock, Observer: log})
			ks.SetEventClasses(EventAll | EventNew | EventKeyMiss)
			t.Cleanup(ks.Close)
			test(t, ks, clock, log)
		})
	}
}

// eventLog is an Observer that records the events it gets.
type eventLog struct {
	mu     sync.Mutex
	events []string
}

func (l *eventLog) KeyEvent(_ any, _ EventClass, event string, db int, key string) {
	l.add(fmt.Sprintf("%s %d %s", event, db, key))
}
func (l *eventLog) SubkeyEvent(_ any, _ EventClass, event string, db int, key string, subkeys [][]byte) {
	l.add(fmt.Sprintf("%s %d %s %q", event, db, key, subkeys))
}
func (l *eventLog) KeyChanged(_ any, db int, key string) {
	l.add(fmt.Sprintf("changed %d %s", db, key))
}
func (l *eventLog) Flushed(_ any, db int) { l.add(fmt.Sprintf("flushed %d", db)) }

func (l *eventLog) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, line)
}

func (l *eventLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.events
	l.events = nil
	return out
}

// dbStats returns the size of a database.
func dbStats(ks *Keyspace, db int) (stats DBStats) {
	under(ks, func(g *Guard) { stats = g.DBStats(db) })
	return stats
}

// under runs f under a guard over the whole keyspace.
func under(ks *Keyspace, f func(g *Guard)) {
	var g Guard
	g.Lock(ks, AllShards, ks.Now())
	defer g.Unlock()
	f(&g)
}

func set(ks *Keyspace, key, value string, ttl int64) {
	under(ks, func(g *Guard) {
		e := g.Write(0, []byte(key))
		if e == nil {
			e = g.CreateString(0, []byte(key), []byte(value))
		} else {
			g.Overwrite(e, []byte(value))
		}
		if ttl > 0 {
			g.SetDeadline(e, g.Now()+ttl)
		}
		g.Changed(e, EventString, "set")
	})
}

func pushList(ks *Keyspace, key string, values ...string) {
	under(ks, func(g *Guard) {
		e := g.Write(0, []byte(key))
		if e == nil {
			e = g.Create(0, []byte(key), lists.New(lists.DefaultLimit))
		}
		for _, v := range values {
			e.List().PushBack([]byte(v))
		}
		g.Changed(e, EventList, "rpush")
	})
}

func exists(ks *Keyspace, key string) (ok bool) {
	under(ks, func(g *Guard) { ok = g.Peek(0, []byte(key)) != nil })
	return ok
}

func TestKeysExpireExactlyAtTheirDeadline(t *testing.T) {
	keyspaces(t, func(t *testing.T, ks *Keyspace, clock *ManualClock, log *eventLog) {
		set(ks, "a", "1", 100)
		set(ks, "b", "2", 200)
		set(ks, "c", "3", 0)
		log.take()
		clock.Advance(99 * time.Millisecond)
		require.Empty(t, log.take())
		require.Equal(t, DBStats{Keys: 3, Expires: 2, AvgTTL: 51}, dbStats(ks, 0))
		clock.Advance(time.Millisecond)
		require.Equal(t, []string{"expired 0 a"}, log.take())
		require.Equal(t, DBStats{Keys: 2, Expires: 1, AvgTTL: 100}, dbStats(ks, 0))
		clock.Advance(time.Hour)
		require.Equal(t, []string{"expired 0 b"}, log.take())
		require.True(t, exists(ks, "c"))
		under(ks, func(g *Guard) {
			require.EqualValues(t, 2, g.Stats().Expired)
			require.Positive(t, g.Stats().ExpiryNanos)
		})
	})
}

func TestManyKeysWithOneDeadlineAllExpire(t *testing.T) {
	keyspaces(t, func(t *testing.T, ks *Keyspace, clock *ManualClock, log *eventLog) {
		for i := range 1000 {
			set(ks, fmt.Sprint(i), "v", 50)
		}
		clock.Advance(50 * time.Millisecond)
		require.Zero(t, dbStats(ks, 0).Keys)
	})
}

func TestChangedDeadlineMovesExpiry(t *testing.T) {
	keyspaces(t, func(t *testing.T, ks *Keyspace, clock *ManualClock, log *eventLog) {
		set(ks, "a", "1", 100)
		under(ks, func(g *Guard) { g.SetDeadline(g.Peek(0, []byte("a")), g.Now()+10_000) })
		clock.Advance(5 * time.Second)
		require.True(t, exists(ks, "a"))
		under(ks, func(g *Guard) { g.SetDeadline(g.Peek(0, []byte("a")), 0) })
		clock.Advance(time.Hour)
		require.True(t, exists(ks, "a"))
		require.Zero(t, dbStats(ks, 0).Expires)
	})
}

func TestExpiredKeyIsInvisibleBeforeItsTimerFires(t *testing.T) {
	ks := New(Options{Clock: NewManualClock(time.UnixMilli(1000))})
	defer ks.Close()
	set(ks, "a", "1", 10)
	var g Guard
	g.Lock(ks, AllShards, 1010)
	defer g.Unlock()
	require.Nil(t, g.Read(0, []byte("a")))
	require.Zero(t, g.Len(0))
}

// popper returns a waiter that takes one element, and the slice that receives it.
func popper(keys ...string) (*Waiter, *[]string) {
	p := &popping{}
	return &Waiter{Keys: keys, Client: p}, &p.got
}

// popping is a client that waits for an element.
type popping struct{ got []string }

func (p *popping) Try(g *Guard, key string) bool {
	e := g.PeekString(0, key)
	if e == nil || e.Type() != List {
		return false
	}
	v, _ := e.List().Front()
	p.got = append(p.got, key+"="+string(v))
	e.List().DropFront()
	if e.List().Len() == 0 {
		g.Remove(e, EventGeneric, "del")
	}
	return true
}

func (p *popping) Served() {}

func TestWaitersAreServedInOrderOfArrival(t *testing.T) {
	keyspaces(t, func(t *testing.T, ks *Keyspace, _ *ManualClock, _ *eventLog) {
		var got []*[]string
		for range 4 {
			w, g := popper("k", "other")
			got = append(got, g)
			under(ks, func(g *Guard) { g.Wait(w) })
			defer ks.Leave(w, ks.Now())
		}
		pushList(ks, "k", "1", "2")
		pushList(ks, "other", "3")
		require.Equal(t, [][]string{{"k=1"}, {"k=2"}, {"other=3"}, nil}, [][]string{*got[0], *got[1], *got[2], *got[3]})
		require.False(t, exists(ks, "k"))
	})
}

func TestWithdrawnWaiterTakesNothing(t *testing.T) {
	keyspaces(t, func(t *testing.T, ks *Keyspace, _ *ManualClock, _ *eventLog) {
		first, a := popper("k")
		second, b := popper("k")
		under(ks, func(g *Guard) { g.Wait(first); g.Wait(second) })
		require.True(t, first.Withdraw())
		pushList(ks, "k", "1")
		require.Empty(t, *a)
		require.Equal(t, []string{"k=1"}, *b)
		require.False(t, second.Withdraw())
		ks.Leave(first, 0)
		ks.Leave(second, 0)
		for i := range ks.shards {
			require.Empty(t, ks.shards[i].queues)
		}
	})
}

func TestWaiterThatNeedsMoreShardsIsServedInItsPlace(t *testing.T) {
	clock := NewManualClock(time.UnixMilli(1000))
	ks := New(Options{Shards: 16, Clock: clock})
	defer ks.Close()
	var far string // a key in another shard than "k"
	for i := 0; ks.shardIndex(far) == ks.shardIndex("k"); i++ {
		far = fmt.Sprint("far", i)
	}
	first, a := popper("k")
	second, b := popper("k")
	second.Shards = ks.ShardOf([]byte(far))
	third, c := popper("k")
	under(ks, func(g *Guard) { g.Wait(first); g.Wait(second); g.Wait(third) })
	var g Guard
	g.Lock(ks, ks.ShardOf([]byte("k")), ks.Now())
	e := g.Create(0, []byte("k"), lists.New(lists.DefaultLimit))
	for _, v := range []string{"1", "2", "3"} {
		e.List().PushBack([]byte(v))
	}
	g.Changed(e, EventList, "rpush")
	g.Unlock()
	require.Equal(t, []string{"k=1"}, *a)
	require.Equal(t, []string{"k=2"}, *b)
	require.Equal(t, []string{"k=3"}, *c)
}

func TestWatchSeesEveryKindOfChange(t *testing.T) {
	changes := map[string]func(ks *Keyspace, clock *ManualClock){
		"set": func(ks *Keyspace, _ *ManualClock) { set(ks, "k", "2", 0) },
		"remove": func(ks *Keyspace, _ *ManualClock) {
			under(ks, func(g *Guard) { g.Remove(g.Peek(0, []byte("k")), 0, "") })
		},
		"expire": func(_ *Keyspace, clock *ManualClock) { clock.Advance(time.Second) },
		"flush":  func(ks *Keyspace, _ *ManualClock) { under(ks, func(g *Guard) { g.Flush(0) }) },
		"swap":   func(ks *Keyspace, _ *ManualClock) { under(ks, func(g *Guard) { g.Swap(0, 1) }) },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			keyspaces(t, func(t *testing.T, ks *Keyspace, clock *ManualClock, _ *eventLog) {
				set(ks, "k", "1", 500)
				set(ks, "unrelated", "1", 0)
				var w *Watch
				var version uint64
				under(ks, func(g *Guard) { w, version = g.Watch(0, []byte("k")) })
				set(ks, "unrelated", "2", 0)
				under(ks, func(g *Guard) { require.True(t, g.Unchanged(w, version)) })
				change(ks, clock)
				under(ks, func(g *Guard) {
					require.False(t, g.Unchanged(w, version))
					g.Unwatch(w)
				})
			})
		})
	}
}

func TestScanVisitsWhatStays(t *testing.T) {
	for _, shards := range []int{1, 4} {
		testseed.Check(t, func(t *rapid.T) {
			ks := New(Options{Shards: shards, Clock: NewManualClock(time.UnixMilli(1000))})
			defer ks.Close()
			stay := map[string]bool{}
			for i := range rapid.IntRange(0, 60).Draw(t, "keys") {
				key := fmt.Sprint("stay", i)
				stay[key] = true
				set(ks, key, "v", 0)
				set(ks, fmt.Sprint("go", i), "v", 0)
			}
			var cursor uint64
			for i := 0; ; i++ {
				require.Less(t, i, 10_000)
				under(ks, func(g *Guard) {
					cursor = g.Scan(0, cursor, rapid.IntRange(1, 20).Draw(t, "count"), nil, func(e *Entry) { delete(stay, e.Key()) })
				})
				if cursor == 0 {
					break
				}
				if rapid.Bool().Draw(t, "add") {
					set(ks, fmt.Sprint("new", i), "v", 0)
				}
				under(ks, func(g *Guard) {
					if e := g.Peek(0, []byte(fmt.Sprint("go", i))); e != nil {
						g.Remove(e, 0, "")
					}
				})
			}
			require.Empty(t, stay)
		})
	}
}

func TestMoveKeepsValueAndDeadline(t *testing.T) {
	keyspaces(t, func(t *testing.T, ks *Keyspace, _ *ManualClock, log *eventLog) {
		set(ks, "a", "1", 500)
		under(ks, func(g *Guard) {
			e := g.Move(g.Peek(0, []byte("a")), 3, []byte("b"))
			g.Changed(e, EventGeneric, "rename_to")
			g.Vanished(0, []byte("a"), EventGeneric, "rename_from")
			moved := g.Peek(3, []byte("b"))
			require.Equal(t, "1", string(moved.Bytes()))
			require.Equal(t, g.Now()+500, moved.Deadline())
			require.Nil(t, g.Peek(0, []byte("a")))
		})
		require.Equal(t, DBStats{}, dbStats(ks, 0))
		require.Equal(t, 1, dbStats(ks, 3).Expires)
	})
}

func TestSwapMovesDeadlinesToo(t *testing.T) {
	keyspaces(t, func(t *testing.T, ks *Keyspace, clock *ManualClock, log *eventLog) {
		set(ks, "a", "1", 100)
		under(ks, func(g *Guard) { g.Swap(0, 5) })
		require.Equal(t, 1, dbStats(ks, 5).Expires)
		log.take()
		clock.Advance(100 * time.Millisecond)
		require.Equal(t, []string{"expired 5 a"}, log.take())
	})
}

func TestFlushForgetsDeadlines(t *testing.T) {
	keyspaces(t, func(t *testing.T, ks *Keyspace, clock *ManualClock, log *eventLog) {
		set(ks, "a", "1", 100)
		under(ks, func(g *Guard) { g.Swap(0, 5) })
		set(ks, "b", "1", 100)
		under(ks, func(g *Guard) { require.Equal(t, 1, g.Flush(5)) })
		log.take()
		clock.Advance(time.Hour)
		require.Equal(t, []string{"expired 0 b"}, log.take())
	})
}

func TestEventClassesReadAndPrintAsInRedis(t *testing.T) {
	for in, out := range map[string]string{"": "", "KEA": "AKE", "Kg$lshzxetdab": "AK", "Kg$lshzxetda": "g$lshzxetdaK", "KEx": "xKE", "Em": "Em",
		"KEAmn": "AKEmn"} {
		c, ok := ParseEventClasses(in)
		require.True(t, ok)
		require.Equal(t, out, c.String(), in)
	}
	_, ok := ParseEventClasses("q")
	require.False(t, ok)
}

func TestRandomKeyFindsAllKeys(t *testing.T) {
	keyspaces(t, func(t *testing.T, ks *Keyspace, _ *ManualClock, _ *eventLog) {
		for i := range 5 {
			set(ks, fmt.Sprint(i), "v", 0)
		}
		seen := map[string]bool{}
		under(ks, func(g *Guard) {
			require.Nil(t, g.RandomKey(1))
			for range 1000 {
				seen[g.RandomKey(0).Key()] = true
			}
		})
		require.Len(t, seen, 5)
	})
}

func TestGuardsOfDifferentShardsRunSideBySide(t *testing.T) {
	ks := New(Options{Shards: 16})
	defer ks.Close()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			var g Guard
			for n := range 500 {
				key := []byte(fmt.Sprint(i, n%10))
				g.Lock(ks, ks.ShardOf(key), ks.Now())
				if e := g.Write(0, key); e != nil {
					g.Remove(e, EventGeneric, "del")
				} else {
					g.Changed(g.CreateString(0, key, key), EventString, "set")
				}
				g.Unlock()
				if n%100 == 0 {
					under(ks, func(g *Guard) { g.Len(0) })
				}
			}
		})
	}
	wg.Wait()
	var keys []string
	under(ks, func(g *Guard) { g.Each(0, func(e *Entry) bool { keys = append(keys, e.Key()); return true }) })
	require.Len(t, slices.Compact(keys), dbStats(ks, 0).Keys)
}
