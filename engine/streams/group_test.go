package streams

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// pendingModel is the expected content of a NACK.
type pendingModel struct {
	consumer    string
	time, count int64
}

// idle returns how long an entry has been pending.
func (m pendingModel) idle(now int64) int64 {
	if m.consumer == released {
		return math.MaxInt64
	}
	return now - m.time
}

// released stands for a missing consumer.
const released = "\xff released"

// checkPending compares the pending entries of a group with the model, and checks that each is in the list of its
// consumer and in no other.
func checkPending(t require.TestingT, g *Group, model map[ID]pendingModel) {
	got := map[ID]pendingModel{}
	perConsumer := map[string]int{}
	var last ID
	g.Pending(MinID, MaxID, func(n *NACK) bool {
		require.True(t, last.Less(n.ID))
		last = n.ID
		require.Same(t, n, g.FindPending(n.ID))
		if n.Consumer == nil {
			got[n.ID] = pendingModel{released, n.time, n.DeliveryCount}
			require.Less(t, n.time, int64(endOfRelease))
			require.LessOrEqual(t, n.time, g.lastRelease)
			perConsumer[released]++
			return true
		}
		got[n.ID] = pendingModel{n.Consumer.Name, n.DeliveryTime(), n.DeliveryCount}
		require.NotNil(t, n.Consumer.pending.get(n.ID))
		require.Same(t, n.Consumer, g.Consumer([]byte(n.Consumer.Name)))
		perConsumer[n.Consumer.Name]++
		return true
	})
	require.Equal(t, model, got)
	require.Equal(t, len(model), g.PendingLen())
	require.Equal(t, perConsumer[released], g.Released())
	order := int64(math.MinInt64)
	g.EachReleased(func(n *NACK) {
		require.LessOrEqual(t, order, n.time)
		order = n.time
		perConsumer[released]--
	})
	require.Zero(t, perConsumer[released])
	for _, c := range g.Consumers() {
		require.Equal(t, perConsumer[c.Name], c.PendingLen(), c.Name)
	}
	first, end, ok := g.PendingBounds()
	require.Equal(t, len(model) > 0, ok)
	if ok {
		require.Contains(t, model, first)
		require.Equal(t, last, end)
	}
}

