package arrays

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine/delta"
)

// model is an array in plain code.
type model struct {
	elements map[uint64]string
	next     uint64
	set      bool // the cursor
}

func (m *model) indices() []uint64 { return slices.Sorted(maps.Keys(m.elements)) }

func (m *model) len() uint64 {
	n := uint64(0)
	for index := range m.elements {
		n = max(n, index+1)
	}
	return n
}

// back returns the values at the indices before the cursor, newest first, wrapping around to the end.
func (m *model) back(count uint64) (out []string) {
	n := m.len()
	index := m.next - 1
	if !m.set || index >= n {
		index = n - 1
	}
	for range min(count, n) {
		v, ok := m.elements[index]
		if !ok {
			v = "(nil)"
		}
		out = append(out, v)
		if index == 0 {
			index = n
		}
		index--
	}
	return out
}

func (m *model) insert(v string) {
	m.elements[m.next] = v
	m.next, m.set = m.next+1, true
}

func (m *model) ring(size uint64, values []string) {
	if n := m.len(); size < n || size > n && m.set && m.next < n {
		kept := m.back(size)
		if i := slices.Index(kept, "(nil)"); i >= 0 {
			kept = kept[:i]
		}
		m.elements, m.next, m.set = map[uint64]string{}, 0, false
		for _, v := range slices.Backward(kept) {
			m.insert(v)
		}
	}
	for _, v := range values {
		m.next %= size
		m.insert(v)
	}
}

// check compares an array with the model.
func (m *model) check(t *testing.T, a *Array) {
	require.Equal(t, len(m.elements), a.Count())
	require.Equal(t, m.len(), a.Len())
	require.Equal(t, m.next, a.Next())
	got := map[uint64]string{}
	last := int64(-1)
	a.Each(0, MaxIndex, func(index uint64, v []byte) bool {
		require.True(t, last < 0 || uint64(last) < index)
		last = int64(index)
		got[index] = string(v)
		return true
	})
	require.True(t, maps.Equal(m.elements, got))
	a.check(t)
}

// check compares an array's counters with its content.
func (a *Array) check(t *testing.T) {
	memory, pages, sliced := 0, 0, map[uint64]bool{}
	for i, g := range a.groups {
		require.NotEmpty(t, g.pages)
		require.LessOrEqual(t, len(g.pages), groupPages)
		require.LessOrEqual(t, g.first, g.pages[0].number)
		if i > 0 {
			before := a.groups[i-1].pages
			require.Less(t, before[len(before)-1].number, g.first)
		}
		for _, p := range g.pages {
			pages++
			memory += p.memory()
			sliced[p.number/slicePages] = true
			require.Equal(t, p.count(), p.countIn(0, pageSize-1))
			longs, used := 0, 0
			for _, l := range p.long {
				longs += cap(l.value)
			}
			for _, offset := range p.offsets {
				if offset != apart {
					_, size := p.element(offset)
					used += size
				}
			}
			require.Equal(t, longs, p.longs)
			require.Equal(t, len(p.buf)-used, int(p.wasted))
		}
	}
	require.Equal(t, [3]int{memory, pages, len(sliced)}, [3]int{a.memory, a.pages, a.slices})
}

// stored is an array as it is stored in parts.
type stored struct {
	epochs delta.Epochs
	parts  map[string][]byte
}

// write does what a checkpoint does, and calls change meanwhile.
func (st *stored) write(a *Array, change func()) {
	st.epochs.Current++
	names := a.Log().Frozen().Sorted()
	change()
	for _, name := range names {
		if data, ok := a.Log().AppendFrozen(nil, name, a); ok {
			st.parts[name] = data
		} else {
			delete(st.parts, name)
		}
	}
	a.Log().Done()
}

func (st *stored) read(t *testing.T) *Array {
	l := NewLoader()
	for _, name := range slices.Sorted(maps.Keys(st.parts)) {
		require.NoError(t, l.Add([]byte(name), st.parts[name]))
	}
	a, err := l.Finish(delta.NewLog(1, &st.epochs))
	require.NoError(t, err)
	return a
}

