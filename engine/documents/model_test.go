package documents

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// The model is a tree of plain Go values: nil, bool, int64, float64, string, *array, *object.
type array struct{ vals []any }

type object struct {
	keys []string
	vals []any
}

func modelJSON(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case float64:
		return AppendDouble(dst, v)
	case string:
		return AppendQuoted(dst, v)
	case *array:
		dst = append(dst, '[')
		for i, e := range v.vals {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = modelJSON(dst, e)
		}
		return append(dst, ']')
	}
	o := v.(*object)
	dst = append(dst, '{')
	for i, e := range o.vals {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = modelJSON(append(AppendQuoted(dst, o.keys[i]), ':'), e)
	}
	return append(dst, '}')
}

type modelTest struct {
	*testing.T
	r      *rand.Rand
	d      *Document
	root   any
	epochs delta.Epochs
	store  map[string][]byte
}

// random returns a value with at most n elements, once as a Value and once for the model.
func (m *modelTest) random(n, depth int) (Value, any) {
	switch kind := m.r.IntN(9); {
	case n > 0 && depth < 8 && kind < 3:
		a, vals := &array{}, []Value(nil)
		count := m.r.IntN(n + 1)
		for range count {
			v, e := m.random(n/count, depth+1)
			vals, a.vals = append(vals, v), append(a.vals, e)
		}
		return NewArray(vals...), a
	case n > 0 && depth < 8 && kind < 6:
		o, vals := &object{}, []Value(nil)
		count := m.r.IntN(n + 1)
		for i := range count {
			v, e := m.random(n/count, depth+1)
			vals, o.vals, o.keys = append(vals, v), append(o.vals, e), append(o.keys, "k"+strconv.Itoa(i))
		}
		return NewObject(slices.Clone(o.keys), vals), o
	case kind == 6:
		i := m.r.Int64() >> m.r.IntN(64)
		return Int(i), i
	case kind == 7:
		f := m.r.NormFloat64()
		return Double(f), f
	case kind == 8:
		b := m.r.IntN(2) == 0
		return Bool(b), b
	}
	s := fmt.Sprintf("%0*d", m.r.IntN(30), m.r.IntN(100))
	return Text(s), s
}

// somewhere returns a random place, the model's value there, and its container.
func (m *modelTest) somewhere() (p *Place, v, in any, i int) {
	v, i = m.root, -1
	for m.r.IntN(5) > 0 {
		switch c := v.(type) {
		case *array:
			if len(c.vals) == 0 {
				return p, v, in, i
			}
			in, i = c, m.r.IntN(len(c.vals))
			p, v = p.Element(i), c.vals[i]
		case *object:
			if len(c.vals) == 0 {
				return p, v, in, i
			}
			in, i = c, m.r.IntN(len(c.vals))
			p, v = p.Member(c.keys[i]), c.vals[i]
		default:
			return p, v, in, i
		}
	}
	return p, v, in, i
}

func (m *modelTest) step() {
	p, v, in, i := m.somewhere()
	size := []int{0, 1, 5, 40}[m.r.IntN(4)]
	if m.r.IntN(300) == 0 {
		size = 3000
	}
	found, ok := m.d.Find(p)
	require.True(m, ok)
	switch m.r.IntN(7) {
	case 0, 1: // replace
		if p == nil && m.r.IntN(20) > 0 {
			return
		}
		value, e := m.random(size, 3)
		require.True(m, m.d.Replace(p, value))
		switch in := in.(type) {
		case nil:
			m.root = e
		case *array:
			in.vals[i] = e
		case *object:
			in.vals[i] = e
		}
	case 2: // add a member
		o, ok := v.(*object)
		value, e := m.random(size, 3)
		name := "k" + strconv.Itoa(m.r.IntN(len64(v)+2))
		require.Equal(m, ok, m.d.SetMember(p, name, value))
		if ok {
			if j := slices.Index(o.keys, name); j >= 0 {
				o.vals[j] = e
			} else {
				o.keys, o.vals = append(o.keys, name), append(o.vals, e)
			}
		}
	case 3: // insert
		a, ok := v.(*array)
		if !ok {
			require.False(m, m.d.Insert(p, 0))
			return
		}
		at := []int{0, len(a.vals), m.r.IntN(len(a.vals) + 1)}[m.r.IntN(3)]
		var vals []Value
		var es []any
		for range 1 + m.r.IntN(1+size) {
			value, e := m.random(size/10, 5)
			vals, es = append(vals, value), append(es, e)
		}
		require.True(m, m.d.Insert(p, at, vals...))
		a.vals = slices.Insert(a.vals, at, es...)
	case 4: // remove
		if p == nil {
			require.False(m, m.d.Remove(p))
			return
		}
		require.True(m, m.d.Remove(p))
		switch in := in.(type) {
		case *array:
			in.vals = slices.Delete(in.vals, i, i+1)
		case *object:
			last := len(in.vals) - 1
			in.vals[i], in.keys[i] = in.vals[last], in.keys[last]
			in.vals, in.keys = in.vals[:last], in.keys[:last]
		}
	case 5: // trim
		a, ok := v.(*array)
		if !ok || m.r.IntN(10) > 0 {
			return
		}
		from := m.r.IntN(len(a.vals) + 1)
		to := from + m.r.IntN(len(a.vals)+1-from)
		require.True(m, m.d.RemoveRange(p, from, to))
		a.vals = slices.Delete(a.vals, from, to)
	case 6: // look
		require.Equal(m, len64(v), found.Len())
		if o, ok := v.(*object); ok && len(o.keys) > 0 {
			j := m.r.IntN(len(o.keys))
			got, ok := found.Get(o.keys[j])
			require.True(m, ok)
			require.True(m, Equal(got, found.At(j)))
			_, ok = found.Get("no such name")
			require.False(m, ok)
		}
	}
}

