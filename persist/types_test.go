package persist

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/samples"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/journal"
	"github.com/atomredis/atomredis/persist/rdb"
	"github.com/atomredis/atomredis/persist/store/lsm"
)

// Values of all types (package samples) take all the ways that values can take. A type added to the engine must be in
// samples, and in valueOf here.

// valueOf returns the value of an entry in the form of package samples.
func valueOf(e *engine.Entry) any {
	switch e.Type() {
	case engine.String:
		return e.Bytes()
	case engine.List:
		return e.List()
	case engine.Set:
		return e.Set()
	case engine.ZSet:
		return e.ZSet()
	case engine.Hash:
		return e.Hash()
	case engine.Stream:
		return e.Stream()
	case engine.Bloom:
		return e.Bloom()
	case engine.JSON:
		return e.JSON()
	case engine.Cuckoo:
		return e.Cuckoo()
	case engine.CountMin:
		return e.CountMin()
	case engine.TopK:
		return e.TopK()
	case engine.TDigest:
		return e.TDigest()
	case engine.TimeSeries:
		return e.Series()
	case engine.Array:
		return e.Array()
	case engine.VectorSet:
		return e.Vectors()
	case engine.Suggestions:
		return e.Suggestions()
	case engine.Bitmap:
		return e.Bitmap()
	case engine.PathHash:
		return e.PathHash()
	}
	panic("no value of a " + e.Type().String())
}

// describe describes an entry completely.
func describe(e *engine.Entry) string {
	v := valueOf(e)
	return fmt.Sprint(samples.For(v).Exactly(v), " until ", e.Deadline(), e.Blessed())
}

// described describes a keyspace, by database and key.
type described map[string]string

func (d described) add(db int, e *engine.Entry) { d[fmt.Sprint(db, " ", e.Key())] = describe(e) }

// requireSame fails if two keyspaces differ.
func requireSame(t *testing.T, want, got described) {
	t.Helper()
	require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)))
	for key, value := range want {
		require.True(t, value == got[key], "%s: want %.400s\ngot %.400s", key, value, got[key])
	}
}

// stock is a keyspace with all samples in database 0, stored if it has a storage.
type stock struct {
	t       *testing.T
	fs      disk.FS
	rnd     *rand.Rand
	clock   engine.Clock
	ks      *engine.Keyspace
	storage *Storage
}

func newStock(t *testing.T, stored bool) *stock {
	s := &stock{t: t, rnd: rand.New(rand.NewPCG(1, 2)), clock: engine.NewManualClock(time.UnixMilli(1e12))}
	if stored {
		s.fs = crashfs.Mem()
		s.open()
	} else {
		s.ks = engine.New(engine.Options{Clock: s.clock, Databases: 2})
	}
	t.Cleanup(s.close)
	s.under(func(g *engine.Guard) {
		for _, typ := range samples.Types {
			for _, expires := range []int64{0, samples.Never} {
				for name, value := range typ.Values() {
					e := rdb.Create(g, 0, fmt.Append(nil, typ.Name, " ", name, " ", expires), value)
					g.SetDeadline(e, expires)
					g.Bless(e, s.rnd.IntN(4) == 0)
					g.Changed(e, engine.EventGeneric, "x")
				}
			}
		}
	})
	return s
}

func (s *stock) open() {
	var err error
	s.storage, err = Open(Options{FS: s.fs, Dir: "db", NoJournal: true, Policy: journal.No,
		Log: slog.New(slog.DiscardHandler)})
	require.NoError(s.t, err)
	s.ks = engine.New(engine.Options{Source: s.storage.Source(), Clock: s.clock, Databases: 2})
	require.NoError(s.t, s.storage.Recover(s.ks, func(int64, []byte) error { return nil }))
	require.Eventually(s.t, func() bool {
		var g engine.Guard
		g.Lock(s.ks, engine.AllShards, s.ks.Now())
		defer g.Unlock()
		return g.Complete()
	}, time.Minute, time.Millisecond)
}

func (s *stock) close() {
	s.ks.Close()
	if s.storage != nil {
		require.NoError(s.t, s.storage.Close(false))
	}
}

// restart continues with the stored data, which must have no damage and nothing superfluous.
func (s *stock) restart() {
	s.close()
	_, err := lsm.Verify(s.fs, "db", func(msg string) { s.t.Error(msg) })
	require.NoError(s.t, err)
	s.open()
}

func (s *stock) save() { require.NoError(s.t, s.storage.Save()) }

func (s *stock) under(do func(g *engine.Guard)) {
	var g engine.Guard
	g.Lock(s.ks, engine.AllShards, s.ks.Now())
	defer g.Unlock()
	do(&g)
}

