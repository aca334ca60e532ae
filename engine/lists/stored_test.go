package lists

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// storage is what a store has of a value in parts.
type storage map[string]string

// write stores the changes up to the start of the checkpoint.
func (s storage) write(l *delta.Log, p delta.Parts) {
	for _, name := range l.Frozen().Sorted() {
		if data, ok := l.AppendFrozen(nil, name, p); ok {
			s[name] = string(data)
		} else {
			delete(s, name)
		}
	}
	l.Done()
}

// load builds the list from its parts.
func (s storage) load(t require.TestingT, limit Limit, log *delta.Log) *List {
	l := NewLoader(limit)
	for _, name := range slices.Sorted(maps.Keys(s)) {
		require.NoError(t, l.Add([]byte(name), []byte(s[name])))
	}
	list, err := l.Finish(log)
	require.NoError(t, err)
	return list
}

// layout returns the elements of every node.
func layout(l *List) [][]string {
	out := [][]string{}
	for i := range l.nodes {
		nd := l.at(i)
		var elems []string
		for p := nd.head; p < len(nd.buf); {
			var v []byte
			v, p = nd.elem(p)
			elems = append(elems, string(v))
		}
		out = append(out, elems)
	}
	return out
}

// checkNames checks that the nodes of a tracked list have names in order, and that no other slot has one.
func checkNames(t require.TestingT, l *List) {
	require.Len(t, l.extra.names, len(l.ring))
	last := stateName
	for i := range l.nodes {
		name := l.extra.names[l.slot(i)]
		require.Len(t, name, nameLen)
		require.Less(t, last, name)
		last = name
	}
	for i := l.nodes; i < len(l.ring); i++ {
		require.Empty(t, l.extra.names[l.slot(i)])
	}
}