// TestRandomOperations compares an array with plain code, while it is stored, read, copied and cloned. With
// ATOMREDIS_FULL_TESTS it does a million operations.
func TestRandomOperations(t *testing.T) {
	operations := 200_000
	if testing.Short() {
		operations = 20_000
	}
	if os.Getenv("ATOMREDIS_FULL_TESTS") != "" {
		operations = 1_000_000
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	var a *Array
	var m *model
	var st *stored
	begin := func() {
		a, m, st = New(), &model{elements: map[uint64]string{}}, &stored{parts: map[string][]byte{}}
		st.epochs.Current = 1
		a.Track(delta.NewLog(1, &st.epochs))
	}
	begin()
	reach := uint64(100)
	index := func() uint64 {
		switch rnd.IntN(20) {
		case 0:
			return MaxIndex - rnd.Uint64N(600)
		case 1:
			return rnd.Uint64() >> rnd.IntN(64) >> 1
		case 2:
			return rnd.Uint64N(1 << 22)
		}
		return rnd.Uint64N(reach)
	}
	value := func() string {
		switch rnd.IntN(40) {
		case 0:
			return strings.Repeat("v", rnd.IntN(2000))
		case 1:
			return strings.Repeat("w", longValue-2+rnd.IntN(4))
		case 2:
			return strings.Repeat("x", 120+rnd.IntN(20))
		}
		return strings.Repeat(string(rune('a'+rnd.IntN(26))), rnd.IntN(12))
	}
	set := func(index uint64, v string) {
		_, there := m.elements[index]
		require.Equal(t, !there, a.Set(index, []byte(v)))
		m.elements[index] = v
	}
	change := func() {
		switch rnd.IntN(30) {
		default:
			set(index(), value())
		case 0, 1, 2, 3, 4, 5:
			i := index()
			_, there := m.elements[i]
			require.Equal(t, there, a.Delete(i))
			delete(m.elements, i)
		case 6:
			lo := index()
			hi := lo + rnd.Uint64N(reach)
			if rnd.IntN(20) == 0 {
				hi = lo + rnd.Uint64()>>rnd.IntN(64)
			}
			gone := 0
			for _, i := range m.indices() {
				if lo <= i && i <= hi {
					delete(m.elements, i)
					gone++
				}
			}
			require.Equal(t, gone, a.DeleteRange(lo, hi))
		case 7, 8, 9:
			if !a.MayInsert(2) {
				a.Seek(0)
				m.next, m.set = 0, false
			}
			v, w := value(), value()
			m.insert(v)
			m.insert(w)
			require.Equal(t, m.next-1, a.Insert([][]byte{[]byte(v), []byte(w)}))
		case 10:
			n := index()
			a.Seek(n)
			m.next, m.set = n, n > 0
		case 11:
			if a.Len() > 1<<40 && rnd.IntN(10) > 0 {
				return // most of the ring would be lost, and the model is slow
			}
			size := 1 + rnd.Uint64N(2*reach)
			v, w := value(), value()
			m.ring(size, []string{v, w})
			require.Equal(t, m.next-1, a.Ring(size, [][]byte{[]byte(v), []byte(w)}))
		}
	}
	for range operations {
		change()
		switch rnd.IntN(400) {
		case 0:
			at := index()
			v, ok := a.Get(at)
			want, there := m.elements[at]
			require.Equal(t, there, ok)
			require.Equal(t, want, string(v))
		case 1: // a range in either direction, read up to a limit
			from, to, limit := index(), index(), 1+rnd.IntN(50)
			want := slices.DeleteFunc(m.indices(), func(i uint64) bool { return i < min(from, to) || i > max(from, to) })
			if from > to {
				slices.Reverse(want)
			}
			var got []uint64
			a.Each(from, to, func(i uint64, v []byte) bool {
				require.Equal(t, m.elements[i], string(v))
				got = append(got, i)
				return len(got) < limit
			})
			require.True(t, slices.Equal(want[:min(limit, len(want))], got), "%d to %d", from, to)
		case 2:
			if m.len() > 1<<40 {
				break
			}
			want, newestFirst := m.back(20), rnd.IntN(2) == 0
			if !newestFirst {
				slices.Reverse(want)
			}
			var got []string
			a.LastItems(20, newestFirst, func(v []byte, ok bool) {
				if !ok {
					v = []byte("(nil)")
				}
				got = append(got, string(v))
			})
			require.Equal(t, want, got)
		case 3:
			m.check(t, a)
			st.write(a, func() {
				for range rnd.IntN(30) {
					change()
				}
			})
			if rnd.IntN(2) == 0 {
				st.write(a, func() {})
				a = st.read(t)
				m.check(t, a)
			}
		case 4:
			b, err := DecodeBlob(a.AppendBlob(nil))
			require.NoError(t, err)
			m.check(t, b)
			m.check(t, a.Clone())
			require.Equal(t, b.AppendBlob(nil), a.Clone().AppendBlob(nil))
		case 5:
			l := NewLoader()
			for c, more := (delta.Cursor{}), true; more; {
				c, more = a.Walk(c, 5, func(name string) {
					data, ok := a.AppendPart(nil, name)
					require.True(t, ok)
					require.NoError(t, l.Add([]byte(name), data))
				})
			}
			b, err := l.Finish(nil)
			require.NoError(t, err)
			m.check(t, b)
		case 6:
			reach = 1 << rnd.IntN(13)
		case 7:
			if rnd.IntN(20) == 0 {
				begin()
			}
		}
	}
	m.check(t, a)
}

func TestCheckpointsWriteWhatHasChanged(t *testing.T) {
	a, st := New(), &stored{parts: map[string][]byte{}}
	st.epochs.Current = 1
	for i := range uint64(100_000) {
		a.Set(i, []byte("value"))
	}
	a.Set(7, bytes.Repeat([]byte("long"), 1000))
	require.True(t, a.Large())
	a.Track(delta.NewLog(1, &st.epochs))
	st.write(a, func() {})
	require.Len(t, st.parts, 1+(100_000+pageSize-1)/pageSize+1)
	for _, c := range []struct {
		change func()
		want   int
	}{
		{func() { a.Set(1000, []byte("other")); a.Set(1001, nil) }, 1},
		{func() { a.Set(7, bytes.Repeat([]byte("more"), 1000)) }, 1},
		{func() { a.Set(7, []byte("short")) }, 2},
		{func() { a.Insert([][]byte{[]byte("at 0"), []byte("at 1")}) }, 2},
		{func() { a.DeleteRange(0, 10*pageSize-1) }, 10},
		{func() { a.Seek(5) }, 1},
	} {
		c.change()
		st.epochs.Current++
		require.Len(t, a.Log().Frozen().Sorted(), c.want)
		st.epochs.Current--
		st.write(a, func() {})
		require.Equal(t, a.AppendBlob(nil), st.read(t).AppendBlob(nil))
	}
}

func TestInfo(t *testing.T) {
	a := New()
	require.Equal(t, Info{}, a.Info(true))
	for i := range uint64(100) {
		a.Set(i+SliceSize, []byte("v"))
	}
	a.Set(0, []byte("v"))
	a.Set(1<<40, []byte("v"))
	require.Equal(t, Info{Slices: 3, Groups: 1, Room: groupPages}, a.Info(false))
	require.Equal(t, Info{Slices: 3, Groups: 1, Room: groupPages, Dense: 1, Sparse: 2, DenseRoom: 128, DenseCount: 100,
		SparseCount: 2}, a.Info(true))
}

// An element of a dense array costs little more than its bytes, and a deleted one costs nothing.
func TestMemory(t *testing.T) {
	a := New()
	for i := range uint64(100_000) {
		a.Set(i, fmt.Appendf(nil, "%08d", i))
	}
	require.Less(t, a.MemoryUsage(), 100_000*17)
	for i := range uint64(100_000) {
		a.Set(i, fmt.Appendf(nil, "%08d", i*7))
	}
	require.Less(t, a.MemoryUsage(), 100_000*17)
	a.DeleteRange(10, MaxIndex)
	require.Less(t, a.MemoryUsage(), 1000)
	a.DeleteRange(0, 9)
	require.Less(t, a.MemoryUsage(), 200)
	b := New()
	for i := range uint64(10_000) {
		b.Set(i<<20, []byte("v"))
	}
	require.Less(t, b.MemoryUsage(), 10_000*200)
	require.LessOrEqual(t, unsafe.Sizeof(page{}), uintptr(144))
}

func TestMalformed(t *testing.T) {
	for _, blob := range []string{
		"", "\x01b\x02\x01\x00", "\x01a\x00", "\x01a\x02\x02\x00", "\x01a\x02\x01\x80", "\x01a\x02\x01\x00\x01a\x02\x01\x00",
		"\x01a\x02\x01\x00\x01p\x00", "\x01a\x02\x01\x00\x09p\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		"\x01a\x02\x01\x00\x09p\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00\x05\x01",          // the value is missing
		"\x01a\x02\x01\x00\x09p\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00\x05\x03",          // no valid length
		"\x01a\x02\x01\x00\x09p\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00\x05\x04",          // the bytes are missing
		"\x01a\x02\x01\x00\x09p\x00\x00\x00\x00\x00\x00\x00\x00\x04\x01\x05\x05\x00",      // the same position twice
		"\x01a\x02\x01\x00\x09p\x01\x00\x00\x00\x00\x00\x00\x00\x03\x00\x05\x00",          // too large an index
		"\x01a\x02\x01\x00\x09p\x00\xff\xff\xff\xff\xff\xff\xff\x03\x00\xff\x00",          // too large an index
		"\x01a\x02\x01\x00\x09v\x00\x00\x00\x00\x00\x00\x00\x00\x01v",                     // no page for it
		"\x01a\x02\x01\x00\x09p\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00\x05\x00\x01a\x00", // out of order
	} {
		_, err := DecodeBlob([]byte(blob))
		require.Error(t, err, "%q", blob)
	}
	a, err := DecodeBlob([]byte("\x01a\x02\x01\x00\x09p\x00\xff\xff\xff\xff\xff\xff\xff\x03\x00\xfe\x00"))
	require.NoError(t, err)
	require.Equal(t, uint64(math.MaxUint64), a.Len())
}

func FuzzDecode(f *testing.F) {
	a := New()
	f.Add(a.AppendBlob(nil))
	a.Insert([][]byte{[]byte("a"), bytes.Repeat([]byte("b"), longValue), nil})
	f.Add(a.AppendBlob(nil))
	for i := range uint64(300) {
		a.Set(i*3, []byte("v"))
	}
	a.Set(MaxIndex, bytes.Repeat([]byte("c"), 2*longValue))
	f.Add(a.AppendBlob(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := DecodeBlob(b)
		if err != nil {
			return
		}
		a.check(t)
		c, err := DecodeBlob(a.AppendBlob(nil))
		require.NoError(t, err)
		require.Equal(t, a.AppendBlob(nil), c.AppendBlob(nil))
		a.Set(100, []byte("v"))
		a.DeleteRange(50, 1000)
		a.Ring(20, [][]byte{[]byte("w")})
		a.check(t)
	})
}

func BenchmarkSet(b *testing.B) {
	a, v := New(), []byte("a value of 20 bytes.")
	i := uint64(0)
	for b.Loop() {
		a.Set(i%1_000_000, v)
		i++
	}
}

func BenchmarkGet(b *testing.B) {
	a, v := New(), []byte("a value of 20 bytes.")
	for i := range uint64(1_000_000) {
		a.Set(i, v)
	}
	i := uint64(0)
	for b.Loop() {
		a.Get(i * 7919 % 1_000_000)
		i++
	}
}

func BenchmarkEach(b *testing.B) {
	a, v := New(), []byte("a value of 20 bytes.")
	for i := range uint64(1_000_000) {
		a.Set(i, v)
	}
	for b.Loop() {
		a.Each(0, MaxIndex, func(uint64, []byte) bool { return true })
	}
	b.ReportMetric(float64(b.N)*1e6/b.Elapsed().Seconds()/1e6, "Melements/s")
}

// BenchmarkSparse has a page for each element.
func BenchmarkSparse(b *testing.B) {
	a, v := New(), []byte("v")
	rnd := rand.New(rand.NewPCG(1, 2))
	for b.Loop() {
		a.Set(rnd.Uint64()>>1, v)
	}
	b.ReportMetric(float64(a.MemoryUsage())/float64(a.Count()), "bytes/element")
}