func TestEveryPendingEntryBelongsToExactlyOneConsumer(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		s := New()
		g, _ := s.CreateGroup([]byte("g"), MinID, UnknownEntriesRead)
		model, now := map[ID]pendingModel{}, int64(0)
		consumer := func() *Consumer {
			c, _ := g.CreateConsumer([]byte(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "consumer")), now)
			return c
		}
		anyID := func() ID { return ID{rapid.Uint64Range(0, 30).Draw(t, "id"), 0} }
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				if s.LastID().Ms < 30 {
					add(t, s, Limits{Entries: 4}, ID{s.LastID().Ms + 1, 0})
				}
			},
			"delete":    func(t *rapid.T) { s.Delete(anyID()) },
			"trim":      func(t *rapid.T) { s.TrimByLength(rapid.IntRange(0, 20).Draw(t, "maxlen"), Trim{}) },
			"set id":    func(t *rapid.T) { g.SetID(anyID(), g.EntriesRead) },
			"time goes": func(t *rapid.T) { now += 10 },
			"read": func(t *rapid.T) {
				c, count, noAck := consumer(), rapid.IntRange(0, 3).Draw(t, "count"), rapid.Bool().Draw(t, "noack")
				last, n := g.LastID, 0
				read := g.ReadNew(s, c, count, noAck, now, func(e Entry) {
					n++
					require.True(t, last.Less(e.ID))
					last = e.ID
					if !noAck {
						model[e.ID] = pendingModel{c.Name, now, 1}
					}
				})
				require.Equal(t, n, read)
				require.Equal(t, last, g.LastID)
				if count > 0 {
					require.LessOrEqual(t, read, count)
				}
			},
			"read history": func(t *rapid.T) {
				c, after, count := consumer(), anyID(), rapid.IntRange(0, 3).Draw(t, "count")
				last := after
				g.ReadHistory(s, c, after, count, now, func(e Entry, exists bool) {
					require.True(t, last.Less(e.ID))
					last = e.ID
					require.Equal(t, s.Has(e.ID), exists)
					m := model[e.ID]
					require.Equal(t, c.Name, m.consumer)
					if exists {
						m.time = now
						m.count++
						model[e.ID] = m
					}
				})
			},
			"ack": func(t *rapid.T) {
				id := anyID()
				_, pending := model[id]
				require.Equal(t, pending, g.Ack(id))
				delete(model, id)
			},
			"claim": func(t *rapid.T) {
				c, id := consumer(), anyID()
				opt := ClaimOptions{
					Now: now, DeliveryTime: now, MinIdle: rapid.Int64Range(0, 20).Draw(t, "idle"),
					DeliveryCount: rapid.Int64Range(-1, 3).Draw(t, "count"),
					JustID:        rapid.Bool().Draw(t, "justid"), Force: rapid.Bool().Draw(t, "force"),
				}
				n, dropped := g.Claim(s, id, c, opt)
				m, pending := model[id]
				switch {
				case !s.Has(id):
					require.Nil(t, n)
					require.Equal(t, pending, dropped)
					delete(model, id)
					return
				case !pending && !opt.Force, pending && opt.MinIdle > 0 && m.idle(now) < opt.MinIdle:
					require.Nil(t, n)
					require.False(t, dropped)
					return
				case !pending:
					m.count = 1
				}
				m.consumer, m.time = c.Name, now
				if opt.DeliveryCount >= 0 {
					m.count = opt.DeliveryCount
				} else if !opt.JustID {
					m.count++
				}
				model[id] = m
				require.Same(t, g.FindPending(id), n)
			},
			"release": func(t *rapid.T) {
				id, count := anyID(), rapid.Int64Range(0, 3).Draw(t, "count")
				if n := g.FindPending(id); n != nil {
					g.Release(n, count)
				} else if s.Has(id) {
					g.AddReleased(id, count)
				} else {
					return
				}
				n := g.FindPending(id)
				require.Equal(t, "", n.Owner())
				for other, m := range model {
					require.True(t, other == id || m.time < n.time || m.time > endOfRelease)
				}
				model[id] = pendingModel{released, n.time, count}
			},
			"claim automatically": func(t *rapid.T) {
				c, start, idle := consumer(), anyID(), rapid.Int64Range(0, 20).Draw(t, "idle")
				count, justID := rapid.IntRange(1, 4).Draw(t, "count"), rapid.Bool().Draw(t, "justid")
				n := 0
				next, dropped := g.AutoClaim(s, c, start, idle, now, count, justID, func(claimed *NACK, e Entry) {
					n++
					m := model[e.ID]
					require.True(t, idle == 0 || m.idle(now) >= idle)
					m.consumer, m.time = c.Name, now
					if !justID {
						m.count++
					}
					model[e.ID] = m
					require.Equal(t, claimed.ID, e.ID)
				})
				require.LessOrEqual(t, n+len(dropped), count)
				for _, id := range dropped {
					require.Contains(t, model, id)
					require.False(t, s.Has(id))
					delete(model, id)
				}
				if !next.IsZero() {
					require.Contains(t, model, next)
				}
				for id, m := range model {
					if !id.Less(start) && (next.IsZero() || id.Less(next)) {
						require.True(t, m.consumer == c.Name || m.idle(now) < idle, "%v was passed over", id)
					}
				}
			},
			"claim what is idle": func(t *rapid.T) {
				c, idle, count := consumer(), rapid.Int64Range(0, 30).Draw(t, "idle"), rapid.IntRange(0, 4).Draw(t, "count")
				var want []ID // all claimable IDs, in order
				for id, m := range model {
					if s.Has(id) && (idle == 0 || m.idle(now) >= idle) {
						want = append(want, id)
					}
				}
				slices.SortFunc(want, func(a, b ID) int {
					return cmp.Or(cmp.Compare(model[a].time, model[b].time), cmp.Compare(a.Ms, b.Ms))
				})
				require.Equal(t, len(want) > 0, g.Idle(s, idle, now))
				if count > 0 {
					want = want[:min(count, len(want))]
				}
				var got []ID
				enough := rapid.IntRange(0, 5).Draw(t, "enough")
				n := g.ClaimIdle(s, c, idle, now, count, func(e Entry, since, times int64) bool {
					if len(got) == enough {
						return false
					}
					m := model[e.ID]
					if m.consumer == released {
						m.time = 0
					}
					require.Equal(t, []int64{max(now-m.time, 0), m.count}, []int64{since, times}, e.ID)
					require.Equal(t, 1, e.Len())
					got = append(got, e.ID)
					model[e.ID] = pendingModel{c.Name, now, m.count + 1}
					return true
				})
				require.True(t, slices.Equal(want[:min(enough, len(want))], got), "%v and not %v", got, want)
				require.Equal(t, n, len(got))
			},
			"the clock is set back": func(*rapid.T) { now -= 15 },
			"the last ID is set back": func(t *rapid.T) {
				if !s.Has(s.LastID()) {
					require.NoError(t, s.SetID(ID{max(s.LastID().Ms, 1) - 1, 0}, -1, ID{}))
				}
			},
			"delete the last entry": func(*rapid.T) { s.Delete(s.LastID()) },
			"delete a consumer": func(t *rapid.T) {
				name := consumer().Name
				want := 0
				for id, m := range model {
					if m.consumer == name {
						delete(model, id)
						want++
					}
				}
				n, ok := g.DeleteConsumer([]byte(name))
				require.True(t, ok)
				require.Equal(t, want, n)
			},
			"clone": func(t *rapid.T) {
				old := g
				s = s.Clone()
				g = s.Group([]byte("g"))
				for len(old.Consumers()) > 0 {
					old.DeleteConsumer([]byte(old.Consumers()[0].Name))
				}
			},
			"": func(t *rapid.T) {
				checkPending(t, g, model)
				if g.byDelivery != nil {
					require.LessOrEqual(t, len(g.byDelivery.heap), 2*len(model)+keptDeliveries)
				}
			},
		})
	})
}