func TestCheckpointsStoreTheListAsItWasWhenTheyBegan(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]Limit{-2, 1, 2, 5}).Draw(t, "limit")
		epochs, stored := &delta.Epochs{Current: 1}, storage{}
		log, l := delta.NewLog(7, epochs), New(limit)
		elem := rapid.Custom(func(t *rapid.T) []byte {
			size := rapid.SampledFrom([]int{0, 1, 127, 128, 1500, 4000, 9000}).Draw(t, "size")
			return bytes.Repeat([]byte{byte('a' + rapid.IntRange(0, 2).Draw(t, "letter"))}, size)
		})
		present := func(t *rapid.T) []byte {
			if l.Len() == 0 {
				return elem.Draw(t, "v")
			}
			v, _ := l.Index(rapid.IntRange(0, l.Len()-1).Draw(t, "present"))
			return slices.Clone(v)
		}
		few := func(t *rapid.T) int { return rapid.IntRange(1, 8).Draw(t, "times") }
		for !l.Large() {
			l.PushBack(elem.Draw(t, "first"))
		}
		l.Track(log)
		var frozen *List // the list at the start of the unfinished checkpoint
		t.Repeat(map[string]func(*rapid.T){
			"PushFront": func(t *rapid.T) {
				for v := range few(t) {
					l.PushFront(bytes.Repeat([]byte{'0' + byte(v)}, 1000))
				}
			},
			"PushBack": func(t *rapid.T) {
				for v := range few(t) {
					l.PushBack(bytes.Repeat([]byte{'0' + byte(v)}, 1000))
				}
			},
			"DropFront": func(t *rapid.T) {
				for range few(t) {
					l.DropFront()
				}
			},
			"DropBack": func(t *rapid.T) {
				for range few(t) {
					l.DropBack()
				}
			},
			"Set": func(t *rapid.T) {
				l.Set(rapid.IntRange(0, max(l.Len()-1, 0)).Draw(t, "index"), elem.Draw(t, "v"))
			},
			"Set to the same length": func(t *rapid.T) {
				l.Set(rapid.IntRange(0, max(l.Len()-1, 0)).Draw(t, "index"), bytes.Repeat([]byte{'s'}, len(present(t))))
			},
			"InsertBefore": func(t *rapid.T) { l.InsertBefore(present(t), elem.Draw(t, "v")) },
			"InsertAfter":  func(t *rapid.T) { l.InsertAfter(present(t), elem.Draw(t, "v")) },
			"Remove": func(t *rapid.T) {
				l.Remove(rapid.SampledFrom([]int{0, 1, 2, -1, -2}).Draw(t, "count"), present(t))
			},
			"Trim": func(t *rapid.T) {
				l.Trim(rapid.IntRange(0, 3).Draw(t, "start"), l.Len()-1-rapid.IntRange(0, 3).Draw(t, "off the end"))
			},
			"Trim to a few": func(t *rapid.T) {
				start := rapid.IntRange(0, max(l.Len()-1, 0)).Draw(t, "start")
				l.Trim(start, start+rapid.IntRange(-1, 3).Draw(t, "more"))
			},
			"new names": func(*rapid.T) { l.rename() },
			"little room": func(t *rapid.T) {
				if frozen == nil { // names as after many insertions in one place
					for i := range l.nodes {
						l.note(i)
						l.extra.names[l.slot(i)] = nameOf(middle + uint64(i))
						l.note(i)
					}
				}
			},
			"change a clone": func(t *rapid.T) {
				c := l.Clone()
				require.Nil(t, c.Log())
				c.PushFront([]byte("only in the clone"))
				c.Set(c.Len()-1, []byte("this too"))
				c.Trim(1, 2)
			},
			"begin": func(*rapid.T) {
				if frozen == nil {
					epochs.Current++
					frozen = l.Clone()
				}
			},
			"fail": func(*rapid.T) {
				if frozen != nil {
					log.Abort(log.Frozen())
					frozen = nil
				}
			},
			"end": func(t *rapid.T) {
				if frozen == nil {
					return
				}
				stored.write(log, l)
				loadedLog := delta.NewLog(7, epochs)
				loaded := stored.load(t, limit, loadedLog)
				check(t, loaded)
				checkNames(t, loaded)
				require.Equal(t, layout(frozen), layout(loaded))
				require.Equal(t, frozen.Encoding(), loaded.Encoding())
				require.Same(t, loadedLog, loaded.Log())
				require.True(t, loadedLog.Clean())
				frozen = nil
				if log.Clean() && rapid.Bool().Draw(t, "go on with what was loaded") {
					l, log = loaded, loadedLog
				}
			},
			"": func(t *rapid.T) {
				check(t, l)
				checkNames(t, l)
			},
		})
	})
}

func TestAQueueChangesOnlyThePartsAtItsEnds(t *testing.T) {
	l, epochs, v := New(DefaultLimit), &delta.Epochs{Current: 1}, make([]byte, 64)
	for range 1000 {
		l.PushFront(v)
	}
	l.Track(delta.NewLog(1, epochs))
	epochs.Current++
	storage{}.write(l.Log(), l)
	for range 10 {
		l.PushFront(v)
		l.DropBack()
	}
	epochs.Current++
	require.Len(t, l.Log().Frozen().Sorted(), 2)
	l.Log().Done()
	require.Less(t, testing.AllocsPerRun(10000, func() {
		l.PushFront(v)
		l.DropBack()
	}), 0.5)
}

func TestInsertionsInOnePlaceNeverRunOutOfNames(t *testing.T) {
	l := from(1, "first", "last")
	l.Track(delta.NewLog(1, &delta.Epochs{Current: 1}))
	last := l.extra.names[l.slot(1)]
	for range 31 {
		l.InsertBefore([]byte("last"), []byte("x"))
	}
	require.Equal(t, last, l.extra.names[l.slot(l.nodes-1)])
	for range 1000 {
		l.InsertBefore([]byte("last"), []byte("x"))
	}
	check(t, l)
	checkNames(t, l)
	require.NotEqual(t, last, l.extra.names[l.slot(l.nodes-1)])
}

