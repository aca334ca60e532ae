package streams

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// groupModel is the expected state of a group's references.
type groupModel struct {
	last    ID
	pending map[ID]bool
}

// needed reports whether one of the groups still needs an entry.
func needed(groups map[string]*groupModel, id ID) bool {
	for _, g := range groups {
		if g.last.Less(id) || g.pending[id] {
			return true
		}
	}
	return false
}

func TestTrimRegardsReferencesAsAsked(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		s := New()
		var entries []ID
		groups := map[string]*groupModel{}
		lim := Limits{Entries: rapid.IntRange(1, 5).Draw(t, "limit of a block")}
		anyID := func(t *rapid.T) ID { return ID{rapid.Uint64Range(0, s.LastID().Ms+1).Draw(t, "id"), 0} }
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				for range rapid.IntRange(1, 6).Draw(t, "entries") {
					id := ID{s.LastID().Ms + 1, 0}
					add(t, s, lim, id)
					entries = append(entries, id)
				}
			},
			"delete": func(t *rapid.T) {
				id := anyID(t)
				s.Delete(id)
				entries = without(entries, func(e ID) bool { return e == id })
			},
			"create a group": func(t *rapid.T) {
				name, last := rapid.SampledFrom([]string{"g", "h"}).Draw(t, "name"), anyID(t)
				if _, created := s.CreateGroup([]byte(name), last, UnknownEntriesRead); created {
					groups[name] = &groupModel{last, map[ID]bool{}}
				}
			},
			"destroy a group": func(t *rapid.T) {
				s.DestroyGroup([]byte("h"))
				delete(groups, "h")
			},
			"read": func(t *rapid.T) {
				count, noAck := rapid.IntRange(0, 6).Draw(t, "count"), rapid.Bool().Draw(t, "noack")
				for name, m := range groups {
					g := s.Group([]byte(name))
					c, _ := g.CreateConsumer([]byte("c"), 0)
					g.ReadNew(s, c, count, noAck, 0, func(e Entry) {
						m.last = e.ID
						if !noAck {
							m.pending[e.ID] = true
						}
					})
				}
			},
			"ack": func(t *rapid.T) {
				from, n := anyID(t), rapid.Uint64Range(1, 6).Draw(t, "entries")
				for name, m := range groups {
					for id := from; id.Ms < from.Ms+n; id.Ms++ {
						require.Equal(t, m.pending[id], s.Group([]byte(name)).Ack(id))
						delete(m.pending, id)
					}
				}
			},
			"trim": func(t *rapid.T) {
				how := Trim{References: anyReferences(t), Approx: rapid.Bool().Draw(t, "approx")}
				if how.Approx {
					how.Limit = rapid.IntRange(0, 8).Draw(t, "limit")
				}
				byLength := rapid.Bool().Draw(t, "by length")
				maxLen, minID := rapid.IntRange(0, len(entries)+1).Draw(t, "length"), anyID(t)
				before, removed := s.Clone(), 0
				if byLength {
					removed = s.TrimByLength(maxLen, how)
				} else {
					removed = s.TrimByMinID(minID, how)
				}
				// Of the removable entries the first ones go.
				var gone []ID
				for _, id := range entries {
					switch {
					case byLength && len(entries)-len(gone) <= maxLen, !byLength && !id.Less(minID):
						continue
					case how.References == OnlyAcknowledged && needed(groups, id):
						continue
					}
					if gone = append(gone, id); how.Approx && len(gone) == removed {
						break
					}
				}
				if how.Approx {
					require.LessOrEqual(t, removed, len(gone))
					gone = gone[:removed]
					if how.Limit > 0 {
						require.LessOrEqual(t, removed, how.Limit)
					}
					// An exact trim to the remaining length has the same result, as the journal requires.
					how.Approx, how.Limit = false, 0
					before.TrimByLength(s.Len(), how)
					require.Equal(t, dump(s), dump(before))
				}
				require.Len(t, gone, removed)
				for _, id := range gone {
					entries = without(entries, func(e ID) bool { return e == id })
					for _, m := range groups {
						if how.References == DeleteReferences {
							delete(m.pending, id)
						}
					}
				}
			},
			"": func(t *rapid.T) {
				var got []ID
				s.Range(MinID, MaxID, false, func(e Entry) bool { got = append(got, e.ID); return true })
				require.Equal(t, entries, got)
				require.Len(t, entries, s.Len())
				require.Len(t, s.Groups(), len(groups))
				for name, m := range groups {
					pending := map[ID]bool{}
					s.Group([]byte(name)).Pending(MinID, MaxID, func(n *NACK) bool { pending[n.ID] = true; return true })
					require.Equal(t, m.pending, pending)
				}
				checkAll(t, s)
			},
		})
	})
}