func TestGroupsAndConsumersAreListedInByteOrder(t *testing.T) {
	s := New()
	for _, name := range []string{"b", "a\xff", "", "B", "aa", "a"} {
		_, created := s.CreateGroup([]byte(name), MinID, UnknownEntriesRead)
		require.True(t, created)
		_, created = s.Groups()[0].CreateConsumer([]byte(name), 1)
		require.True(t, created || s.Groups()[0].Name == name)
	}
	var names []string
	for _, g := range s.Groups() {
		names = append(names, g.Name)
	}
	require.Equal(t, []string{"", "B", "a", "aa", "a\xff", "b"}, names)

	g, created := s.CreateGroup([]byte("aa"), MaxID, 0)
	require.False(t, created)
	require.Equal(t, MinID, g.LastID)
	require.True(t, s.DestroyGroup([]byte("aa")))
	require.False(t, s.DestroyGroup([]byte("aa")))
	require.Nil(t, s.Group([]byte("aa")))
	require.NotNil(t, s.Group([]byte("a\xff")))

	for _, name := range []string{"z", "y", "x"} {
		g.CreateConsumer([]byte(name), 5)
	}
	names = nil
	for _, c := range g.Consumers() {
		names = append(names, c.Name)
	}
	require.Equal(t, []string{"x", "y", "z"}, names)
	x := g.Consumer([]byte("x"))
	require.Equal(t, []any{"x", int64(5), int64(-1)}, []any{x.Name, x.SeenTime, x.ActiveTime})
	_, ok := g.DeleteConsumer([]byte("nobody"))
	require.False(t, ok)
}

func TestActiveTimeIsThatOfTheLatestDeliveryOrClaim(t *testing.T) {
	s := New()
	add(t, s, DefaultLimits, ID{1, 0})
	g, _ := s.CreateGroup([]byte("g"), MinID, UnknownEntriesRead)
	a, _ := g.CreateConsumer([]byte("a"), 10)
	b, _ := g.CreateConsumer([]byte("b"), 10)
	g.ReadNew(s, a, 0, false, 20, func(Entry) {})
	g.ReadNew(s, b, 0, false, 21, func(Entry) {})
	require.Equal(t, []int64{20, -1}, []int64{a.ActiveTime, b.ActiveTime})
	n, _ := g.Claim(s, ID{1, 0}, b, ClaimOptions{Now: 30, DeliveryTime: 25, DeliveryCount: -1})
	require.Equal(t, int64(25), n.DeliveryTime())
	require.Equal(t, int64(30), b.ActiveTime)
	g.AutoClaim(s, a, MinID, 0, 40, 1, true, func(*NACK, Entry) {})
	require.Equal(t, int64(40), a.ActiveTime)
}

func TestAForcedClaimCountsAsASecondDelivery(t *testing.T) {
	s := New()
	add(t, s, DefaultLimits, ID{1, 0})
	g, _ := s.CreateGroup([]byte("g"), MinID, UnknownEntriesRead)
	c, _ := g.CreateConsumer([]byte("c"), 0)
	n, _ := g.Claim(s, ID{1, 0}, c, ClaimOptions{DeliveryCount: -1, Force: true})
	require.Equal(t, int64(2), n.DeliveryCount)
}