func TestNamesAtTheEndsOfTheirRange(t *testing.T) {
	for _, number := range []uint64{0, 1, 2, math.MaxUint64 - 1, math.MaxUint64} {
		l := New(1)
		l.PushBack([]byte("x"))
		l.Track(delta.NewLog(1, &delta.Epochs{Current: 1}))
		l.extra.names[0] = nameOf(number)
		for i := range 5 {
			l.PushFront(fmt.Append(nil, i))
			checkNames(t, l)
			l.PushBack(fmt.Append(nil, i))
			checkNames(t, l)
		}
	}
}

func TestSmallListIsStoredAsItIs(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		l := New(DefaultLimit)
		for range rapid.IntRange(0, 20).Draw(t, "pushed") {
			l.PushBack(make([]byte, rapid.SampledFrom([]int{0, 1, 127, 128, 500, 1000}).Draw(t, "size")))
		}
		for range rapid.IntRange(0, 20).Draw(t, "dropped") {
			l.DropFront()
		}
		for l.Large() {
			l.DropBack()
		}
		got, err := DecodeBlob(l.AppendBlob([]byte("head"))[4:], DefaultLimit)
		require.NoError(t, err)
		check(t, got)
		require.Equal(t, contents(l), contents(got))
		require.Equal(t, l.Encoding(), got.Encoding())
		require.False(t, got.Large())
	})
}

func TestListThatIsStoredWholeIsLoadedIntoNodesWithinTheLimit(t *testing.T) {
	l := from(DefaultLimit, "a", "b", "c", "d", "e")
	got, err := DecodeBlob(l.AppendBlob(nil), 2)
	require.NoError(t, err)
	check(t, got)
	require.Equal(t, [][]string{{"a", "b"}, {"c", "d"}, {"e"}}, layout(got))

	l = from(2, "a", "b", "c", "d")
	l.DropBack()
	l.DropBack()
	require.Equal(t, "quicklist", l.Encoding(), "two of two is more than half")
	got, err = DecodeBlob(l.AppendBlob(nil), 2)
	require.NoError(t, err)
	require.Equal(t, "quicklist", got.Encoding())
}

func TestDecodeBlobRefusesWhatIsNoList(t *testing.T) {
	long := bytes.Repeat([]byte{'x'}, 128)
	tests := []struct {
		name, blob string
		want       error
	}{
		{"nothing", "", errFormat},
		{"unknown format", "\x02\x00", errFormat},
		{"no encoding", "\x01", errEncoding},
		{"unknown encoding", "\x01\x02", errEncoding},
		{"empty quicklist", "\x01\x01", errEncoding},
		{"element cut short", "\x01\x00\x02a", errElement},
		{"no length at the end", "\x01\x00\x01a", errElement},
		{"lengths differ", "\x01\x00\x01a\x02", errElement},
		{"length cut short", "\x01\x00\x80", errElement},
		{"long form of a length", "\x01\x00\x81\x00a\x00\x81", errElement},
		{"enormous length", "\x01\x00\xff\xff\xff\xff\xff\xff\xff\xff\x7f", errElement},
		{"length not mirrored", "\x01\x00\x80\x01" + string(long) + "\x80\x01", errElement},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := DecodeBlob([]byte(tt.blob), DefaultLimit)
			require.ErrorIs(t, err, tt.want)
		})
	}
	_, err := DecodeBlob([]byte("\x01\x00\x80\x01"+string(long)+"\x01\x80"), DefaultLimit)
	require.NoError(t, err)
}

