package engine

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// loan is a lent value and its content when it was lent.
type loan struct {
	b, want []byte
	*Loan
}

func (g *Guard) lend(e *Entry) loan {
	b, l := g.Lend(e)
	return loan{b, bytes.Clone(b), l}
}

// No operation on a key changes bytes that are lent.
func TestLentBytesStayAsTheyAre(t *testing.T) {
	const size = 50_000
	key := []byte("key")
	old, other := []byte(strings.Repeat("old, ", size/5)), []byte(strings.Repeat("other", size/5))
	for _, c := range []struct {
		name   string
		change func(ks *Keyspace, store *memoryStore)
	}{
		{"a value of the same length", func(ks *Keyspace, _ *memoryStore) { set(ks, "key", string(other), 0) }},
		{"a shorter value", func(ks *Keyspace, _ *memoryStore) { set(ks, "key", string(other[1000:]), 0) }},
		{"a longer value", func(ks *Keyspace, _ *memoryStore) { set(ks, "key", string(other)+"x", 0) }},
		{"a short value", func(ks *Keyspace, _ *memoryStore) { set(ks, "key", "x", 0) }},
		{"written to", func(ks *Keyspace, _ *memoryStore) {
			under(ks, func(g *Guard) { copy(g.Write(0, key).Resize(size), other) })
		}},
		{"made longer", func(ks *Keyspace, _ *memoryStore) {
			under(ks, func(g *Guard) { clear(g.Write(0, key).Resize(size + 1)) })
		}},
		{"made longer twice", func(ks *Keyspace, _ *memoryStore) {
			under(ks, func(g *Guard) {
				e := g.Write(0, key)
				e.Resize(size + 1)
				clear(e.Resize(size + 2))
			})
		}},
		{"made shorter", func(ks *Keyspace, _ *memoryStore) {
			under(ks, func(g *Guard) { clear(g.Write(0, key).Resize(size / 2)) })
		}},
		{"made shorter, and as long as before", func(ks *Keyspace, _ *memoryStore) {
			under(ks, func(g *Guard) {
				e := g.Write(0, key)
				e.Resize(10)
				e.Resize(size)
			})
		}},
		{"another type", func(ks *Keyspace, _ *memoryStore) {
			under(ks, func(g *Guard) {
				e := g.Write(0, key)
				g.OverwriteCollection(e, new(lists.List))
				e.List().PushBack([]byte("x"))
				g.Overwrite(e, other)
				g.Changed(e, EventString, "set")
			})
		}},
		{"removed, and created again", func(ks *Keyspace, _ *memoryStore) {
			under(ks, func(g *Guard) { g.Remove(g.Write(0, key), EventGeneric, "del") })
			set(ks, "key", string(other), 0)
		}},
		{"moved, and written to", func(ks *Keyspace, _ *memoryStore) {
			under(ks, func(g *Guard) {
				moved := g.Move(g.Write(0, key), 1, []byte("other"))
				g.Changed(moved, EventGeneric, "rename")
				copy(moved.Resize(size), other)
			})
		}},
		{"copied, and the copy written to", func(ks *Keyspace, _ *memoryStore) {
			under(ks, func(g *Guard) {
				e := g.Write(0, key)
				copy(g.Copy(e, e.CopyValue(), 1, key).Resize(size), other)
			})
		}},
		{"flushed", func(ks *Keyspace, _ *memoryStore) {
			under(ks, func(g *Guard) { g.Flush(-1) })
			set(ks, "key", string(other), 0)
		}},
		{"expired", func(ks *Keyspace, _ *memoryStore) {
			under(ks, func(g *Guard) { g.SetDeadline(g.Write(0, key), g.Now()+1) })
			ks.Clock().(*ManualClock).Advance(time.Second)
			set(ks, "key", string(other), 0)
		}},
		{"evicted", func(ks *Keyspace, _ *memoryStore) {
			seeded(ks, Eviction{Policy: AllKeysLRU})
			evictN(ks, 1)
			require.False(t, exists(ks, "key"))
			set(ks, "key", string(other), 0)
		}},
		{"in a checkpoint, out of memory, and back", func(ks *Keyspace, store *memoryStore) {
			f := ks.Freeze(func() {})
			store.write(t, f, func() {})
			f.Done()
			under(ks, func(g *Guard) {
				e := g.Peek(0, key)
				require.True(t, g.Unload(e))
				require.Equal(t, string(old), string(e.Bytes()))
				copy(g.Write(0, key).Resize(size), other)
			})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := newMemoryStore()
			ks := New(Options{Databases: 3, Clock: NewManualClock(time.UnixMilli(1e12)), Source: store})
			defer ks.Close()
			require.NoError(t, ks.Restore(store.state))
			ks.EndReplay(nil)
			set(ks, "key", string(old), 0)
			var l loan
			under(ks, func(g *Guard) { l = g.lend(g.Read(0, key)) })
			require.Zero(t, ks.LentMemory())
			c.change(ks, store)
			require.Equal(t, string(l.want), string(l.b))
			if c.name == "copied, and the copy written to" {
				require.Zero(t, ks.LentMemory(), "the value is still a key's")
			} else {
				require.EqualValues(t, cap(l.b), ks.LentMemory())
			}
			l.Return()
			require.Zero(t, ks.LentMemory())
		})
	}
}