func len64(v any) int {
	switch v := v.(type) {
	case *array:
		return len(v.vals)
	case *object:
		return len(v.vals)
	}
	return 0
}

// checkpoint stores the changes while further ones are made, and compares what is stored.
func (m *modelTest) checkpoint() {
	if !m.d.Large() {
		b := m.d.AppendBlob(nil)
		d, err := DecodeBlob(b)
		require.NoError(m, err)
		require.Equal(m, string(modelJSON(nil, m.root)), string(d.Root().AppendJSON(nil, Layout{})))
		if m.r.IntN(2) == 0 {
			m.d = d
		}
		return
	}
	if m.d.Log() == nil {
		m.d.Track(delta.NewLog(1, &m.epochs))
		m.store = map[string][]byte{}
	}
	want := string(modelJSON(nil, m.root))
	log := m.d.Log()
	m.epochs.Current++
	for range m.r.IntN(20) {
		m.step()
	}
	for _, name := range log.Frozen().Sorted() {
		if data, ok := log.AppendFrozen(nil, name, m.d); ok {
			m.store[name] = data
		} else {
			delete(m.store, name)
		}
	}
	log.Done()
	loaded := load(m, m.store, nil)
	require.Equal(m, want, string(loaded.Root().AppendJSON(nil, Layout{})))
	check(m, loaded)
	names := map[string]bool{}
	for c, more := (delta.Cursor{}), true; more; {
		c, more = loaded.Walk(c, 1+m.r.IntN(50), func(name string) { names[name] = true })
	}
	require.Len(m, m.store, len(names))
	for name := range m.store {
		require.True(m, names[name])
	}
}

func load(t require.TestingT, store map[string][]byte, log *delta.Log) *Document {
	l := NewLoader()
	for _, name := range slices.Sorted(maps.Keys(store)) {
		require.NoError(t, l.Add([]byte(name), store[name]))
	}
	d, err := l.Finish(log)
	require.NoError(t, err)
	return d
}

// check compares a document's bookkeeping with its content.
func check(t require.TestingT, d *Document) {
	seen := 0
	var walk func(ch *chunk, object bool)
	walk = func(ch *chunk, object bool) {
		n, refs := 0, 0
		for at := 0; at < len(ch.enc); n++ {
			it := itemAt(ch.enc, at, object)
			if i, ok := refAt(ch.enc[it.value:]); ok {
				refs++
				require.Equal(t, ch.refs[i].object, ch.enc[it.value] == tagObjectRef)
			} else {
				r := reader{b: ch.enc[it.value:it.end]}
				require.NoError(t, r.value(0))
				require.Equal(t, len(r.b), r.at)
				if v := decode(r.b, nil); v.form() == formFlat {
					require.LessOrEqual(t, len(v.flat()), headSize+maxFlat)
				}
			}
			at = it.end
		}
		require.Equal(t, ch.n, n)
		for _, b := range ch.refs {
			if b == nil {
				continue
			}
			refs--
			seen++
			require.False(t, b.gone)
			require.True(t, d.pagesOf(b.id) == b)
			mem, count := pagesSize, 0
			for k, ch := range b.chunks {
				walk(ch, b.object)
				require.NotZero(t, ch.n)
				require.True(t, len(ch.enc) <= maxChunk || ch.n == 1)
				require.True(t, k == 0 || b.chunks[k-1].key < ch.key)
				mem, count = mem+ch.memory(), count+ch.n
			}
			require.Equal(t, count, b.count)
			require.Equal(t, b.object && len(b.chunks) > 1, b.object && len(b.chunks) > 1 && b.index != nil)
			if b.index != nil {
				require.Len(t, b.index, count)
				mem += indexedSize * count
			}
			require.Equal(t, mem, b.mem)
			require.True(t, b.depth == 0 || b.depth == b.value().Clone().Depth())
			i := 0
			b.value().Elements(func(j int, name string, v Value) bool {
				require.Equal(t, i, j)
				if i < 3 || i > count-3 || i%100 == 0 {
					require.True(t, Equal(v, b.value().At(i)))
				}
				if b.object {
					got, ok := b.value().Get(name)
					require.True(t, ok)
					require.True(t, got == v)
				}
				i++
				return true
			})
			require.Equal(t, count, i)
		}
		require.Zero(t, refs)
	}
	walk(&d.root, false)
	if d.Large() {
		require.Equal(t, seen, len(d.parts.big)-d.parts.gone)
	} else {
		require.Zero(t, seen)
	}
}

func TestDocumentsAreTreesOfGoValues(t *testing.T) {
	steps := 100_000
	switch {
	case os.Getenv("ATOMREDIS_FULL_TESTS") != "":
		steps = 1_000_000
	case testing.Short():
		steps = 20_000
	}
	m := &modelTest{T: t, r: testseed.Rand(t), epochs: delta.Epochs{Current: 1}}
	restart := func() {
		v, e := m.random([]int{0, 50, 2000}[m.r.IntN(3)], 0)
		m.d, m.root = New(v), e
	}
	restart()
	for i := range steps {
		m.step()
		switch {
		case i%3000 == 0:
			m.checkpoint()
			require.Equal(t, string(modelJSON(nil, m.root)), string(m.d.Root().AppendJSON(nil, Layout{})))
			check(t, m.d)
			require.True(t, Equal(m.d.Root(), m.d.Clone().Root()))
		case m.d.MemoryUsage() > 1<<20 || m.r.IntN(20_000) == 0:
			restart()
		}
	}
}
