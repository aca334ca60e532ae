package postings

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// keeps are the combinations that lists of TEXT and TAG fields use, and all others.
var keeps = []Keep{0, Freqs, Masks, Offsets, Freqs | Masks, Freqs | Offsets, Masks | Offsets, Freqs | Masks | Offsets}

// kept returns an entry as a list with keep returns it.
func kept(e Entry, keep Keep) Entry {
	if keep&Freqs == 0 {
		e.Freq = 1
	}
	if keep&Masks == 0 {
		e.Mask = All
	}
	if keep&Offsets == 0 {
		e.Offsets = nil
	}
	return e
}

// read returns the entries of a view, including dead ones.
func read(v View) (all []Entry) {
	for r := v.Reader(); r.Next(); {
		all = append(all, present(r))
	}
	return all
}

func present(r *Reader) Entry {
	e := Entry{Doc: r.Doc(), Freq: r.Freq(), Mask: r.Mask(), Offsets: slices.Clone(r.Offsets())}
	if len(e.Offsets) == 0 {
		e.Offsets = nil
	}
	return e
}

func randomEntry(r *rand.Rand, last uint64) Entry {
	e := Entry{Doc: last + 1 + uint64(r.IntN(20)), Freq: 1, Mask: Bit(r.IntN(3))}
	switch r.IntN(50) {
	case 0:
		e.Doc += uint64(r.IntN(1 << 30))
	case 1:
		e.Mask = Bit(r.IntN(128)).Or(Bit(r.IntN(128)))
	case 2:
		e.Mask = Mask{}
	case 3:
		e.Freq = r.Uint32()
	}
	for range r.IntN(4) {
		e.Offsets = append(e.Offsets, uint32(r.IntN(300)))
	}
	if r.IntN(4) > 0 {
		e.Freq = uint32(len(e.Offsets))
	}
	if r.IntN(200) == 0 {
		for range 1000 {
			e.Offsets = append(e.Offsets, r.Uint32())
		}
	}
	slices.Sort(e.Offsets)
	return e
}

func TestListGivesBackWhatWasAdded(t *testing.T) {
	for _, keep := range keeps {
		r := testseed.Rand(t)
		l := New(keep)
		var want []Entry
		last := uint64(0)
		for range 1000 {
			e := randomEntry(r, last)
			last = e.Doc
			l.Add(e)
			want = append(want, kept(e, keep))
		}
		require.Equal(t, want, read(l.View()), "keep %b", keep)
		require.Equal(t, len(want), l.Len())
	}
}

func TestSeekFindsTheFirstDocumentFromANumberOn(t *testing.T) {
	testseed.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		keep := keeps[r.IntN(len(keeps))]
		l := New(keep)
		var all []Entry
		last := uint64(0)
		for range r.IntN(700) {
			e := randomEntry(r, last)
			last = e.Doc
			l.Add(e)
			all = append(all, kept(e, keep))
		}
		reader := l.View().Reader()
		at := -1
		for range 100 {
			var ok bool
			if r.IntN(3) == 0 {
				ok = reader.Next()
				at = min(at+1, len(all))
			} else {
				doc := uint64(0)
				if at >= 0 && at < len(all) {
					doc = all[at].Doc
				}
				doc += uint64(r.IntN(1 << r.IntN(12)))
				ok = reader.Seek(doc)
				for at < 0 || at < len(all) && all[at].Doc < doc {
					at++
				}
			}
			if ok != (at < len(all)) {
				rt.Fatalf("moved: %v, at %d of %d", ok, at, len(all))
			}
			if !ok {
				return
			}
			if reader.Doc() != all[at].Doc {
				rt.Fatalf("document %d, want %d", reader.Doc(), all[at].Doc)
			}
			if r.IntN(2) == 0 {
				require.Equal(rt, all[at], present(reader))
			}
		}
	})
}

