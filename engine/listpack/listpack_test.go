package listpack

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// elements walks l forwards, and checks that walking backwards and counting agree.
func elements(t require.TestingT, l *Listpack) [][]byte {
	forward := [][]byte{}
	size := 0
	for p := l.First(); p != -1; p = l.Next(p) {
		forward = append(forward, bytes.Clone(l.At(p)))
		size += EncodedLen(l.At(p))
	}
	backward := [][]byte{}
	for p := l.Last(); p != -1; p = l.Prev(p) {
		backward = append(backward, bytes.Clone(l.At(p)))
	}
	slices.Reverse(backward)
	require.Equal(t, len(forward), len(backward))
	for i := range forward {
		require.True(t, bytes.Equal(forward[i], backward[i]), "element %d differs by direction", i)
	}
	require.Equal(t, len(forward), l.Len())
	require.Equal(t, size, l.Size())
	return forward
}

func requireElements(t require.TestingT, want [][]byte, l *Listpack) {
	got := elements(t, l)
	require.Equal(t, len(want), len(got))
	for i := range want {
		require.True(t, bytes.Equal(want[i], got[i]), "element %d", i)
	}
}

func TestZeroValueIsAnEmptyListpack(t *testing.T) {
	var l Listpack
	require.Equal(t, 0, l.Len())
	require.Equal(t, 0, l.Size())
	require.Equal(t, Pos(-1), l.First())
	require.Equal(t, Pos(-1), l.Last())
	require.Equal(t, Pos(-1), l.Seek(0))
	require.Equal(t, Pos(-1), l.Seek(-1))
	require.Equal(t, Pos(-1), l.Find(nil, 0))
	require.Equal(t, Pos(-1), l.Delete(-1, 1))
	l.InsertBefore(-1, []byte("a"))
	requireElements(t, [][]byte{[]byte("a")}, &l)
}

func TestElementsOfEveryWidthAreWalkableBothWays(t *testing.T) {
	var l Listpack
	var want [][]byte
	for _, n := range []int{0, 1, 125, 126, 127, 128, 129, 16380, 16381, 16382, 16383, 16384, 16385, 1<<21 - 4, 1<<21 - 1, 1 << 21} {
		v := bytes.Repeat([]byte{byte(n) | 0x80}, n)
		before := l.Size()
		l.Append(v)
		want = append(want, v)
		require.Equal(t, EncodedLen(v), l.Size()-before)
	}
	requireElements(t, want, &l)
}

func TestSeekCountsFromEitherEnd(t *testing.T) {
	var l Listpack
	for i := range 11 {
		l.Append(fmt.Append(nil, i))
	}
	for i := range 11 {
		require.Equal(t, fmt.Sprint(i), string(l.At(l.Seek(i))))
		require.Equal(t, fmt.Sprint(10-i), string(l.At(l.Seek(-1-i))))
	}
	require.Equal(t, Pos(-1), l.Seek(11))
	require.Equal(t, Pos(-1), l.Seek(-12))
}

func TestFindSkipsValues(t *testing.T) {
	var l Listpack
	for _, v := range []string{"a", "b", "b", "a", "c"} {
		l.Append([]byte(v))
	}
	require.Equal(t, l.Seek(1), l.Find([]byte("b"), 0))
	require.Equal(t, l.Seek(2), l.Find([]byte("b"), 1))
	require.Equal(t, l.Seek(4), l.Find([]byte("c"), 1))
	require.Equal(t, Pos(-1), l.Find([]byte("c"), 2))
	require.Equal(t, Pos(-1), l.Find([]byte("d"), 0))
}

func TestReplaceKeepsThePosition(t *testing.T) {
	var l Listpack
	for _, v := range []string{"a", "b", "c"} {
		l.Append([]byte(v))
	}
	p := l.Seek(1)
	for _, n := range []int{200, 0, 20000, 1} {
		v := bytes.Repeat([]byte("x"), n)
		l.Replace(p, v)
		require.True(t, bytes.Equal(v, l.At(p)))
		requireElements(t, [][]byte{[]byte("a"), v, []byte("c")}, &l)
	}
}

