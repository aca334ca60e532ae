package sets

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine/deadlines"
	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// storage is what a store has of a value in parts.
type storage map[string]string

// write stores the changes up to the start of the checkpoint.
func (s storage) write(l *delta.Log, p delta.Parts) {
	if l == nil {
		return
	}
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
func (s storage) load(t require.TestingT, log *delta.Log, deadlines storage, deadlineLog *delta.Log) *Set {
	l := NewLoader()
	for _, name := range slices.Sorted(maps.Keys(s)) {
		require.NoError(t, l.Add([]byte(name), []byte(s[name])))
	}
	for _, name := range slices.Sorted(maps.Keys(deadlines)) {
		require.NoError(t, l.AddDeadline([]byte(name), []byte(deadlines[name])))
	}
	if deadlineLog == nil {
		set, err := l.Finish(log)
		require.NoError(t, err)
		return set
	}
	set, err := l.FinishDeadlines(log, deadlineLog)
	require.NoError(t, err)
	return set
}

// track does what the keyspace does after a set has changed.
func track(s *Set, epochs *delta.Epochs) {
	if d := s.DeadlineIndex(); d != nil && d.Log() == nil {
		d.Track(delta.NewLog(8, epochs))
	}
}

func TestCheckpointsStoreTheSetAsItWasWhenTheyBegan(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		epochs, stored, storedDeadlines := &delta.Epochs{Current: 1}, storage{}, storage{}
		log, lim := delta.NewLog(7, epochs), Limits{}
		member := rapid.Map(rapid.IntRange(0, 30), strconv.Itoa)
		s := setOf(lim, numbers(rapid.IntRange(1, 20).Draw(t, "members at first"))...)
		require.True(t, s.Large())
		s.Track(log)
		var frozen *Set            // the set at the start of the unfinished checkpoint
		var frozenIndex *delta.Log // and the log of its deadlines
		begin := func() {
			if frozen == nil {
				epochs.Current++
				frozen, frozenIndex = s.Clone(), s.DeadlineIndex().Log()
			}
		}
		end := func(t *rapid.T) {
			if frozen == nil {
				return
			}
			stored.write(log, s)
			storedDeadlines.write(frozenIndex, s.DeadlineIndex())
			loadedLog := delta.NewLog(7, epochs)
			var loadedIndex *delta.Log
			if frozenIndex != nil {
				loadedIndex = delta.NewLog(8, epochs)
			}
			loaded := stored.load(t, loadedLog, storedDeadlines, loadedIndex)
			require.Equal(t, members(t, frozen), members(t, loaded))
			require.Equal(t, deadlinesOf(frozen), deadlinesOf(loaded))
			require.Same(t, loadedIndex, loaded.DeadlineIndex().Log())
			require.Equal(t, "hashtable", loaded.Encoding())
			require.Same(t, loadedLog, loaded.Log())
			require.True(t, loadedLog.Clean())
			frozen = nil
			if l := s.DeadlineIndex().Log(); log.Clean() && (l == nil || l.Clean()) &&
				rapid.Bool().Draw(t, "go on with what was loaded") {
				s, log = loaded, loadedLog
			}
		}
		begin()
		end(t)
		t.Repeat(map[string]func(*rapid.T){
			"add":    func(t *rapid.T) { s.Add([]byte(member.Draw(t, "member")), lim) },
			"remove": func(t *rapid.T) { s.Remove([]byte(member.Draw(t, "member"))) },
			"pop":    func(*rapid.T) { s.Pop(nil) },
			"deadline": func(t *rapid.T) {
				at := rapid.Int64Range(0, 9).Draw(t, "at")
				s.SetDeadline([]byte(member.Draw(t, "member")), at, lim)
				track(s, epochs)
			},
			"expire": func(t *rapid.T) { s.Expire(rapid.Int64Range(0, 9).Draw(t, "now"), 5, func([]byte) {}) },
			"pop all": func(*rapid.T) {
				for s.Len() > 0 {
					s.Pop(nil)
				}
			},
			"change a clone": func(t *rapid.T) {
				c := s.Clone()
				require.Nil(t, c.Log())
				c.Add([]byte("only in the clone"), lim)
				c.Remove([]byte(member.Draw(t, "member")))
				c.Pop(nil)
			},
			"begin": func(*rapid.T) { begin() },
			"fail": func(*rapid.T) {
				if frozen != nil {
					log.Abort(log.Frozen())
					if frozenIndex != nil {
						frozenIndex.Abort(frozenIndex.Frozen())
					}
					frozen = nil
				}
			},
			"end": end,
			"checkpoint": func(t *rapid.T) {
				begin()
				end(t)
			},
		})
		end(t)
		begin()
		end(t)
		require.True(t, log.Clean())
	})
}

func TestTrackingDoesNotNoteWhatChangesNothing(t *testing.T) {
	s := setOf(Limits{}, "a", "b")
	epochs := &delta.Epochs{Current: 1}
	s.Track(delta.NewLog(1, epochs))
	epochs.Current++
	storage{}.write(s.Log(), s)
	there, miss := []byte("a"), []byte("c")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		s.Add(there, Limits{})
		s.Remove(miss)
	}))
	require.True(t, s.Log().Clean())
}

