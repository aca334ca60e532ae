package engine

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/engine/sets"
	"github.com/atomredis/atomredis/engine/zsets"
	"github.com/atomredis/atomredis/internal/testing/samples"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// memoryStore is a Source that keeps checkpoints in maps.
type memoryStore struct {
	state StoredState
	heads map[spaceNumberKey]Head
	blobs map[spaceNumberKey][]byte
	parts map[uint64]map[string][]byte
}

type spaceNumberKey struct {
	space uint32
	key   string
}

func newMemoryStore() *memoryStore {
	return &memoryStore{heads: map[spaceNumberKey]Head{}, blobs: map[spaceNumberKey][]byte{},
		parts: map[uint64]map[string][]byte{}}
}

func (m *memoryStore) clone() *memoryStore {
	c := &memoryStore{state: m.state, heads: maps.Clone(m.heads), blobs: maps.Clone(m.blobs),
		parts: map[uint64]map[string][]byte{}}
	for id, p := range m.parts {
		c.parts[id] = maps.Clone(p)
	}
	return c
}

func (m *memoryStore) Head(space uint32, key string) (Head, bool, error) {
	h, ok := m.heads[spaceNumberKey{space, key}]
	return h, ok, nil
}

func (m *memoryStore) Blob(space uint32, key string) ([]byte, error) {
	b, ok := m.blobs[spaceNumberKey{space, key}]
	if !ok {
		return nil, errors.New("no such blob")
	}
	return slices.Clone(b), nil
}

func (m *memoryStore) Parts(id uint64, fn func(name, data []byte) error) error {
	for _, name := range slices.Sorted(maps.Keys(m.parts[id])) {
		if err := fn([]byte(name), m.parts[id][name]); err != nil {
			return err
		}
	}
	return nil
}

func (m *memoryStore) Part(id uint64, name []byte) ([]byte, bool, error) {
	b, ok := m.parts[id][string(name)]
	return slices.Clone(b), ok, nil
}

func (m *memoryStore) PartsBetween(id uint64, from, to []byte, reverse bool, fn func(name, data []byte) bool) error {
	names := slices.Sorted(maps.Keys(m.parts[id]))
	first, _ := slices.BinarySearch(names, string(from)+"\x00")
	names = names[max(first-1, 0):]
	end, _ := slices.BinarySearch(names, string(to)+"\x00")
	names = names[:end]
	if reverse {
		slices.Reverse(names)
	}
	for _, name := range names {
		if !fn([]byte(name), m.parts[id][name]) {
			break
		}
	}
	return nil
}

func (m *memoryStore) eachHead(space uint32, fn func(key []byte, h Head) bool) error {
	for k, h := range m.heads {
		if k.space == space && !fn([]byte(k.key), h) {
			return nil
		}
	}
	return nil
}

// write stores what is frozen, and calls between now and then.
func (m *memoryStore) write(t *testing.T, f *Frozen, between func()) {
	var more []uint64
	dropped := map[uint32]bool{}
	for _, space := range f.DroppedSpaces {
		dropped[space] = true
		for k, h := range m.heads {
			if k.space == space {
				more = append(more, h.AllParts()...)
				delete(m.heads, k)
				delete(m.blobs, k)
			}
		}
	}
	var last spaceNumberKey
	ordered := func(k spaceNumberKey) {
		require.True(t, last.space < k.space || last.space == k.space && (last.key < k.key || last == spaceNumberKey{}),
			"%v after %v", k, last)
		require.False(t, dropped[k.space])
		last = k
	}
	require.NoError(t, f.Heads(func(img *Image) error {
		between()
		k := spaceNumberKey{img.Space, img.Key}
		ordered(k)
		h := img.Head
		h.Blob = slices.Clone(h.Blob)
		if h.External && !img.Known {
			m.blobs[k] = h.Blob
		} else if !h.External && img.WasExternal {
			delete(m.blobs, k)
		}
		if h.External || h.Parts != 0 {
			h.Blob = nil
		}
		m.heads[k] = h
		return nil
	}, func(space uint32, key string, wasExternal bool) error {
		k := spaceNumberKey{space, key}
		ordered(k)
		delete(m.heads, k)
		if wasExternal {
			delete(m.blobs, k)
		}
		return nil
	}))
	m.state = StoredState{Spaces: f.Spaces, NextSpace: f.NextSpace, NextParts: f.NextParts}
	more = slices.DeleteFunc(more, f.HasParts)
	require.NoError(t, f.Parts(more, func(id uint64) error {
		delete(m.parts, id)
		return nil
	}, func(id uint64, name string, data []byte) error {
		between()
		if m.parts[id] == nil {
			m.parts[id] = map[string][]byte{}
		}
		m.parts[id][name] = slices.Clone(data)
		return nil
	}, func(id uint64, name string) error {
		delete(m.parts[id], name)
		return nil
	}))
}

