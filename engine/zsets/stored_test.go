package zsets

import (
	"maps"
	"math"
	"slices"
	"strconv"
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

// load builds the set from its parts.
func (s storage) load(t require.TestingT, log *delta.Log) *ZSet {
	l := NewLoader()
	for _, name := range slices.Sorted(maps.Keys(s)) {
		require.NoError(t, l.Add([]byte(name), []byte(s[name])))
	}
	z, err := l.Finish(log)
	require.NoError(t, err)
	return z
}

// bitsOf is ascending with the bits of every score, which distinguish -0 from 0.
func bitsOf(z *ZSet) (members []string, scores []uint64) {
	for _, e := range ascending(z) {
		members, scores = append(members, e.member), append(scores, math.Float64bits(e.score))
	}
	return members, scores
}

func requireSame(t require.TestingT, want, got *ZSet) {
	check(t, got)
	wantMembers, wantScores := bitsOf(want)
	members, scores := bitsOf(got)
	require.Equal(t, wantMembers, members)
	require.Equal(t, wantScores, scores)
	require.Equal(t, want.Encoding(), got.Encoding())
}

var anyScore = rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, -1, 0.1, 5, math.Inf(1), math.Inf(-1)})

func TestCheckpointsStoreTheSortedSetAsItWasWhenTheyBegan(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		epochs, stored := &delta.Epochs{Current: 1}, storage{}
		log, lim := delta.NewLog(7, epochs), Limits{}
		member := rapid.Map(rapid.IntRange(0, 30), strconv.Itoa)
		z := New()
		for i := range rapid.IntRange(1, 200).Draw(t, "members at first") {
			z.Set(strconv.AppendInt(nil, int64(i), 10), float64(i/2), lim)
		}
		require.True(t, z.Large())
		z.Track(log)
		var frozen *ZSet // the set at the start of the unfinished checkpoint
		few := func(t *rapid.T) int { return rapid.IntRange(0, 5).Draw(t, "count") }
		never := func([]byte, float64) {}
		begin := func() {
			if frozen == nil {
				epochs.Current++
				frozen = z.Clone()
			}
		}
		end := func(t *rapid.T) {
			if frozen == nil {
				return
			}
			stored.write(log, z)
			loadedLog := delta.NewLog(7, epochs)
			loaded := stored.load(t, loadedLog)
			requireSame(t, frozen, loaded)
			require.Same(t, loadedLog, loaded.Log())
			require.True(t, loadedLog.Clean())
			frozen = nil
			if log.Clean() && rapid.Bool().Draw(t, "go on with what was loaded") {
				z, log = loaded, loadedLog
			}
		}
		begin()
		end(t)
		t.Repeat(map[string]func(*rapid.T){
			"Set":    func(t *rapid.T) { z.Set([]byte(member.Draw(t, "member")), anyScore.Draw(t, "score"), lim) },
			"Incr":   func(t *rapid.T) { z.Incr([]byte(member.Draw(t, "member")), anyScore.Draw(t, "delta"), lim) },
			"Remove": func(t *rapid.T) { z.Remove([]byte(member.Draw(t, "member"))) },
			"PopMin": func(t *rapid.T) { z.PopMin(few(t), never) },
			"PopMax": func(t *rapid.T) { z.PopMax(few(t), never) },
			"RemoveRangeByRank": func(t *rapid.T) {
				start := rapid.IntRange(0, 200).Draw(t, "start")
				z.RemoveRangeByRank(start, start+rapid.IntRange(0, 100).Draw(t, "length"), nil)
			},
			"RemoveRangeByScore": func(t *rapid.T) {
				z.RemoveRangeByScore(ScoreRange{Min: anyScore.Draw(t, "min"), Max: anyScore.Draw(t, "max")}, never)
			},
			"RemoveRangeByLex": func(t *rapid.T) {
				z.RemoveRangeByLex(LexRange{LexBound{Inclusive, []byte(member.Draw(t, "min"))}, LexBound{Kind: LexMax}}, nil)
			},
			"change a clone": func(t *rapid.T) {
				c := z.Clone()
				require.Nil(t, c.Log())
				c.Set([]byte("only in the clone"), 1, lim)
				c.Remove([]byte(member.Draw(t, "member")))
				c.PopMin(3, never)
			},
			"begin": func(*rapid.T) { begin() },
			"fail": func(*rapid.T) {
				if frozen != nil {
					log.Abort(log.Frozen())
					frozen = nil
				}
			},
			"end": end,
			"checkpoint": func(t *rapid.T) {
				begin()
				end(t)
			},
			"": func(t *rapid.T) { check(t, z) },
		})
		end(t)
		begin()
		end(t)
		require.True(t, log.Clean())
	})
}