// each calls do with the entries of a database. do may change its entry, and nothing else.
func (s *stock) each(db int, do func(g *engine.Guard, e *engine.Entry)) {
	s.under(func(g *engine.Guard) {
		var keys [][]byte
		g.Each(db, func(e *engine.Entry) bool {
			keys = append(keys, []byte(e.Key()))
			return true
		})
		slices.SortFunc(keys, bytes.Compare)
		for _, key := range keys {
			do(g, g.Peek(db, key))
		}
	})
}

func (s *stock) described() described {
	d := described{}
	for db := range s.ks.Databases() {
		s.each(db, func(_ *engine.Guard, e *engine.Entry) { d.add(db, e) })
	}
	return d
}

// unload unloads all values that can leave memory, and returns how many did.
func (s *stock) unload() (n int) {
	s.each(0, func(g *engine.Guard, e *engine.Entry) {
		if g.Unload(e) {
			n++
		}
	})
	return n
}

// change changes some of the values in database 0, and a few deadlines; a few keys are removed, or moved there and
// back.
func (s *stock) change() {
	n := 2 << s.rnd.IntN(4) // one in that many
	s.each(0, func(g *engine.Guard, e *engine.Entry) {
		if s.rnd.IntN(n) > 0 {
			return
		}
		key := []byte(e.Key())
		e = g.Write(0, key)
		switch s.rnd.IntN(50) {
		case 0:
			g.SetDeadline(e, samples.Never-int64(s.rnd.IntN(2)))
			g.Changed(e, engine.EventGeneric, "expire")
			return
		case 1:
			g.Remove(e, engine.EventGeneric, "del")
			return
		case 2:
			moved := g.Move(e, 0, []byte("moved"))
			g.Vanished(0, key, engine.EventGeneric, "rename_from")
			e = g.Move(moved, 0, key)
			g.Vanished(0, []byte("moved"), engine.EventGeneric, "rename_from")
		}
		v := valueOf(e)
		typ := samples.For(v)
		for range 1 + s.rnd.IntN(3) {
			changed := typ.Change(v, s.rnd, s.ks.Now())
			if b, is := changed.([]byte); is {
				if s.rnd.IntN(2) == 0 {
					g.Overwrite(e, b)
				} else {
					copy(e.Resize(len(b)), b)
				}
				v = e.Bytes()
			}
			if typ.Empty(v) {
				g.Remove(e, engine.EventGeneric, "del")
				return
			}
		}
		g.Changed(e, engine.EventGeneric, "x")
	})
}

// rounds returns the number of repetitions: one with -short, where the race detector makes it slow.
func rounds(n int) int {
	if testing.Short() {
		return 1
	}
	return n
}