// checkNoLeftovers fails if the store has data that no key needs.
func (m *memoryStore) checkNoLeftovers(t *testing.T) {
	used := map[uint64]bool{}
	for k, h := range m.heads {
		for _, id := range h.AllParts() {
			used[id] = true
		}
		if h.External {
			require.Contains(t, m.blobs, k)
		}
	}
	for k := range m.blobs {
		require.True(t, m.heads[k].External, "blob of %v", k)
	}
	for id, p := range m.parts {
		require.True(t, used[id] || len(p) == 0, "parts of %d", id)
	}
}

// dump describes the whole keyspace.
func dump(ks *Keyspace) string {
	var g Guard
	g.Lock(ks, AllShards, 0)
	defer g.unlockShards()
	var lines []string
	for db := range ks.Databases() {
		g.Each(db, func(e *Entry) bool {
			lines = append(lines, line(db, e))
			return true
		})
	}
	sort.Strings(lines)
	return fmt.Sprintf("%d keys\n%s", len(lines), strings.Join(lines, "\n"))
}

// line describes an entry.
func line(db int, e *Entry) string {
	return fmt.Sprintf("%d %q %s %d %t %s", db, e.Key(), e.Type(), e.Deadline(), e.Blessed(), content(e))
}

// histories returns n seeds of random histories, in turn; with -short a fifth of n.
func histories(t *testing.T, n uint64) iter.Seq[uint64] {
	if testing.Short() {
		n /= 5
	}
	first := testseed.Rand(t).Uint64N(1<<32) * 6 // so that the choices by the remainder are the same for each first seed
	return func(yield func(uint64) bool) {
		for i := range n {
			if !yield(first + i) {
				return
			}
		}
	}
}

// content describes the value of an entry.
func content(e *Entry) string {
	v := anyValue(e)
	return samples.For(v).Exactly(v)
}

// anyValue returns the value of an entry: a []byte or a collection.
func anyValue(e *Entry) any {
	if e.Type() == String {
		return e.Bytes()
	}
	e.Load()
	return e.value()
}

// churn makes random changes.
type churn struct {
	ks    *Keyspace
	clock *ManualClock
	rnd   *rand.Rand
}

// smallTexts stores strings in pieces from little more than 1 KiB on.
var smallTexts = textSizes{whole: 1100, piece: 300}

// changeString overwrites a string, or changes part of it, or its length.
func (c *churn) changeString(g *Guard, e *Entry, v []byte) {
	switch {
	case e.Type() != String || c.rnd.IntN(3) == 0:
		g.Overwrite(e, v)
	case len(v) > maxText && c.rnd.IntN(2) == 0:
		g.Exchange(e, v)
	case c.rnd.IntN(2) == 0:
		b := e.Resize(max(len(e.Bytes()), 1))
		b[c.rnd.IntN(len(b))] ^= 1
	default:
		n := len(e.Bytes())
		if b := e.Resize(len(v)); len(b) > n {
			copy(b[n:], v[n:])
		}
	}
}

// entry returns the entry of a random key of a type for changing, and creates it if there is none.
func (c *churn) entry(g *Guard, db int, typ Type, fresh func() any) *Entry {
	key := []byte(fmt.Sprintf("%s%d", typ, c.rnd.IntN(4)))
	if e := g.Write(db, key); e != nil {
		if e.Type() == typ {
			return e
		}
		g.Remove(e, EventGeneric, "del")
	}
	return g.Create(db, key, fresh())
}