func TestTrackingDoesNotAllocateForMembersThatAreThere(t *testing.T) {
	z := New()
	for i, m := range members(1000) {
		z.Set(m, float64(i), DefaultLimits)
	}
	epochs := &delta.Epochs{Current: 1}
	z.Track(delta.NewLog(1, epochs))
	epochs.Current++
	storage{}.write(z.Log(), z)
	member, miss := members(1)[0], []byte("miss")
	z.Set(member, 5, DefaultLimits)
	epochs.Current++
	storage{}.write(z.Log(), z)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		z.Set(member, 5, DefaultLimits)
		z.Remove(miss)
	}))
	require.True(t, z.Log().Clean(), "nothing has changed")
}

func TestSmallSortedSetIsStoredInItsOrder(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		z := New()
		name := rapid.OneOf(rapid.StringN(-1, 3, -1), rapid.StringN(100, 200, -1))
		for range rapid.IntRange(0, 50).Draw(t, "members") {
			z.Set([]byte(name.Draw(t, "member")), anyScore.Draw(t, "score"), Limits{100, 1000})
		}
		require.False(t, z.Large())
		got, err := DecodeBlob(z.AppendBlob(nil))
		require.NoError(t, err)
		requireSame(t, z, got)
	})
}

const (
	zero   = "\x00\x00\x00\x00\x00\x00\x00\x00"
	one    = "\x00\x00\x00\x00\x00\x00\xf0\x3f"
	noNumb = "\x00\x00\x00\x00\x00\x00\xf8\x7f"
)

func TestDecodeBlobRefusesWhatIsNoSortedSet(t *testing.T) {
	tests := []struct {
		name, blob string
		want       error
	}{
		{"nothing", "", errFormat},
		{"unknown format", "\x02", errFormat},
		{"score cut short", "\x01" + zero[:7], errCut},
		{"score alone", "\x01" + zero, errCut},
		{"member cut short", "\x01" + zero + "\x02a", errCut},
		{"enormous length", "\x01" + zero + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", errCut},
		{"not a number", "\x01" + noNumb + "\x01a", errScore},
		{"scores descending", "\x01" + one + "\x01a" + zero + "\x01b", errOrder},
		{"members descending", "\x01" + one + "\x01b" + one + "\x01a", errOrder},
		{"member twice", "\x01" + zero + "\x01a" + one + "\x01a", errTwice},
		{"member and score twice", "\x01" + zero + "\x01a" + zero + "\x01a", errOrder},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := DecodeBlob([]byte(tt.blob))
			require.ErrorIs(t, err, tt.want)
		})
	}
}

func TestLoaderRefusesPartsThatAreNoSortedSet(t *testing.T) {
	for _, second := range []string{"b", "a", ""} {
		l := NewLoader()
		require.NoError(t, l.Add([]byte("b"), []byte(zero)))
		require.ErrorIs(t, l.Add([]byte(second), []byte(zero)), errPartsOrder)
	}
	for _, score := range []string{"", zero[:7], zero + "x", noNumb} {
		require.ErrorIs(t, NewLoader().Add([]byte("a"), []byte(score)), errScore)
	}
}

// requireSound checks that a decoded set is sorted and has every member once.
func requireSound(t *testing.T, z *ZSet) {
	check(t, z)
	list := ascending(z)
	require.Len(t, list, z.Len())
	seen := map[string]bool{}
	for i, e := range list {
		require.False(t, math.IsNaN(e.score))
		require.False(t, seen[e.member])
		seen[e.member] = true
		require.True(t, i == 0 || compare(list[i-1], e) < 0)
	}
}

func FuzzDecodeBlob(f *testing.F) {
	f.Add([]byte("\x01" + zero + "\x01a" + one + "\x01b"))
	f.Add([]byte("\x01" + one + "\x01a" + zero + "\x01b"))
	f.Fuzz(func(t *testing.T, b []byte) {
		z, err := DecodeBlob(b)
		if err != nil {
			return
		}
		requireSound(t, z)
		again, err := DecodeBlob(z.AppendBlob(nil))
		require.NoError(t, err)
		requireSame(t, z, again)
	})
}

func FuzzLoader(f *testing.F) {
	f.Add([]byte(one + "\x01a" + zero + "\x01b"))
	f.Add([]byte(one + "\x01b" + zero + "\x01a"))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, n := NewLoader(), 0
		for len(b) > 0 {
			score := b[:min(scoreLen, len(b))]
			b = b[len(score):]
			var name []byte
			if len(b) > 0 {
				end := 1 + min(int(b[0]), len(b)-1)
				name, b = b[1:end], b[end:]
			}
			if l.Add(name, score) != nil {
				return
			}
			n++
		}
		z, err := l.Finish(nil)
		require.NoError(t, err)
		require.Equal(t, n, z.Len())
		requireSound(t, z)
	})
}

func BenchmarkLoader(b *testing.B) {
	names := members(100_000)
	var data []byte
	for b.Loop() {
		l := NewLoader()
		for i, name := range names {
			data = appendScore(data[:0], float64(uint32(i)*2654435761))
			if err := l.Add(name, data); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := l.Finish(nil); err != nil {
			b.Fatal(err)
		}
	}
}