func TestCloneIsIndependent(t *testing.T) {
	var l Listpack
	l.Append([]byte("a"))
	c := l.Clone()
	c.Replace(c.First(), []byte("b"))
	c.Append([]byte("c"))
	l.Append([]byte("d"))
	requireElements(t, [][]byte{[]byte("a"), []byte("d")}, &l)
	requireElements(t, [][]byte{[]byte("b"), []byte("c")}, &c)
}

func TestAppendedTextDoesNotRunIntoTheNextElement(t *testing.T) {
	var l Listpack
	l.Append([]byte("a"))
	l.Append([]byte("b"))
	_ = append(l.At(l.First()), "overwrite"...)
	requireElements(t, [][]byte{[]byte("a"), []byte("b")}, &l)
}

func TestBufferStaysTight(t *testing.T) {
	var l Listpack
	for range 2000 {
		l.Append([]byte("element"))
		require.LessOrEqual(t, cap(l.buf), l.Size()+l.Size()/2+roomy)
	}
	for l.Len() > 0 {
		l.Delete(l.First(), 1)
		require.LessOrEqual(t, cap(l.buf), 2*l.Size()+roomy)
	}
	require.Zero(t, cap(l.buf))
}

func TestBehavesLikeASliceOfByteStrings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Listpack
		model := [][]byte{}
		value := rapid.Custom(func(t *rapid.T) []byte {
			n := rapid.SampledFrom([]int{0, 1, 2, 3, 60, 125, 126, 127, 128, 300, 16381, 16384}).Draw(t, "size")
			return bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, n)
		})
		index := func(t *rapid.T) int {
			if len(model) == 0 {
				t.Skip("empty")
			}
			return rapid.IntRange(0, len(model)-1).Draw(t, "index")
		}
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				v := value.Draw(t, "value")
				l.Append(v)
				model = append(model, v)
			},
			"prepend": func(t *rapid.T) {
				v := value.Draw(t, "value")
				l.Prepend(v)
				model = slices.Insert(model, 0, v)
			},
			"insert": func(t *rapid.T) {
				i, v := index(t), value.Draw(t, "value")
				p := l.Seek(i)
				l.InsertBefore(p, v)
				require.True(t, bytes.Equal(v, l.At(p)))
				model = slices.Insert(model, i, v)
			},
			"replace": func(t *rapid.T) {
				i, v := index(t), value.Draw(t, "value")
				p := l.Seek(i)
				l.Replace(p, v)
				require.True(t, bytes.Equal(v, l.At(p)))
				model[i] = v
			},
			"delete": func(t *rapid.T) {
				i, n := index(t), rapid.IntRange(-1, 4).Draw(t, "n")
				end := min(i+max(n, 0), len(model))
				next := l.Delete(l.Seek(i), n)
				model = slices.Delete(model, i, end)
				require.Equal(t, l.Seek(i), next)
			},
			"find": func(t *rapid.T) {
				v, skip := value.Draw(t, "value"), rapid.IntRange(0, 3).Draw(t, "skip")
				want := Pos(-1)
				for i := 0; i < len(model); i += skip + 1 {
					if bytes.Equal(model[i], v) {
						want = l.Seek(i)
						break
					}
				}
				require.Equal(t, want, l.Find(v, skip))
			},
			"clone": func(*rapid.T) { l = l.Clone() },
			"": func(t *rapid.T) {
				requireElements(t, model, &l)
			},
		})
	})
}

func BenchmarkFindLastOf128(b *testing.B) {
	var l Listpack
	for i := range 128 {
		l.Append(fmt.Appendf(nil, "field:%04d", i))
	}
	key := []byte("field:0127")
	b.ReportAllocs()
	for b.Loop() {
		l.Find(key, 0)
	}
}

func BenchmarkAppend(b *testing.B) {
	var l Listpack
	v := []byte("element:0001")
	b.ReportAllocs()
	for b.Loop() {
		if l.Len() == 128 {
			l.Reset()
		}
		l.Append(v)
	}
}