func (c *churn) change() {
	if c.rnd.IntN(4) == 0 {
		c.clock.Advance(time.Duration(c.rnd.IntN(20)) * time.Millisecond)
	}
	if c.rnd.IntN(8) == 0 {
		come := make(chan struct{})
		var some *Some
		if c.rnd.IntN(2) == 0 {
			some = SomeElements(c.element())
			if c.rnd.IntN(3) == 0 {
				some = &Some{front: c.rnd.IntN(3), back: 1}
			}
		}
		if c.ks.Fetch(c.rnd.IntN(3), c.anyKey(), some, func() { close(come) }) {
			<-come
		}
	}
	var g Guard
	g.Lock(c.ks, AllShards, c.ks.Now())
	defer g.Unlock()
	db := c.rnd.IntN(3)
	done := func(e *Entry, empty bool) {
		if empty {
			g.Remove(e, EventGeneric, "del")
			return
		}
		g.Changed(e, EventGeneric, "x")
	}
	switch c.rnd.IntN(20) {
	case 16, 17, 18, 19:
		for range 1 + c.rnd.IntN(3) {
			if e := g.Write(db, fmt.Appendf(nil, "%s%d", []Type{Hash, Set, ZSet, List}[c.rnd.IntN(4)], c.rnd.IntN(4))); e != nil {
				c.changeElements(&g, e, done)
			}
		}
	case 0, 1:
		key := []byte(fmt.Sprintf("string%d", c.rnd.IntN(6)))
		v := make([]byte, c.rnd.IntN(2)*c.rnd.IntN(600)+1, 4000)
		if c.rnd.IntN(3) == 0 {
			v = v[:1+c.rnd.IntN(4000)]
		}
		for i := range v {
			v[i] = byte('a' + c.rnd.IntN(26))
		}
		if e := g.Write(db, key); e != nil {
			c.changeString(&g, e, v)
			g.Changed(e, EventString, "set")
		} else {
			g.Changed(g.CreateString(db, key, v), EventString, "set")
		}
	case 2, 3, 4, 5, 6, 7, 8, 9, 10, 11:
		kind := &samples.Types[1+c.rnd.IntN(len(samples.Types)-1)]
		typ, _ := ParseType(kind.Name)
		e := c.entry(&g, db, typ, kind.New)
		v := anyValue(e)
		for range 1 + c.rnd.IntN(5) {
			if kind.Change(v, c.rnd, c.ks.Now()); kind.Empty(v) {
				break
			}
		}
		done(e, kind.Empty(v))
	case 12:
		if e := g.Write(db, c.anyKey()); e != nil {
			g.SetDeadline(e, c.ks.Now()+int64(c.rnd.IntN(2))*1e6)
			if c.rnd.IntN(2) == 0 {
				g.Bless(e, c.rnd.IntN(3) > 0)
			}
			done(e, e.Deadline() != 0 && e.Deadline() <= c.ks.Now())
		}
	case 13:
		if e := g.Write(db, c.anyKey()); e != nil {
			g.Remove(e, EventGeneric, "del")
		}
	case 14:
		if e := g.Write(db, c.anyKey()); e != nil {
			to, key := c.rnd.IntN(3), c.anyKey()
			if old := g.Write(to, key); old == e {
				return
			} else if old != nil {
				g.Remove(old, EventGeneric, "del")
			}
			if c.rnd.IntN(2) == 0 {
				moved := g.Move(e, to, key)
				g.Vanished(db, []byte(e.Key()), EventGeneric, "from")
				g.Changed(moved, EventGeneric, "to")
			} else {
				g.Changed(g.Copy(e, e.CopyValue(), to, key), EventGeneric, "copy")
			}
		}
	case 15:
		switch c.rnd.IntN(12) {
		case 0:
			g.Flush(db)
		case 1:
			g.Flush(-1)
		case 2, 3:
			g.Swap(0, 1+c.rnd.IntN(2))
		default:
			g.Each(db, func(e *Entry) bool {
				g.Unload(e)
				return true
			})
		}
	}
}

// element returns an element's name that occurs in many collections.
func (c *churn) element() []byte {
	if c.rnd.IntN(2) == 0 {
		return fmt.Appendf(nil, "w%d", c.rnd.IntN(40))
	}
	return fmt.Appendf(nil, "n%04d", c.rnd.IntN(40))
}