func TestCompactSetKeepsItsFormWhenStored(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		member := rapid.Map(rapid.OneOf(rapid.Int64Range(-9, 9), rapid.Int64()), func(v int64) string {
			return strconv.FormatInt(v, 10)
		})
		if rapid.Bool().Draw(t, "words too") {
			member = rapid.OneOf(member, rapid.StringN(-1, 3, -1), rapid.StringN(100, 200, -1))
		}
		s := new(Set)
		for range rapid.IntRange(0, 50).Draw(t, "members") {
			s.Add([]byte(member.Draw(t, "member")), Limits{100, 100, 1000})
		}
		for range rapid.IntRange(0, 3).Draw(t, "deadlines") {
			s.SetDeadline([]byte(member.Draw(t, "member")), rapid.Int64Range(0, 1<<50).Draw(t, "at"), Limits{100, 100, 1000})
		}
		for range rapid.IntRange(0, 5).Draw(t, "pops") {
			s.Pop(nil)
		}
		require.False(t, s.Large())
		got, err := DecodeBlob(s.AppendBlob(nil))
		require.NoError(t, err)
		require.Equal(t, inOrder(s), inOrder(got))
		require.Equal(t, s.Encoding(), got.Encoding())
		require.Equal(t, deadlinesOf(s), deadlinesOf(got))
	})
}

// inOrder returns the members in the order of All.
func inOrder(s *Set) []string {
	var out []string
	for m := range s.All() {
		out = append(out, string(m))
	}
	return out
}

func TestDecodeBlobRefusesWhatIsNoSet(t *testing.T) {
	tests := []struct {
		name, blob string
		want       error
	}{
		{"nothing", "", errFormat},
		{"unknown format", "\x04", errFormat},
		{"no width", "\x01", errIntset},
		{"integers without width", "\x01\x00a", errIntset},
		{"unknown width", "\x01\x03abc", errIntset},
		{"half an integer", "\x01\x04abcdef", errIntset},
		{"integers descending", "\x01\x02\x02\x00\x01\x00", errIntset},
		{"integer twice", "\x01\x02\x01\x00\x01\x00", errIntset},
		{"member cut short", "\x02\x02b", errCut},
		{"enormous length", "\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", errCut},
		{"length of too many bytes", "\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", errCut},
		{"member twice", "\x02\x01a\x01b\x01a", errTwice},
		{"no deadline", "\x03\x01a", deadlines.ErrDamaged},
		{"deadline out of range", "\x03\x01a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", deadlines.ErrDamaged},
		{"member with deadline twice", "\x03\x01a\x00\x01a\x05", errTwice},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := DecodeBlob([]byte(tt.blob))
			require.ErrorIs(t, err, tt.want)
		})
	}
}

func TestLoaderRefusesPartsThatAreNoSet(t *testing.T) {
	for _, second := range []string{"b", "a", ""} {
		l := NewLoader()
		require.NoError(t, l.Add([]byte("b"), nil))
		require.ErrorIs(t, l.Add([]byte(second), nil), errPartsOrder)
	}
	require.ErrorIs(t, NewLoader().Add([]byte("a"), []byte("1")), errPartData)
	l := NewLoader()
	require.NoError(t, l.Add([]byte("a"), nil))
	require.ErrorIs(t, l.AddDeadline([]byte("b"), []byte("\x05")), deadlines.ErrNoElement)
	require.ErrorIs(t, l.AddDeadline([]byte("a"), []byte("\x05\x05")), deadlines.ErrDamaged)
}

// requireSound checks that a decoded set has every member once and finds it.
func requireSound(t *testing.T, s *Set) {
	list := inOrder(s)
	require.Len(t, list, s.Len())
	require.Len(t, members(t, s), s.Len())
	if ints := s.ints(); ints != nil {
		for i := 1; i < ints.len(); i++ {
			require.Less(t, ints.at(i-1), ints.at(i))
		}
	}
	for _, m := range list {
		require.True(t, s.Contains([]byte(m)))
	}
}

func FuzzDecodeBlob(f *testing.F) {
	for _, s := range []*Set{
		setOf(usual), setOf(usual, "1", "-2"), setOf(usual, "1", "70000"), setOf(usual, "1", "5000000000"),
		setOf(usual, "a", ""),
	} {
		f.Add(s.AppendBlob(nil))
		s.SetDeadline([]byte("1"), 1e12, usual)
		f.Add(s.AppendBlob(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeBlob(b)
		if err != nil {
			return
		}
		requireSound(t, s)
		again, err := DecodeBlob(s.AppendBlob(nil))
		require.NoError(t, err)
		require.Equal(t, inOrder(s), inOrder(again))
		require.Equal(t, s.Encoding(), again.Encoding())
		require.Equal(t, deadlinesOf(s), deadlinesOf(again))
	})
}

func FuzzLoader(f *testing.F) {
	f.Add([]byte("\x00\x01a\x02bc"))
	f.Add([]byte("\x01b\x01a"))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, want := NewLoader(), map[string]bool{}
		for len(b) > 0 {
			n := 1 + min(int(b[0]), len(b)-1)
			name := b[1:n]
			b = b[n:]
			if l.Add(name, nil) != nil {
				return
			}
			want[string(name)] = true
		}
		s, err := l.Finish(nil)
		require.NoError(t, err)
		requireSound(t, s)
		require.Equal(t, want, members(t, s))
	})
}