// A string lent from time to time behaves like a []byte, and lent bytes do not change until they are returned.
func TestLentStrings(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		lengths := rapid.IntRange(maxText, maxText+3000)
		text := func() []byte { return bytes.Repeat([]byte{rapid.Byte().Draw(t, "text")}, lengths.Draw(t, "length")) }
		want := text()
		e, g := newEntry("key", want), &Guard{ks: new(Keyspace)}
		var loans []loan
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"lend", "give back", "set", "own", "resize", "write"}).Draw(t, "step") {
			case "lend":
				loans = append(loans, g.lend(e))
			case "give back":
				if n := len(loans); n > 0 {
					i := rapid.IntRange(0, n-1).Draw(t, "loan")
					loans[i].Return()
					loans = append(loans[:i], loans[i+1:]...)
				}
			case "set":
				want = text()
				e.SetBytes(want)
			case "own":
				want = text()
				e.own(bytes.Clone(want))
			case "resize":
				n := lengths.Draw(t, "size")
				want = append(bytes.Clone(want[:min(n, len(want))]), make([]byte, max(0, n-len(want)))...)
				require.Equal(t, string(want), string(e.Resize(n)))
			case "write":
				want = bytes.Clone(want)
				at := rapid.IntRange(0, len(want)-1).Draw(t, "place")
				want[at]++
				e.Resize(len(want))[at]++
			}
			require.Equal(t, string(want), string(e.Bytes()))
			for _, l := range loans {
				require.Equal(t, string(l.want), string(l.b))
			}
		}
	})
}

// Returned loans cause no copies.
func TestStringIsChangedInPlaceWhenItsReadersAreDone(t *testing.T) {
	e, g := newEntry("key", make([]byte, 10_000)), &Guard{ks: new(Keyspace)}
	l := g.lend(e)
	e.Resize(10_000)[0] = 1
	require.NotSame(t, &l.b[0], &e.Bytes()[0])
	l = g.lend(e)
	l.Return()
	e.Resize(10_000)[0] = 2
	require.Same(t, &l.b[0], &e.Bytes()[0])
	e.SetBytes(make([]byte, 9_000))
	require.Same(t, &l.b[0], &e.Bytes()[0])
}