// without returns the IDs for which fn returns false.
func without(ids []ID, fn func(ID) bool) []ID {
	var out []ID
	for _, id := range ids {
		if !fn(id) {
			out = append(out, id)
		}
	}
	return out
}

func TestAnApproximateTrimTakesWhatIsAcknowledgedOfWholeBlocks(t *testing.T) {
	// Blocks of 10 entries. The first two and the last one each have a pending entry, and the last one has been
	// delivered in part.
	build := func() *Stream {
		s := New()
		g, _ := s.CreateGroup([]byte("g"), MinID, UnknownEntriesRead)
		c, _ := g.CreateConsumer([]byte("c"), 0)
		for i := range uint64(50) {
			add(t, s, Limits{Entries: 10}, ID{i + 1, 0})
		}
		g.ReadNew(s, c, 45, false, 0, func(Entry) {})
		for i := range uint64(45) {
			if id := (ID{i + 1, 0}); id.Ms != 3 && id.Ms != 20 && id.Ms != 41 {
				require.True(t, g.Ack(id))
			}
		}
		return s
	}
	for _, c := range []struct {
		maxLen, limit, want int
		exact               bool
		deleted             uint64
	}{
		{maxLen: 50, want: 0},
		{maxLen: 41, want: 0},
		{maxLen: 40, want: 9, deleted: 10},
		{maxLen: 31, want: 18, deleted: 19},
		{maxLen: 0, want: 42, deleted: 45},
		{maxLen: 0, limit: 9, want: 0},
		{maxLen: 0, limit: 18, want: 9, deleted: 10},
		{maxLen: 0, limit: 19, want: 18, deleted: 19},
		{maxLen: 45, want: 5, exact: true, deleted: 6},
		{maxLen: 48, want: 2, exact: true},
		{maxLen: 0, want: 42, exact: true, deleted: 45},
	} {
		s := build()
		require.Equal(t, c.want, s.TrimByLength(c.maxLen,
			Trim{Approx: !c.exact, Limit: c.limit, References: OnlyAcknowledged}), "%+v", c)
		require.Equal(t, ID{c.deleted, 0}, s.MaxDeletedID(), "%+v", c)
	}
}

func TestReferencesToEntriesThatWentBeforeStay(t *testing.T) {
	s := New()
	g, _ := s.CreateGroup([]byte("g"), MinID, UnknownEntriesRead)
	c, _ := g.CreateConsumer([]byte("c"), 0)
	for i := range uint64(4) {
		add(t, s, Limits{}, ID{i + 1, 0})
	}
	g.ReadNew(s, c, 0, false, 0, func(Entry) {})
	s.Delete(ID{1, 0})
	require.Equal(t, 1, s.TrimByLength(2, Trim{References: DeleteReferences}))
	require.NotNil(t, g.FindPending(ID{1, 0}))
	require.Nil(t, g.FindPending(ID{2, 0}))
	require.NotNil(t, g.FindPending(ID{3, 0}))
}

func TestTrimmingInSteadyStateDoesNotAllocateWhateverBecomesOfReferences(t *testing.T) {
	for _, refs := range []References{KeepReferences, DeleteReferences, OnlyAcknowledged} {
		s := New()
		g, _ := s.CreateGroup([]byte("g"), MinID, UnknownEntriesRead)
		c, _ := g.CreateConsumer([]byte("c"), 0)
		fields, id := [][]byte{[]byte("field"), []byte("value")}, ID{}
		step := func() {
			id.Ms++
			require.NoError(t, s.Append(id, fields, DefaultLimits))
			g.ReadNew(s, c, 0, false, 0, func(Entry) {})
			g.Ack(id)
			s.TrimByLength(1000, Trim{References: refs})
		}
		for range 5000 {
			step()
		}
		require.Equal(t, 1000, s.Len())
		require.Less(t, testing.AllocsPerRun(2000, step), 1.0, refs)
	}
}