// changeElements changes two elements of a collection without loading the others.
func (c *churn) changeElements(g *Guard, e *Entry, done func(e *Entry, empty bool)) {
	if e.Type() == List {
		c.changeEnds(e)
		done(e, e.Count() == 0)
		return
	}
	names := [][]byte{c.element(), c.element()}
	if c.rnd.IntN(4) == 0 {
		names = names[:1]
	}
	add := c.rnd.IntN(2) == 0
	var changed bool
	for _, name := range names {
		value := fmt.Append(nil, c.rnd.IntN(1000))
		switch e.Type() {
		case Hash:
			if h := e.Elements(names, 1).Hash(); add {
				h.Update(name, value, hashes.Limits{})
				changed = true
			} else {
				changed = h.Delete(name) || changed
			}
		case Set:
			if s := e.Elements(names, 1).Set(); add {
				changed = s.Add(name, sets.Limits{}) || changed
			} else {
				changed = s.Remove(name) || changed
			}
		case ZSet:
			if z := e.Elements(names, 1).ZSet(); add {
				z.Set(name, float64(c.rnd.IntN(10)), zsets.Limits{})
				changed = true
			} else {
				_, ok := z.Remove(name)
				changed = ok || changed
			}
		default:
			return // RENAME has moved it there
		}
	}
	if changed {
		done(e, e.Count() == 0)
	}
}

// changeEnds adds or removes elements at the ends of a list without loading the others.
func (c *churn) changeEnds(e *Entry) {
	for range 1 + c.rnd.IntN(5) {
		n := min(1+c.rnd.IntN(3), e.Count())
		switch c.rnd.IntN(4) {
		case 0:
			e.Ends(1, 0).List().PushFront(c.element())
		case 1:
			e.Ends(0, 1).List().PushBack(c.element())
		case 2:
			for l := e.Ends(n+1, 0).List(); n > 0; n-- {
				l.DropFront()
			}
		case 3:
			for l := e.Ends(0, n+1).List(); n > 0; n-- {
				l.DropBack()
			}
		}
	}
}

func (c *churn) anyKey() []byte {
	return []byte(fmt.Sprintf("%s%d", Type(c.rnd.IntN(len(kinds))), c.rnd.IntN(4)))
}

func TestACheckpointIsTheKeyspaceAtItsBeginning(t *testing.T) {
	for seed := range histories(t, 60) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		shards := 1 << (seed % 3)
		store := newMemoryStore()
		clock := NewManualClock(time.UnixMilli(1e12))
		ks := New(Options{Shards: shards, Databases: 3, Slots: testSlots, SlotOf: testSlotOf, Clock: clock, Source: store})
		require.NoError(t, ks.Restore(store.state))
		ks.EndReplay(nil)
		ks.texts = smallTexts
		ks.SetTier(seed%2 == 0)
		c := &churn{ks: ks, clock: clock, rnd: rnd}
		for range 12 {
			for range rnd.IntN(60) {
				c.change()
			}
			checkDeadlines(t, ks)
			checkSlots(t, ks)
			frozenAt := clock.Now()
			f := ks.Freeze(func() {})
			want := ""
			if rnd.IntN(3) > 0 {
				want = dump(ks) // also loads values, so it is not done every time
			}
			next := store.clone()
			failed := rnd.IntN(4) == 0
			next.write(t, f, func() {
				if rnd.IntN(4) == 0 {
					c.change()
				}
			})
			if failed {
				f.Abort()
				checkNothingLent(t, ks)
				if rnd.IntN(2) == 0 {
					*store = *next // written all the same
				}
				continue
			}
			*store = *next // the keyspace reads from it
			f.Done()
			checkNothingLent(t, ks)
			store.checkNoLeftovers(t)
			if want != "" {
				again := reopen(t, store.clone(), shards, NewManualClock(frozenAt))
				checkDeadlines(t, again)
				require.Equal(t, want, dump(again), "seed %d", seed)
				checkDeadlines(t, again)
				checkSlots(t, again)
				again.Close()
			}
			if rnd.IntN(4) == 0 {
				// Changes since the checkpoint are not stored, so continue from the stored state.
				ks.Close()
				ks = reopen(t, store, shards, clock)
				c.ks = ks
			}
		}
		ks.Close()
	}
}