// Bytes that only readers keep alive are counted once, whatever happens to the keys.
func TestLentMemoryIsOfStringsThatAreNoKeysValue(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		ks := New(Options{Databases: 2, Shards: 2})
		defer ks.Close()
		key := func() []byte { return []byte(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")) }
		db := func() int { return rapid.IntRange(0, 1).Draw(t, "database") }
		var loans []loan
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			under(ks, func(g *Guard) {
				n, k := db(), key()
				e := g.Write(n, k)
				switch rapid.SampledFrom([]string{"lend", "lend", "return", "return", "set", "resize", "exchange", "remove",
					"move", "copy", "flush", "swap", "list"}).Draw(t, "step") {
				case "lend":
					if e != nil && e.Type() == String && len(e.Bytes()) > maxText {
						loans = append(loans, g.lend(e))
					}
				case "return":
					if len(loans) > 0 {
						i := rapid.IntRange(0, len(loans)-1).Draw(t, "loan")
						loans[i].Return()
						loans = append(loans[:i], loans[i+1:]...)
					}
				case "set":
					v := make([]byte, rapid.SampledFrom([]int{1, 2000, 5000}).Draw(t, "length"))
					if e == nil {
						g.CreateString(n, k, v)
					} else {
						g.Overwrite(e, v)
					}
				case "resize":
					if e != nil && e.Type() == String {
						e.Resize(rapid.SampledFrom([]int{1, 3000, 6000}).Draw(t, "length"))
					}
				case "exchange":
					if e != nil {
						g.Exchange(e, make([]byte, 4000))
					}
				case "remove":
					if e != nil {
						g.Remove(e, EventGeneric, "del")
					}
				case "move", "copy":
					to, other := db(), key()
					if e == nil || g.Peek(to, other) != nil {
						break
					}
					g.Copy(e, e.CopyValue(), to, other)
					if old := g.Peek(to, other); rapid.Bool().Draw(t, "away") {
						g.Remove(old, EventGeneric, "del")
						g.Move(e, to, other)
					}
				case "flush":
					g.Flush(rapid.IntRange(-1, 1).Draw(t, "of"))
				case "swap":
					g.Swap(0, 1)
				case "list":
					if e != nil {
						g.OverwriteCollection(e, new(lists.List))
						e.List().PushBack([]byte("x"))
					}
				}
			})
			under(ks, func(g *Guard) {
				values := map[*Loan]bool{}
				for n := range 2 {
					for _, k := range []string{"a", "b", "c"} {
						if e := g.Peek(n, []byte(k)); e != nil && e.long() != nil {
							values[e.long().loan] = true
						}
					}
				}
				want, seen := 0, map[*Loan]bool{}
				for _, l := range loans {
					if !values[l.Loan] && !seen[l.Loan] {
						want += cap(l.b)
					}
					seen[l.Loan] = true
				}
				require.EqualValues(t, want, ks.LentMemory())
			})
		}
	})
}

// A checkpoint reads a long string without copying it, and returns it at once.
func TestACheckpointBorrowsLongStrings(t *testing.T) {
	source := newMemoryStore()
	ks := New(Options{Source: source})
	defer ks.Close()
	require.NoError(t, ks.Restore(source.state))
	ks.EndReplay(nil)
	long, short := strings.Repeat("a", lendFrom), strings.Repeat("b", lendFrom-1)
	set(ks, "long", long, 0)
	set(ks, "short", short, 0)
	set(ks, "kept", long, 0)
	f := ks.Freeze(func() {})
	set(ks, "kept", short, 0) // its image is kept first
	got := map[string]bool{}
	require.NoError(t, f.Heads(func(img *Image) error {
		want := long
		if img.Key == "short" {
			want = short
		}
		require.Equal(t, img.Key == "long", img.loan != nil, img.Key)
		if img.Key == "long" { // later changes use other memory
			under(ks, func(g *Guard) { clear(g.Write(0, []byte("long")).Resize(lendFrom)) })
		}
		require.True(t, want == string(img.Head.Blob), img.Key)
		got[img.Key] = true
		return nil
	}, nil))
	require.Len(t, got, 3)
	f.Done()
	under(ks, func(g *Guard) {
		require.False(t, g.Read(0, []byte("long")).long().lent())
		require.False(t, g.Read(0, []byte("kept")).long().lent())
	})
	require.Zero(t, ks.LentMemory())
}

// A failed checkpoint returns its loans too.
func TestAFailedCheckpointGivesLongStringsBack(t *testing.T) {
	source := newMemoryStore()
	ks := New(Options{Source: source})
	defer ks.Close()
	require.NoError(t, ks.Restore(source.state))
	ks.EndReplay(nil)
	for _, key := range []string{"a", "b", "c"} {
		set(ks, key, strings.Repeat("a", lendFrom), 0)
	}
	f := ks.Freeze(func() {})
	require.ErrorIs(t, f.Heads(func(*Image) error { return errors.ErrUnsupported }, nil), errors.ErrUnsupported)
	f.Abort()
	under(ks, func(g *Guard) {
		for _, key := range []string{"a", "b", "c"} {
			require.False(t, g.Read(0, []byte(key)).long().lent(), key)
		}
	})
}