// Views keep their content while the list gains and loses entries, and the list has all live ones.
func TestViewsStayWhileTheListChanges(t *testing.T) {
	testseed.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 2))
		keep := keeps[r.IntN(len(keeps))]
		l := New(keep)
		type taken struct {
			v    View
			want []Entry // those alive at the view's instant
			live int
		}
		var views []taken
		living := map[uint64]Entry{}
		last := uint64(0)
		alive := func(doc uint64) bool { _, ok := living[doc]; return ok }
		var docs []uint64 // live ones
		remove := func(i int) {
			delete(living, docs[i])
			docs = slices.Delete(docs, i, i+1)
			l.Remove(alive)
		}
		livingIn := func(v View) (all []Entry) {
			for _, e := range read(v) {
				if alive(e.Doc) {
					all = append(all, e)
				}
			}
			return all
		}
		mostlyAdd := r.IntN(2) == 0
		for range r.IntN(3000) {
			switch {
			case r.IntN(200) == 0:
				views = append(views, taken{l.View(), read(l.View()), l.Len()})
			case len(docs) > 0 && (r.IntN(3) == 0 || !mostlyAdd && len(docs) > 400):
				remove(r.IntN(len(docs)))
			case r.IntN(2000) == 0:
				for len(docs) > 0 {
					remove(0)
				}
			default:
				e := randomEntry(r, last)
				last = e.Doc
				docs = append(docs, last)
				living[last] = kept(e, keep)
				l.Add(e)
			}
		}
		require.Equal(rt, len(living), l.Len())
		got := livingIn(l.View())
		require.Len(rt, got, len(living))
		for _, e := range got {
			require.Equal(rt, living[e.Doc], e)
		}
		for _, v := range views {
			require.Equal(rt, v.want, read(v.v))
			require.Equal(rt, v.live, v.v.Len())
		}
	})
}

func TestRemoveRewritesAListOfWhichAQuarterIsDead(t *testing.T) {
	l := New(Freqs | Masks | Offsets)
	dead := map[uint64]bool{}
	for doc := uint64(1); doc <= 10_000; doc++ {
		l.Add(Entry{Doc: doc, Freq: 1, Mask: Bit(0), Offsets: []uint32{3}})
	}
	before := l.Bytes()
	for doc := uint64(1); doc <= 10_000; doc++ {
		if doc%10 != 0 {
			dead[doc] = true
			l.Remove(func(doc uint64) bool { return !dead[doc] })
		}
	}
	require.Equal(t, 1000, l.Len())
	require.Less(t, l.Entries(), 1500)
	require.Less(t, l.Bytes(), before/4)
	for doc := uint64(10); doc <= 10_000; doc += 10 {
		dead[doc] = true
		l.Remove(func(doc uint64) bool { return !dead[doc] })
	}
	require.Equal(t, 0, l.Len())
	require.False(t, l.View().Reader().Next())
	require.LessOrEqual(t, l.Bytes(), 48)
}

func TestListOfOneDocumentIsSmall(t *testing.T) {
	l := New(Freqs | Masks | Offsets)
	l.Add(Entry{Doc: 1_000_000, Freq: 1, Mask: Bit(0), Offsets: []uint32{40}})
	require.LessOrEqual(t, l.Bytes(), 56)
	l.Add(Entry{Doc: 1_000_100, Freq: 2, Mask: Bit(0), Offsets: []uint32{40, 45}})
	require.LessOrEqual(t, l.Bytes(), 64)
}

// frequent returns a list like that of a frequent word: one document in twenty has it, mostly once, in one of two
// fields.
func frequent(n int) *List {
	r := rand.New(rand.NewPCG(1, 2))
	l := New(Freqs | Masks | Offsets)
	doc := uint64(0)
	for range n {
		doc += 1 + uint64(r.IntN(39))
		e := Entry{Doc: doc, Freq: 1, Mask: Bit(r.IntN(2)), Offsets: []uint32{uint32(r.IntN(50))}}
		if r.IntN(8) == 0 {
			e.Freq, e.Offsets = 2, append(e.Offsets, e.Offsets[0]+7)
		}
		l.Add(e)
	}
	return l
}

func TestPostingOfAFrequentWordTakesFourBytes(t *testing.T) {
	l := frequent(10_000)
	require.LessOrEqual(t, l.Bytes(), 4*10_000)
	short := frequent(100)
	require.LessOrEqual(t, short.Bytes(), 6*100)
}