// checkNothingLent fails if a checkpoint has not returned its loans.
func checkNothingLent(t *testing.T, ks *Keyspace) {
	require.Empty(t, ks.loans.current)
	require.Zero(t, ks.LentMemory())
}

// checkDeadlines fails if an entry has a wrong position in the deadline index, or is counted wrongly.
func checkDeadlines(t *testing.T, ks *Keyspace) {
	var g Guard
	g.Lock(ks, AllShards, 0)
	defer g.unlockShards()
	for i := range ks.shards {
		s, indexed := &ks.shards[i], 0
		for db := range s.dbs {
			expires, fieldExpires, memberExpires, blessed, blessedExpires := 0, 0, 0, 0, 0
			for p := range s.dbs[db].dict.All() {
				e := *p
				want := e.deadline
				if e.Blessed() {
					if blessed++; e.deadline != 0 {
						blessedExpires++
					}
				}
				if e.deadline != 0 {
					expires++
				}
				if e.flags&flagFields != 0 {
					fieldExpires++
					if e.typ == Set {
						memberExpires++
					}
				}
				if e.flags&flagUnloaded == 0 && e.typ.HasFields() {
					next := e.nextDeadline()
					require.Equal(t, next != 0, e.flags&flagFields != 0)
					if next != 0 && (want == 0 || next < want) {
						want = next
					}
				}
				require.Equal(t, want != 0 || e.flags&flagFields != 0, e.slot != 0)
				if e.slot == 0 {
					continue
				}
				indexed++
				if e.flags&flagUnloaded == 0 {
					require.Equal(t, want, s.expires.At(e))
				} else {
					require.True(t, want == 0 || s.expires.At(e) <= want)
				}
			}
			require.Equal(t, expires, s.dbs[db].expires)
			require.Equal(t, fieldExpires, s.dbs[db].fieldExpires)
			require.Equal(t, memberExpires, s.dbs[db].memberExpires)
			require.Equal(t, blessed, s.dbs[db].blessed)
			require.Equal(t, blessedExpires, s.dbs[db].blessedExpires)
		}
		require.Equal(t, indexed, s.expires.Len())
	}
}

// reopen returns the stored keyspace, with or without all keys loaded.
func reopen(t *testing.T, store *memoryStore, shards int, clock Clock) *Keyspace {
	ks := New(Options{Shards: shards, Databases: 3, Slots: testSlots, SlotOf: testSlotOf, Clock: clock, Source: store})
	ks.texts = smallTexts
	require.NoError(t, ks.Restore(store.state))
	ks.EndReplay(nil)
	require.NoError(t, ks.LoadDirectory(store.eachHead, func(int) bool { return true }))
	return ks
}

func TestKeysAreFoundBeforeTheDirectoryIsLoaded(t *testing.T) {
	store := newMemoryStore()
	clock := NewManualClock(time.UnixMilli(1e12))
	ks := New(Options{Databases: 3, Clock: clock, Source: store})
	require.NoError(t, ks.Restore(store.state))
	ks.EndReplay(nil)
	set := func(ks *Keyspace, key, value string) {
		var g Guard
		g.Lock(ks, AllShards, ks.Now())
		defer g.Unlock()
		if e := g.Write(0, []byte(key)); e != nil {
			g.Overwrite(e, []byte(value))
			g.Changed(e, EventString, "set")
			return
		}
		g.Changed(g.CreateString(0, []byte(key), []byte(value)), EventString, "set")
	}
	for i := range 1000 {
		set(ks, strconv.Itoa(i), "old")
	}
	f := ks.Freeze(func() {})
	store.write(t, f, func() {})
	f.Done()

	ks = New(Options{Databases: 3, Clock: clock, Source: store})
	require.NoError(t, ks.Restore(store.state))
	ks.EndReplay(nil)
	var g Guard
	g.Lock(ks, AllShards, ks.Now())
	require.False(t, g.Complete())
	require.Equal(t, "old", string(g.Read(0, []byte("5")).Bytes()))
	require.Nil(t, g.Read(0, []byte("none")))
	g.Remove(g.Write(0, []byte("7")), EventGeneric, "del")
	require.Nil(t, g.Read(0, []byte("7")), "a removed key must not come back from the store")
	g.Unlock()
	set(ks, "8", "new")
	require.NoError(t, ks.LoadDirectory(store.eachHead, func(int) bool { return true }))
	g.Lock(ks, AllShards, ks.Now())
	defer g.Unlock()
	require.True(t, g.Complete())
	require.Equal(t, 999, g.Len(0))
	require.Nil(t, g.Read(0, []byte("7")))
	require.Equal(t, "new", string(g.Read(0, []byte("8")).Bytes()))
	require.Equal(t, "old", string(g.Read(0, []byte("9")).Bytes()))
}