func TestAutoClaimLooksAtTenTimesItsCount(t *testing.T) {
	s := New()
	g, _ := s.CreateGroup([]byte("g"), MinID, UnknownEntriesRead)
	c, _ := g.CreateConsumer([]byte("c"), 0)
	for i := range uint64(30) {
		add(t, s, DefaultLimits, ID{i + 1, 0})
		g.AddPending(ID{i + 1, 0}, c, 100, 1)
	}
	next, dropped := g.AutoClaim(s, c, MinID, 50, 120, 2, false, func(*NACK, Entry) { t.Fatal("none is idle enough") })
	require.Equal(t, ID{21, 0}, next)
	require.Empty(t, dropped)
}

func TestGroupOfASteadyQueueDoesNotAllocate(t *testing.T) {
	s := New()
	g, _ := s.CreateGroup([]byte("g"), MinID, 0)
	c, _ := g.CreateConsumer([]byte("c"), 0)
	fields, ids := byteSlices([]string{"f", "v"}), make([]ID, 0, 10)
	work := func() {
		for range 10 {
			id, _ := s.LastID().Next()
			_ = s.Append(id, fields, DefaultLimits)
		}
		ids = ids[:0]
		g.ReadNew(s, c, 10, false, 0, func(e Entry) { ids = append(ids, e.ID) })
		for _, id := range ids {
			g.Ack(id)
		}
		s.TrimByLength(1000, Trim{Approx: true})
	}
	for range 1000 {
		work()
	}
	require.Zero(t, testing.AllocsPerRun(1000, work))
}

// delivered returns a stream of a million entries, and a group whose only consumer has received all.
func delivered(b *testing.B) (*Stream, *Group, *Consumer) {
	s := million(b)
	g, _ := s.CreateGroup([]byte("g"), MinID, 0)
	c, _ := g.CreateConsumer([]byte("c"), 0)
	g.ReadNew(s, c, 0, false, 0, func(Entry) {})
	return s, g, c
}

func BenchmarkDeliverAndAck(b *testing.B) {
	for _, count := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			s := million(b)
			g, _ := s.CreateGroup([]byte("g"), MinID, 0)
			c, _ := g.CreateConsumer([]byte("c"), 0)
			ids := make([]ID, 0, count)
			b.ReportAllocs()
			for b.Loop() {
				ids = ids[:0]
				if g.ReadNew(s, c, count, false, 0, func(e Entry) { ids = append(ids, e.ID) }) < count {
					g.SetID(MinID, 0)
				}
				for _, id := range ids {
					g.Ack(id)
				}
			}
		})
	}
}

func BenchmarkClaimTheIdleAmongAMillion(b *testing.B) {
	s := million(b)
	g, _ := s.CreateGroup([]byte("g"), MinID, UnknownEntriesRead)
	c, _ := g.CreateConsumer([]byte("c"), 0)
	now := int64(0)
	for g.LastID != s.LastID() {
		now++
		g.ReadNew(s, c, 1, false, now, func(Entry) {})
	}
	require.True(b, g.Idle(s, now-1, now))
	b.ReportAllocs()
	for b.Loop() {
		now++
		if n := g.ClaimIdle(s, c, 1_000_000, now, 10, func(Entry, int64, int64) bool { return true }); n != 1 {
			b.Fatal(n)
		}
	}
}

func BenchmarkAckAmongAMillion(b *testing.B) {
	s, g, c := delivered(b)
	b.ReportAllocs()
	i := uint64(0)
	for b.Loop() {
		i = (i + 7919) % 1_000_000
		id := ID{1_700_000_000_000 + i, 0}
		g.Ack(id)
		g.AddPending(id, c, 0, 1)
	}
	b.ReportMetric(float64(s.MemoryUsage())/float64(s.Len()), "B/entry")
}

// An entry that is deleted while pending may be added again after the last ID is set back.
func TestPendingEntriesThatComeBackAreIdle(t *testing.T) {
	s := New()
	g, _ := s.CreateGroup([]byte("g"), MinID, UnknownEntriesRead)
	id := ID{1, 0}
	add(t, s, Limits{}, id)
	g.AddReleased(id, 0)
	require.True(t, g.Idle(s, 0, 0))
	s.Delete(id)
	require.NoError(t, s.SetID(ID{}, -1, ID{}))
	require.False(t, g.Idle(s, 0, 0))
	add(t, s, Limits{}, id)
	require.True(t, g.Idle(s, 0, 0))
}
