package listpack

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// elements walks l, and checks its counters against its content.
func elements(t require.TestingT, l *Listpack) [][]byte {
	all, size := [][]byte{}, 0
	for p := l.First(); p != -1; p = l.Next(p) {
		all = append(all, bytes.Clone(l.At(p)))
		size += EncodedLen(l.At(p))
	}
	require.Equal(t, len(all), l.Len())
	require.Len(t, l.Bytes(), size)
	require.LessOrEqual(t, size, roomOf[l.class])
	return all
}

func requireFind(t require.TestingT, want Pos, l *Listpack, v []byte, skip int) {
	p, _ := l.Find(v, skip)
	require.Equal(t, want, p)
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
	require.Empty(t, l.Bytes())
	require.Equal(t, Pos(-1), l.First())
	requireFind(t, none, &l, nil, 0)
	require.True(t, l.Other() == nil)
	l.Insert(-1, []byte("a"))
	requireElements(t, [][]byte{[]byte("a")}, &l)
}

func TestElementsOfEveryWidthAreKept(t *testing.T) {
	var l Listpack
	var want [][]byte
	for _, n := range []int{0, 1, 125, 126, 127, 128, 129, 16380, 16381, 16382, 16383, 16384, 16385, 1 << 19} {
		v := bytes.Repeat([]byte{byte(n) | 0x80}, n)
		before := len(l.Bytes())
		l.Append(v)
		want = append(want, v)
		require.Equal(t, EncodedLen(v), len(l.Bytes())-before)
	}
	requireElements(t, want, &l)
}

func TestFitsKeepsListpacksWithinTheirLimits(t *testing.T) {
	var l Listpack
	require.False(t, l.Fits(1, math.MaxInt))
	require.False(t, l.Fits(1, MaxSize-4))
	require.True(t, l.Fits(1, MaxSize-5))
	l.Append(make([]byte, MaxSize-5))
	require.False(t, l.Fits(1, 0))
	l.Delete(0, 1)
	for range maxCount {
		require.True(t, l.Fits(1, 0))
		l.Append(nil)
	}
	require.False(t, l.Fits(1, 0))
	require.Equal(t, maxCount, l.Len())
}

func TestFindSkipsValues(t *testing.T) {
	var l Listpack
	for _, v := range []string{"a", "b", "b", "a", "c"} {
		l.Append([]byte(v))
	}
	find := func(v string, skip, want, wantBefore int) {
		p, before := l.Find([]byte(v), skip)
		require.Equal(t, wantBefore, before)
		if want < 0 {
			require.Equal(t, none, p)
		} else {
			require.Equal(t, l.Seek(want), p)
		}
	}
	find("b", 0, 1, 1)
	find("b", 1, 2, 1)
	find("c", 1, 4, 2)
	find("c", 2, -1, 2)
	find("d", 0, -1, 5)
}

func TestPairWalksByTwos(t *testing.T) {
	var l Listpack
	for _, v := range []string{"a", "1", strings.Repeat("b", 200), "", "c", strings.Repeat("3", 300)} {
		l.Append([]byte(v))
	}
	var got []string
	for p := l.First(); p != none; {
		var first, second []byte
		first, second, p = l.Pair(p)
		got = append(got, string(first)+"="+string(second))
	}
	require.Equal(t, []string{"a=1", strings.Repeat("b", 200) + "=", "c=" + strings.Repeat("3", 300)}, got)
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
		require.LessOrEqual(t, roomOf[l.class], max(len(l.Bytes())*6/5, len(l.Bytes())+15))
	}
	for l.Len() > 0 {
		l.Delete(l.First(), 1)
		require.LessOrEqual(t, roomOf[l.class], 2*len(l.Bytes())+roomy)
	}
	require.Zero(t, l.class)
	require.True(t, l.p == nil)
}

func TestRoundingUpWastesNothing(t *testing.T) {
	for n := 1; n <= maxSized; n++ {
		require.Equal(t, cap(slices.Grow([]byte(nil), n)), roomOf[classOf[(n+7)/8]])
	}
	for n := maxSized + 1; n <= MaxSize; n += 50_000 {
		b := Buffer{size: uint32(n)}
		b.allocate()
		require.Equal(t, cap(slices.Grow([]byte(nil), n)), roomOf[b.class])
	}
}

func TestMemoryThatIsUsedAgainHasOneOwner(t *testing.T) {
	packs, want := make([]Listpack, 50), make([][][]byte, 50)
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		i := random.IntN(len(packs))
		l := &packs[i]
		switch n := l.Len(); {
		case n > 0 && random.IntN(3) == 0:
			j := random.IntN(n)
			l.Delete(l.Seek(j), 1)
			want[i] = slices.Delete(want[i], j, j+1)
		case random.IntN(50) == 0:
			l.Reset()
			want[i] = nil
		case random.IntN(50) == 0:
			j := random.IntN(len(packs))
			c := l.Clone()
			packs[j].Reset()
			packs[j], want[j] = c, slices.Clone(want[i])
		default:
			v := bytes.Repeat([]byte{byte(i)}, random.IntN(30))
			l.Append(v)
			want[i] = append(want[i], v)
		}
		requireElements(t, want[i], l)
	}
	for i := range packs {
		requireElements(t, want[i], &packs[i])
	}
}

func TestOtherPointerTakesThePlaceOfTheMemory(t *testing.T) {
	var l Listpack
	l.Append([]byte("a"))
	require.True(t, l.Other() == nil)
	x := 5
	l.SetOther(unsafe.Pointer(&x))
	require.True(t, l.Other() == unsafe.Pointer(&x))
	require.Zero(t, l.Len())
	require.Equal(t, unsafe.Sizeof(&x)+8, unsafe.Sizeof(l))
	l.Reset()
	require.True(t, l.Other() == nil)
}

func TestBehavesLikeASliceOfByteStrings(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
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
			"append two": func(t *rapid.T) {
				v, w := value.Draw(t, "value"), value.Draw(t, "value")
				l.Append(v, w)
				model = append(model, v, w)
			},
			"insert": func(t *rapid.T) {
				i, v := index(t), value.Draw(t, "value")
				p := l.Seek(i)
				l.Insert(p, v)
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
				i := index(t)
				n := rapid.IntRange(0, min(4, len(model)-i)).Draw(t, "n")
				l.Delete(l.Seek(i), n)
				model = slices.Delete(model, i, i+n)
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
				requireFind(t, want, &l, v, skip)
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