func TestAFlushWhileTheDirectoryIsLoaded(t *testing.T) {
	store := newMemoryStore()
	clock := NewManualClock(time.UnixMilli(1e12))
	ks := New(Options{Databases: 3, Clock: clock, Source: store})
	require.NoError(t, ks.Restore(store.state))
	ks.EndReplay(nil)
	c := &churn{ks: ks, clock: clock, rnd: rand.New(rand.NewPCG(7, 7))}
	for range 500 {
		c.change()
	}
	f := ks.Freeze(func() {})
	store.write(t, f, func() {})
	f.Done()
	ks = New(Options{Databases: 3, Clock: clock, Source: store})
	require.NoError(t, ks.Restore(store.state))
	ks.EndReplay(nil)
	var g Guard
	g.Lock(ks, AllShards, ks.Now())
	g.Flush(-1)
	g.Unlock()
	require.NoError(t, ks.LoadDirectory(store.eachHead, func(int) bool { return true }))
	require.Equal(t, "0 keys\n", dump(ks))
	f = ks.Freeze(func() {})
	store.write(t, f, func() {})
	f.Done()
	store.checkNoLeftovers(t)
	require.Empty(t, store.heads)
}

// The changed entries and removed keys of several shards are all there, in whatever chunks.
func TestHeadsOfManyChunks(t *testing.T) {
	ks := New(Options{Shards: 4})
	defer ks.Close()
	f := &Frozen{reader: reader{ks: ks}, dirty: make([]entryList, 3), removed: make([][]removal, 3)}
	want := map[string]bool{}
	for i := range 3*entryChunk + 5 {
		e := newEntry(fmt.Sprint("entry", i), nil)
		f.dirty[i%2].add(e)
		want[e.keyUnlocked()] = false
		r := removal{key: fmt.Sprint("removed", i), external: i%3 == 0}
		f.removed[1+i%2] = append(f.removed[1+i%2], r)
		want[r.key] = r.external
	}
	list, refs := f.heads()
	require.Len(t, refs, len(want))
	last := ""
	for _, r := range refs {
		item := list.item(r)
		require.Less(t, last, item.key)
		require.Equal(t, strings.HasPrefix(item.key, "entry"), item.entry != nil)
		external, ok := want[item.key]
		require.True(t, ok)
		require.Equal(t, external, item.external)
		last = item.key
	}
}

// For clients that watch or wait for it, a key that is only in the store changes when a swap brings its database.
func TestSwapKnowsKeysThatAreOnlyStored(t *testing.T) {
	source, clock := newMemoryStore(), NewManualClock(time.UnixMilli(1000))
	options := Options{Databases: 3, Clock: clock, Source: source}
	ks := New(options)
	require.NoError(t, ks.Restore(source.state))
	ks.EndReplay(nil)
	pushList(ks, "k", "v")
	under(ks, func(g *Guard) { g.Swap(0, 1) })
	f := ks.Freeze(func() {})
	source.write(t, f, func() {})
	f.Done()
	ks.Close()

	ks = New(options)
	defer ks.Close()
	require.NoError(t, ks.Restore(source.state))
	ks.EndReplay(nil)
	waiter, got := popper("k")
	var watch *Watch
	var version uint64
	under(ks, func(g *Guard) {
		watch, version = g.Watch(0, []byte("k"))
		g.Wait(waiter)
	})
	under(ks, func(g *Guard) { g.Swap(0, 1) })
	require.Equal(t, []string{"k=v"}, *got)
	under(ks, func(g *Guard) {
		require.False(t, g.Unchanged(watch, version))
		g.Unwatch(watch)
	})
}