func TestLoaderRefusesPartsThatAreNoList(t *testing.T) {
	type part struct{ name, data string }
	state, quick := part{stateName, "\x01\x00"}, part{stateName, "\x01\x01"}
	node := func(number uint64) part { return part{nameOf(number), "\x01\x01a\x01"} }
	tests := []struct {
		name  string
		parts []part
		want  error
	}{
		{"nothing", nil, errNoState},
		{"no state", []part{node(1)}, errNoState},
		{"state twice", []part{state, state}, errOrder},
		{"state with more", []part{{stateName, "\x01\x00\x00"}}, errFormat},
		{"state of unknown format", []part{{stateName, "\x02\x00"}}, errFormat},
		{"empty quicklist", []part{quick}, errEncoding},
		{"listpack of two nodes", []part{state, node(1), node(2)}, errEncoding},
		{"node twice", []part{quick, node(1), node(1)}, errOrder},
		{"nodes descending", []part{quick, node(2), node(1)}, errOrder},
		{"short name", []part{quick, {"\x00\x01", "\x01\x01a\x01"}}, errName},
		{"node of unknown format", []part{quick, {nameOf(1), "\x02\x01a\x01"}}, errFormat},
		{"node without data", []part{quick, {nameOf(1), ""}}, errFormat},
		{"empty node", []part{quick, {nameOf(1), "\x01"}}, errEmpty},
		{"malformed element", []part{quick, {nameOf(1), "\x01\x01a\x02"}}, errElement},
		{"one node", []part{state, node(1)}, nil},
		{"one node of a quicklist", []part{quick, node(1)}, nil},
		{"two nodes", []part{quick, node(0), node(math.MaxUint64)}, nil},
		{"empty list", []part{state}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := NewLoader(DefaultLimit)
			var err error
			for _, p := range tt.parts {
				if err = l.Add([]byte(p.name), []byte(p.data)); err != nil {
					break
				}
			}
			if err == nil {
				_, err = l.Finish(nil)
			}
			require.ErrorIs(t, err, tt.want)
		})
	}
}

func FuzzDecodeBlob(f *testing.F) {
	f.Add(from(DefaultLimit, "a", "", "some more").AppendBlob(nil), -2)
	f.Add(from(DefaultLimit, "a", string(make([]byte, 9000))).AppendBlob(nil), 1)
	f.Fuzz(func(t *testing.T, b []byte, limit int) {
		if len(b) > 1<<12 {
			return // checking the nodes of a long list takes long
		}
		l, err := DecodeBlob(b, Limit(limit))
		if err != nil {
			return
		}
		check(t, l)
		require.LessOrEqual(t, l.MemoryUsage(), 200+100*len(b))
		require.Equal(t, b[2:], l.AppendBlob(nil)[2:])
	})
}

func FuzzLoader(f *testing.F) {
	f.Add([]byte("\x01\x02\x00\x01\x01\x08\x04\x80\x00\x00\x00\x00\x00\x00\x00\x01\x01a\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		// b consists of parts: one byte with the length of the name, one with that of the data, name, data.
		l := NewLoader(DefaultLimit)
		for len(b) >= 2 {
			n, m := int(b[0]), int(b[1])
			if b = b[2:]; len(b) < n+m {
				return
			}
			if l.Add(b[:n], b[n:n+m]) != nil {
				return
			}
			b = b[n+m:]
		}
		list, err := l.Finish(delta.NewLog(1, &delta.Epochs{Current: 1}))
		if err != nil {
			return
		}
		check(t, list)
		checkNames(t, list)
		list.PushFront([]byte("front"))
		list.PushBack([]byte("back"))
		list.InsertAfter([]byte("front"), make([]byte, 9000))
		check(t, list)
		checkNames(t, list)
	})
}

func BenchmarkTrackedQueue(b *testing.B) {
	l, v := New(DefaultLimit), make([]byte, 64)
	for range 10000 {
		l.PushFront(v)
	}
	l.Track(delta.NewLog(1, &delta.Epochs{Current: 1}))
	b.ReportAllocs()
	for b.Loop() {
		l.PushFront(v)
		l.Back()
		l.DropBack()
	}
}