// Readers of views need no lock; the race detector would report a missing one.
func TestViewsAreReadBesideChanges(t *testing.T) {
	r := testseed.Rand(t)
	l := New(Freqs | Masks | Offsets)
	dead := map[uint64]bool{}
	var docs []uint64
	views := make(chan View)
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for v := range views {
				n := 0
				for reader := v.Reader(); reader.Next(); n++ {
					reader.Offsets()
					reader.Mask()
				}
				if n < v.Len() {
					t.Errorf("%d entries, %d lived", n, v.Len())
				}
			}
		})
	}
	last := uint64(0)
	for i := range 20_000 {
		if i%3 == 2 {
			at := r.IntN(len(docs))
			dead[docs[at]] = true
			docs = slices.Delete(docs, at, at+1)
			l.Remove(func(doc uint64) bool { return !dead[doc] })
		} else {
			e := randomEntry(r, last)
			last = e.Doc
			docs = append(docs, last)
			l.Add(e)
		}
		if i%50 == 0 {
			views <- l.View()
		}
	}
	close(views)
	readers.Wait()
}

func BenchmarkAdd(b *testing.B) {
	l := New(Freqs | Masks | Offsets)
	offsets := []uint32{7}
	b.ReportAllocs()
	for i := range b.N {
		l.Add(Entry{Doc: uint64(i+1) * 20, Freq: 1, Mask: Bit(1), Offsets: offsets})
	}
	b.ReportMetric(float64(l.Bytes())/float64(b.N), "B/posting")
}

func BenchmarkNext(b *testing.B) {
	l := frequent(100_000)
	b.ReportMetric(float64(l.Bytes())/100_000, "B/posting")
	r := l.View().Reader()
	for b.Loop() {
		if !r.Next() {
			r.Reset(l.View())
		}
	}
}

func BenchmarkNextFreqMask(b *testing.B) {
	l := frequent(100_000)
	r := l.View().Reader()
	sum := uint64(0)
	for b.Loop() {
		if !r.Next() {
			r.Reset(l.View())
			r.Next()
		}
		sum += uint64(r.Freq()) + r.Mask().Lo
	}
	_ = sum
}

func BenchmarkNextOffsets(b *testing.B) {
	l := frequent(100_000)
	r := l.View().Reader()
	for b.Loop() {
		if !r.Next() {
			r.Reset(l.View())
			r.Next()
		}
		r.Offsets()
	}
}

func BenchmarkNextInTail(b *testing.B) {
	l := frequent(127)
	r := l.View().Reader()
	for b.Loop() {
		if !r.Next() {
			r.Reset(l.View())
		}
	}
}

func BenchmarkSeek(b *testing.B) {
	for _, far := range []struct {
		name string
		step uint64
	}{{"near", 60}, {"far", 20_000}} {
		b.Run(far.name, func(b *testing.B) {
			l := frequent(100_000)
			r := l.View().Reader()
			doc := uint64(0)
			for b.Loop() {
				doc += far.step
				if !r.Seek(doc) {
					doc = 0
					r.Reset(l.View())
				}
			}
		})
	}
}

func BenchmarkRemove(b *testing.B) {
	l := New(Freqs | Masks | Offsets)
	offsets := []uint32{7}
	first, last := uint64(1), uint64(0)
	alive := func(doc uint64) bool { return doc >= first }
	for range 100_000 {
		last++
		l.Add(Entry{Doc: last, Freq: 1, Mask: Bit(1), Offsets: offsets})
	}
	for b.Loop() {
		first++
		l.Remove(alive)
		last++
		l.Add(Entry{Doc: last, Freq: 1, Mask: Bit(1), Offsets: offsets})
	}
}

func TestListKnowsTheFieldsOfItsEntries(t *testing.T) {
	l := New(Freqs | Masks)
	require.False(t, l.MayMeet(All))
	l.Add(Entry{Doc: 1, Freq: 1, Mask: Bit(3)})
	for field := range 128 {
		require.Equal(t, field == 3, l.MayMeet(Bit(field)), field)
	}
	l.Add(Entry{Doc: 2, Freq: 1, Mask: Bit(100)}) // fields from 15 on share a bit
	for field := range 128 {
		require.Equal(t, field == 3 || field >= 15, l.MayMeet(Bit(field)), field)
	}
	require.True(t, l.MayMeet(Bit(5).Or(Bit(3))))
	for range 2 {
		l.Remove(func(uint64) bool { return true })
	}
	require.False(t, l.MayMeet(All))
}