// ways are what may happen to values. Those without a storage are run with and without one.
var ways = []struct {
	name   string
	stored bool
	run    func(t *testing.T, s *stock)
}{
	{"restart", true, func(t *testing.T, s *stock) {
		for range rounds(3) {
			want := s.described()
			s.save()
			s.restart()
			requireSame(t, want, s.described())
			s.change()
		}
	}},
	{"checkpoint while values change", true, func(t *testing.T, s *stock) {
		for round := range 2 + rounds(6) {
			s.change()
			want, pauses := s.described(), 0
			frozen := s.ks.Freeze(func() {})
			frozen.Pause = func() {
				if pauses++; pauses%32 == 1 {
					s.change()
				}
			}
			if round%3 == 0 { // it fails
				c, err := s.storage.store.Begin()
				require.NoError(t, err)
				require.NoError(t, s.storage.fill(c, frozen))
				c.Abort()
				frozen.Abort()
				continue
			}
			require.NoError(t, s.storage.write(frozen, func() (journal.Anchor, error) { return journal.Anchor{}, nil }, time.Now(),
				nil))
			frozen.Done()
			if round%3 == 1 {
				s.restart()
				requireSame(t, want, s.described())
			}
		}
		require.Zero(t, s.ks.LentMemory())
	}},
	{"unload and load", true, func(t *testing.T, s *stock) {
		for range rounds(3) {
			want := s.described()
			s.save()
			require.Greater(t, s.unload(), len(want)/2) // all except those stored with their key
			requireSame(t, want, s.described())
			s.unload()
			s.change()
			want = s.described()
			s.save()
			s.restart()
			requireSame(t, want, s.described())
		}
	}},
	{"rename unloaded", true, func(t *testing.T, s *stock) {
		want := described{}
		s.each(0, func(_ *engine.Guard, e *engine.Entry) { want.add(1, e) })
		s.save()
		s.unload()
		s.each(0, func(g *engine.Guard, e *engine.Entry) {
			key := []byte(e.Key())
			moved := g.Move(g.Write(0, key), 1, key)
			g.Vanished(0, key, engine.EventGeneric, "move_from")
			g.Changed(moved, engine.EventGeneric, "move_to")
		})
		s.save()
		s.restart()
		requireSame(t, want, s.described())
	}},
	{"copy", false, func(t *testing.T, s *stock) {
		want := described{}
		s.each(0, func(_ *engine.Guard, e *engine.Entry) {
			v := valueOf(e)
			want[fmt.Sprint(1, " ", e.Key())] = fmt.Sprint(samples.For(v).Copied(v), " until ", e.Deadline(), false)
		})
		if s.storage != nil {
			s.save()
			s.unload()
		}
		s.each(0, func(g *engine.Guard, e *engine.Entry) {
			g.Changed(g.Copy(e, e.CopyValue(), 1, []byte(e.Key())), engine.EventGeneric, "copy_to")
		})
		copies := func() described {
			d := described{}
			s.each(1, func(_ *engine.Guard, e *engine.Entry) { d.add(1, e) })
			return d
		}
		requireSame(t, want, copies())
		s.change()
		requireSame(t, want, copies())
		if s.storage != nil {
			s.save()
			s.restart()
			requireSame(t, want, copies())
		}
	}},
	{"snapshot while values change", false, func(t *testing.T, s *stock) {
		for range rounds(4) {
			s.change()
			want, changes := s.described(), 0
			if s.storage != nil {
				s.save()
				s.unload()
			}
			snapshot, err := s.ks.Snapshot(context.Background(), func(*engine.Guard) error { return nil })
			require.NoError(t, err)
			between := func() {
				if s.rnd.IntN(20) > 0 {
					return
				}
				s.change()
				if changes++; s.storage != nil && changes == 2 {
					s.save() // unloaded values are read as they were
				}
			}
			snapshot.Pause = between
			got := described{}
			require.NoError(t, snapshot.Each(func(db int, e *engine.Entry) error {
				got.add(db, e)
				between()
				return nil
			}))
			requireSame(t, want, got)
			require.NotZero(t, changes)
			require.Zero(t, snapshot.KeptBytes())
			require.NoError(t, snapshot.Close())
			require.Zero(t, s.ks.LentMemory())
		}
	}},
	{"DUMP and RESTORE", false, func(t *testing.T, s *stock) {
		want, got := described{}, described{}
		s.each(0, func(g *engine.Guard, e *engine.Entry) {
			payload, err := rdb.Dump(e)
			require.NoError(t, err)
			value, err := rdb.Restore(payload, &limits)
			require.NoError(t, err, e.Key())
			restored := rdb.Create(g, 1, []byte(e.Key()), value)
			g.Changed(restored, engine.EventGeneric, "restore")
			want[e.Key()] = words(valueOf(e), e.Deadline())
			got[e.Key()] = words(valueOf(restored), e.Deadline())
		})
		requireSame(t, want, got)
		if s.storage != nil {
			want := s.described()
			s.save()
			s.restart()
			requireSame(t, want, s.described())
		}
	}},
	{"RDB file while values change", false, func(t *testing.T, s *stock) {
		want := described{}
		s.each(0, func(_ *engine.Guard, e *engine.Entry) { want[e.Key()] = words(valueOf(e), e.Deadline()) })
		snapshot, err := s.ks.Snapshot(context.Background(), func(*engine.Guard) error { return nil })
		require.NoError(t, err)
		snapshot.Pause = s.change
		var file bytes.Buffer
		encoder := rdb.NewEncoder(&file)
		encoder.Begin(rdb.VersionExpiringFields)
		require.NoError(t, snapshot.Each(func(_ int, e *engine.Entry) error {
			encoder.Key(e)
			return encoder.Err()
		}))
		require.NoError(t, encoder.End())
		require.NoError(t, snapshot.Close())
		reader, got := rdb.NewReader(&file, limits), described{}
		for {
			item, err := reader.Next()
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			k := item.(*rdb.Key)
			got[string(k.Key)] = words(k.Value, k.Deadline)
		}
		requireSame(t, want, got)
	}},
}

// words describes a value as far as an RDB file keeps it, and its deadline.
func words(v any, deadline int64) string {
	return fmt.Sprint(samples.For(v).Describe(v), " until ", deadline)
}

var limits = rdb.Limits{Hash: samples.HashLimits, Set: samples.SetLimits, ZSet: samples.ZSetLimits,
	List: samples.ListLimit, Stream: samples.StreamLimits}

func TestValuesOfEveryTypeAreKept(t *testing.T) {
	types := map[string]bool{}
	for _, typ := range samples.Types {
		types[typ.Name] = true
	}
	for typ := engine.Type(0); typ.Known(); typ++ {
		require.True(t, types[typ.String()], "package samples has no %s", typ)
	}
	for _, way := range ways {
		for _, stored := range []bool{false, true} {
			if stored || !way.stored {
				t.Run(fmt.Sprintf("%s, stored %t", way.name, stored), func(t *testing.T) { way.run(t, newStock(t, stored)) })
			}
		}
	}
}
