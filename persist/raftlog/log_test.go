package raftlog

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/persist/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const dir = "raft/log"

// newFS returns a file system with a directory for a log.
func newFS(t require.TestingT) *crashfs.FS {
	fs := crashfs.New()
	require.NoError(t, fs.MkdirAll(dir, 0o700))
	for _, name := range []string{"/", "raft"} {
		d, err := fs.OpenDir(name)
		require.NoError(t, err)
		require.NoError(t, d.Sync())
		require.NoError(t, d.Close())
	}
	return fs
}

func open(t require.TestingT, o Options) *Log {
	o.Dir = dir
	l, err := Open(o)
	require.NoError(t, err)
	return l
}

// openNew opens a log in a file system of its own, for the duration of a test.
func openNew(t testing.TB, o Options) *Log {
	o.FS = newFS(t)
	l := open(t, o)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

var appendedAt = time.Date(2026, 11, 27, 1, 2, 3, 4, time.UTC)

// entries returns entries from one index to another, in a term.
func entries(from, to, term uint64) []*raft.Log {
	var logs []*raft.Log
	for i := from; i <= to; i++ {
		logs = append(logs, &raft.Log{
			Index: i, Term: term, Data: fmt.Appendf(nil, "data %d of %d", i, term), AppendedAt: appendedAt,
		})
	}
	return logs
}

// contents describes the content of a log.
func contents(t require.TestingT, l *Log) string {
	first, err := l.FirstIndex()
	require.NoError(t, err)
	last, err := l.LastIndex()
	require.NoError(t, err)
	var b strings.Builder
	for i := first; i <= last && i > 0; i++ {
		var e raft.Log
		require.NoError(t, l.GetLog(i, &e))
		require.Equal(t, entries(i, i, e.Term)[0], &e)
		fmt.Fprintf(&b, "%d:%d ", e.Index, e.Term)
	}
	var e raft.Log
	require.ErrorIs(t, l.GetLog(last+1, &e), raft.ErrLogNotFound)
	if first > 0 {
		require.ErrorIs(t, l.GetLog(first-1, &e), raft.ErrLogNotFound)
	}
	return strings.TrimSpace(b.String())
}

// The calls that raft makes to a log, and the content afterwards, before and after the log is reopened.
func TestEntriesAsRaftUsesThem(t *testing.T) {
	store := func(from, to, term uint64) func(*Log) error {
		return func(l *Log) error { return l.StoreLogs(entries(from, to, term)) }
	}
	remove := func(from, to uint64) func(*Log) error {
		return func(l *Log) error { return l.DeleteRange(from, to) }
	}
	for _, c := range []struct {
		name string
		do   []func(*Log) error
		err  string // of the last call
		want string
	}{
		{"nothing", nil, "", ""},
		{"no entries", []func(*Log) error{store(2, 1, 1)}, "", ""},
		{"entries", []func(*Log) error{store(1, 2, 1), store(3, 3, 2)}, "", "1:1 2:1 3:2"},
		{"first entry at any index", []func(*Log) error{store(7, 8, 3)}, "", "7:3 8:3"},
		{"gap", []func(*Log) error{store(1, 2, 1), store(4, 4, 1)}, "entry 4 cannot be stored behind entry 2", "1:1 2:1"},
		{"overwriting", []func(*Log) error{store(1, 2, 1), store(2, 3, 2)}, "entry 2 cannot be stored behind entry 2", "1:1 2:1"},
		{"index 0", []func(*Log) error{store(0, 0, 1)}, "entry 0 cannot be stored behind entry 0", ""},
		{"suffix", []func(*Log) error{store(1, 4, 1), remove(3, 4), store(3, 5, 2)}, "", "1:1 2:1 3:2 4:2 5:2"},
		{"suffix beyond the end", []func(*Log) error{store(1, 4, 1), remove(3, 9)}, "", "1:1 2:1"},
		{"everything", []func(*Log) error{store(1, 4, 1), remove(1, 4)}, "", ""},
		{"everything, a snapshot", []func(*Log) error{store(1, 4, 1), remove(1, 4), store(50, 51, 2)}, "", "50:2 51:2"},
		{"everything, from the first on", []func(*Log) error{store(3, 4, 1), remove(3, 4), store(3, 3, 2)}, "", "3:2"},
		{"prefix", []func(*Log) error{store(1, 4, 1), remove(1, 2)}, "", "1:1 2:1 3:1 4:1"},
		{"middle", []func(*Log) error{store(1, 4, 1), remove(2, 3)}, "delete entries 2 to 3: there are entries 1 to 4",
			"1:1 2:1 3:1 4:1"},
		{"nothing of an empty log", []func(*Log) error{remove(1, 4)}, "", ""},
		{"what is not there", []func(*Log) error{store(3, 4, 1), remove(1, 2), remove(5, 6), remove(4, 3)}, "", "3:1 4:1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := newFS(t)
			l := open(t, Options{FS: fs})
			for i, do := range c.do {
				if err := do(l); i == len(c.do)-1 && c.err != "" {
					require.EqualError(t, err, c.err)
				} else {
					require.NoError(t, err)
				}
			}
			require.Equal(t, c.want, contents(t, l))
			require.NoError(t, l.Err())
			require.NoError(t, l.Close())
			for range 2 {
				l = open(t, Options{FS: fs})
				require.Equal(t, c.want, contents(t, l))
				require.NoError(t, l.Close())
			}
		})
	}
}

func TestStableValues(t *testing.T) {
	fs := newFS(t)
	l := open(t, Options{FS: fs})
	require.True(t, l.Empty())
	n, err := l.GetUint64([]byte("term"))
	require.NoError(t, err)
	require.Zero(t, n)
	require.NoError(t, l.SetUint64([]byte("term"), 1<<40))
	require.False(t, l.Empty())
	require.NoError(t, l.Set([]byte("candidate"), []byte("a")))
	require.NoError(t, l.Set([]byte("candidate"), []byte("b")))
	require.NoError(t, l.Set([]byte("none"), nil))
	before := l.Size()
	require.NoError(t, l.Set([]byte("candidate"), []byte("b")))
	require.Equal(t, before, l.Size(), "nothing has changed")
	require.ErrorContains(t, l.Set([]byte("long"), make([]byte, maxState)), "no room")
	for range 3 {
		n, err = l.GetUint64([]byte("term"))
		require.NoError(t, err)
		require.Equal(t, uint64(1<<40), n)
		value, err := l.Get([]byte("candidate"))
		require.NoError(t, err)
		require.Equal(t, "b", string(value))
		value, err = l.Get([]byte("none"))
		require.NoError(t, err)
		require.Empty(t, value)
		_, err = l.GetUint64([]byte("candidate"))
		require.ErrorContains(t, err, "no number")
		require.NoError(t, l.Close())
		l = open(t, Options{FS: fs})
		require.False(t, l.Empty())
	}
	require.NoError(t, l.Close())
	require.ErrorIs(t, l.Set([]byte("candidate"), []byte("b")), journal.ErrClosed)
	require.ErrorIs(t, l.StoreLogs(entries(1, 1, 1)), journal.ErrClosed)
	_, err = l.Anchor(1)
	require.ErrorIs(t, err, journal.ErrClosed)
}

func TestCommitIndexIsStoredWithEntries(t *testing.T) {
	fs := newFS(t)
	l := open(t, Options{FS: fs})
	commit := func(want uint64) {
		t.Helper()
		for range 2 {
			got, err := l.GetCommitIndex()
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.NoError(t, l.Close())
			l = open(t, Options{FS: fs})
		}
	}
	commit(0)
	require.NoError(t, l.StageCommitIndex(2))
	commit(0)
	require.NoError(t, l.StageCommitIndex(2))
	require.NoError(t, l.StoreLogs(entries(1, 3, 1)))
	commit(2)
	require.NoError(t, l.StoreLogs(entries(4, 4, 1)))
	commit(2)
	require.NoError(t, l.StageCommitIndex(9))
	require.NoError(t, l.StoreLogs(entries(5, 5, 1)))
	commit(5)
	require.NoError(t, l.DeleteRange(5, 5))
	commit(4)
	require.NoError(t, l.StoreLogs(entries(5, 7, 2)))
	commit(4)
	require.NoError(t, l.DeleteRange(1, 7))
	commit(0)
	require.NoError(t, l.Close())
}

// Entries that do not fit in memory come from the file.
func TestLongEntries(t *testing.T) {
	l := openNew(t, Options{SegmentSize: 4 << 20})
	var logs []*raft.Log
	for i, size := range []int{0, 10, journal.LongRecord, 5 << 20, journal.LongRecord - 1, 20 << 20, 100} {
		logs = append(logs, &raft.Log{
			Index: uint64(i + 1), Data: bytes.Repeat([]byte{byte(i)}, size), Extensions: []byte{byte(i)},
		})
	}
	logs[0].Data = nil
	require.NoError(t, l.StoreLogs(logs))
	check := func() {
		t.Helper()
		for _, want := range logs {
			var got raft.Log
			require.NoError(t, l.GetLog(want.Index, &got))
			require.Equal(t, want.Index, got.Index)
			require.Equal(t, want.Extensions, got.Extensions)
			require.True(t, bytes.Equal(want.Data, got.Data))
		}
	}
	check()
	l.recent, l.ahead = recent{}, ahead{}
	check()
	check()
	n := 0
	require.NoError(t, l.Each(1, 7, func(e *raft.Log) error {
		require.True(t, bytes.Equal(logs[n].Data, e.Data))
		n++
		return nil
	}))
	require.Equal(t, 7, n)
	require.ErrorContains(t, l.StoreLogs([]*raft.Log{{Index: 8, Data: make([]byte, maxEntry+1)}}), "too long")
	require.NoError(t, l.Err())
}

func TestRecentEntriesAreBounded(t *testing.T) {
	var r recent
	const last = 3 * recentEntries
	for _, e := range entries(1, last, 1) {
		r.add(e)
	}
	_, ok := r.get(last - recentEntries)
	require.False(t, ok)
	_, ok = r.get(last - recentEntries + 1)
	require.True(t, ok)
	data := make([]byte, recentSize/8)
	for i := range uint64(20) {
		r.add(&raft.Log{Index: last + 1 + i, Data: data})
	}
	require.Equal(t, uint64(8), r.next-r.first)
	require.Equal(t, recentSize, r.size)
	r.add(&raft.Log{Index: last + 21, Data: make([]byte, recentSize+1)})
	_, ok = r.get(last + 21)
	require.True(t, ok, "the last one is kept in any case")
	r.cut(last + 21)
	require.Zero(t, r.size)
	r.add(&raft.Log{Index: 2 * last, Data: data})
	_, ok = r.get(2*last - 1)
	require.False(t, ok)
	_, ok = r.get(2 * last)
	require.True(t, ok)
}

// A follower that lags reads some hundred entries at once.
func TestEntriesAreReadAhead(t *testing.T) {
	l := openNew(t, Options{SegmentSize: 10_000})
	require.NoError(t, l.StoreLogs(entries(1, 1000, 1)))
	require.NoError(t, l.DeleteRange(900, 1000))
	require.NoError(t, l.StoreLogs(entries(900, 1500, 2)))
	l.recent = recent{}
	var e raft.Log
	require.NoError(t, l.GetLog(5, &e))
	_, ok := l.ahead.get(5 + aheadEntries)
	require.False(t, ok)
	ahead, ok := l.ahead.get(4 + aheadEntries)
	require.True(t, ok)
	require.Equal(t, entries(ahead.Index, ahead.Index, 1)[0], &ahead)
	require.NoError(t, l.GetLog(880, &e))
	ahead, ok = l.ahead.get(901)
	require.True(t, ok)
	require.Equal(t, entries(901, 901, 2)[0], &ahead)
	require.NoError(t, l.DeleteRange(901, 1500))
	_, ok = l.ahead.get(901)
	require.False(t, ok, "it is gone")
}

func TestEach(t *testing.T) {
	l := openNew(t, Options{SegmentSize: 500})
	require.NoError(t, l.StoreLogs(entries(5, 20, 1)))
	require.NoError(t, l.DeleteRange(10, 20))
	require.NoError(t, l.StoreLogs(entries(10, 30, 2)))
	var got []uint64
	collect := func(e *raft.Log) error {
		term := uint64(1)
		if e.Index >= 10 {
			term = 2
		}
		require.Equal(t, entries(e.Index, e.Index, term)[0], e)
		got = append(got, e.Index)
		return nil
	}
	require.NoError(t, l.Each(8, 13, collect))
	require.Equal(t, []uint64{8, 9, 10, 11, 12, 13}, got)
	require.NoError(t, l.Each(3, 2, collect))
	require.ErrorIs(t, l.Each(4, 10, collect), raft.ErrLogNotFound)
	require.ErrorIs(t, l.Each(30, 31, collect), raft.ErrLogNotFound)
	stop := fmt.Errorf("stop")
	require.Equal(t, stop, l.Each(5, 30, func(*raft.Log) error { return stop }))
	// No lock is held while fn runs, and entries cut meanwhile are missing.
	n := 0
	require.ErrorIs(t, l.Each(5, 30, func(e *raft.Log) error {
		if n++; n == 1 {
			require.NoError(t, l.DeleteRange(8, 30))
			require.NoError(t, l.StoreLogs(entries(8, 40, 3)))
		}
		require.Less(t, e.Index, uint64(8))
		return nil
	}), raft.ErrLogNotFound)
	require.Equal(t, 3, n)
}

func TestReleaseWhatACheckpointHas(t *testing.T) {
	fs := newFS(t)
	l := open(t, Options{FS: fs, SegmentSize: 1000})
	require.NoError(t, l.SetUint64([]byte("term"), 7))
	for i := uint64(1); i <= 100; i++ {
		require.NoError(t, l.StageCommitIndex(i-1))
		require.NoError(t, l.StoreLogs(entries(i, i, 1)))
	}
	size := l.Size()
	require.ErrorIs(t, l.Release(journal.Start{LSN: 1, Seed: 1}), errNoSegment)
	start, err := l.Anchor(60)
	require.NoError(t, err)
	require.NoError(t, l.Release(start))
	require.Less(t, l.Size(), size/2)
	first, err := l.FirstIndex()
	require.NoError(t, err)
	require.LessOrEqual(t, first, uint64(60))
	require.Greater(t, first, uint64(40))
	old, err := l.Anchor(1)
	require.NoError(t, err)
	require.Equal(t, start, old, "there is nothing before it")
	check := func() {
		t.Helper()
		for i := first; i <= 100; i++ {
			var e raft.Log
			require.NoError(t, l.GetLog(i, &e))
			require.Equal(t, entries(i, i, 1)[0], &e)
		}
		require.ErrorIs(t, l.GetLog(first-1, new(raft.Log)), raft.ErrLogNotFound)
		n, err := l.GetUint64([]byte("term"))
		require.NoError(t, err)
		require.Equal(t, uint64(7), n)
		n, err = l.GetCommitIndex()
		require.NoError(t, err)
		require.Equal(t, uint64(99), n)
	}
	check()
	require.NoError(t, l.Close())
	l = open(t, Options{FS: fs, Start: start})
	check()

	start, err = l.Anchor(101)
	require.NoError(t, err)
	require.NoError(t, l.Release(start))
	require.Empty(t, contents(t, l))
	require.NoError(t, l.Close())
	l = open(t, Options{FS: fs, Start: start})
	require.False(t, l.Empty())
	require.Empty(t, contents(t, l))
	require.NoError(t, l.StoreLogs(entries(101, 102, 2)))
	require.Equal(t, "101:2 102:2", contents(t, l))
	require.NoError(t, l.Close())
}

// What is kept before an entry is limited in number and in bytes.
func TestEntriesBeforeAnother(t *testing.T) {
	l := open(t, Options{FS: newFS(t)})
	require.EqualValues(t, 90, l.Before(100, 10, 1), "an empty log")
	require.EqualValues(t, 1, l.Before(5, 10, 1))
	for i := uint64(10); i <= 100; i++ {
		require.NoError(t, l.StoreLogs(entries(i, i, 1)))
	}
	bytes := func(from, to uint64) int64 { return int64(l.lsns[to-l.first] - l.lsns[from-l.first]) }
	require.EqualValues(t, 90, l.Before(100, 10, 1<<40))
	require.EqualValues(t, 95, l.Before(100, 10, bytes(95, 100)))
	require.EqualValues(t, 96, l.Before(100, 10, bytes(95, 100)-1))
	require.EqualValues(t, 100, l.Before(100, 10, 0))
	require.EqualValues(t, 101, l.Before(101, 10, 0), "after the last entry")
	require.EqualValues(t, 91, l.Before(101, 10, 1<<40))
	require.EqualValues(t, 10, l.Before(101, 1000, 1<<40), "all of them")
	require.EqualValues(t, 5, l.Before(10, 5, 0), "before the first entry")
	require.NoError(t, l.Close())
}

// Deleting released entries changes nothing: they are committed, so the commit index stays, even where entries follow
// that are deleted later.
func TestDeletingReleasedEntriesKeepsTheCommitIndex(t *testing.T) {
	fs := newFS(t)
	l := open(t, Options{FS: fs, SegmentSize: 1})
	require.NoError(t, l.StageCommitIndex(1))
	require.NoError(t, l.StoreLogs(entries(1, 2, 1)))
	require.NoError(t, l.DeleteRange(2, 2))
	require.NoError(t, l.Set([]byte("a"), []byte("x")))
	start, err := l.Anchor(2)
	require.NoError(t, err)
	require.NoError(t, l.Release(start))
	require.Empty(t, contents(t, l))
	commit, err := l.GetCommitIndex()
	require.NoError(t, err)
	require.Zero(t, commit, "it is never beyond the last entry")
	require.NoError(t, l.DeleteRange(1, 1))
	require.NoError(t, l.StoreLogs(entries(2, 3, 2)))
	start, err = l.Anchor(2)
	require.NoError(t, err)
	require.NoError(t, l.DeleteRange(2, 2))
	require.NoError(t, l.DeleteRange(3, 3))
	for range 2 {
		require.Equal(t, "2:2", contents(t, l))
		commit, err = l.GetCommitIndex()
		require.NoError(t, err)
		require.Equal(t, uint64(1), commit)
		require.NoError(t, l.Close())
		l = open(t, Options{FS: fs, SegmentSize: 1, Start: start})
	}
	require.NoError(t, l.Close())
}

// model is the expected content of a log: raft's own store, and the additions to it.
type model struct {
	*raft.InmemStore
	values map[string]string
	commit uint64
	keep   uint64 // earlier entries may be gone
}

func (m *model) last() uint64 {
	last, _ := m.LastIndex()
	return last
}

// forget drops the entries that the log has released, and returns the index of its first entry, 0 if there is none.
func (m *model) forget(t require.TestingT, l *Log) (first uint64) {
	first, err := l.FirstIndex()
	require.NoError(t, err)
	was, _ := m.FirstIndex()
	if first == was {
		return first
	}
	require.True(t, first > was || first == 0)
	next := first
	if first == 0 {
		next = m.last() + 1
	}
	require.LessOrEqual(t, next, m.keep)
	require.NoError(t, m.DeleteRange(was, next-1))
	return first
}

// cut deletes the entries from an index on, in the log too. If the log has released all of them, nothing is left to
// delete, and the commit index stays: a checkpoint has the effects of released entries, so they were committed.
func (m *model) cut(t require.TestingT, l *Log, from uint64) {
	last := m.last()
	m.forget(t, l)
	require.NoError(t, l.DeleteRange(from, last))
	if m.last() > 0 {
		require.NoError(t, m.DeleteRange(from, last))
		m.commit = min(m.commit, from-1)
	}
}

// compare compares a log with the model, which first drops released entries.
func (m *model) compare(t require.TestingT, l *Log) {
	first := m.forget(t, l)
	last, err := l.LastIndex()
	require.NoError(t, err)
	require.Equal(t, m.last(), last)
	var got, want raft.Log
	var each []*raft.Log
	if last > 0 {
		require.NoError(t, l.Each(first, last, func(e *raft.Log) error {
			clone := *e
			clone.Data = slices.Clone(e.Data)
			each = append(each, &clone)
			return nil
		}))
	}
	for i := first; i <= last && i > 0; i++ {
		require.NoError(t, m.GetLog(i, &want))
		require.NoError(t, l.GetLog(i, &got))
		require.Equal(t, want, got)
		require.Equal(t, &want, each[i-first])
	}
	require.ErrorIs(t, l.GetLog(last+1, &got), raft.ErrLogNotFound)
	commit, err := l.GetCommitIndex()
	require.NoError(t, err)
	require.Equal(t, min(m.commit, last), commit)
	for key, want := range m.values {
		value, err := l.Get([]byte(key))
		require.NoError(t, err)
		require.Equal(t, want, string(value))
	}
	require.Equal(t, m.values, values(l))
}

func values(l *Log) map[string]string {
	all := map[string]string{}
	for key, value := range maps.All(l.state.values) {
		all[key] = string(value)
	}
	return all
}

func TestLogIsTheModel(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		fs := newFS(t)
		o := Options{FS: fs, SegmentSize: rapid.SampledFrom([]int64{1, 300, 2000, 0}).Draw(t, "segment size")}
		l := open(t, o)
		m := model{InmemStore: raft.NewInmemStore(), values: map[string]string{}}
		term := uint64(1)
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			first, _ := m.FirstIndex()
			switch rapid.IntRange(0, 11).Draw(t, "what") {
			case 0: // a suffix
				if m.last() == 0 {
					continue
				}
				m.cut(t, l, rapid.Uint64Range(first, m.last()).Draw(t, "from"))
				term++
			case 1: // all
				m.cut(t, l, first)
			case 2: // a prefix
				if m.last() > first {
					require.NoError(t, l.DeleteRange(first, m.last()-1))
				}
			case 3:
				key := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key")
				m.values[key] = rapid.StringN(0, 5, 20).Draw(t, "value")
				require.NoError(t, l.Set([]byte(key), []byte(m.values[key])))
			case 4:
				m.keep = rapid.Uint64Range(m.keep, max(m.keep, m.last()+1)).Draw(t, "keep")
				start, err := l.Anchor(m.keep)
				require.NoError(t, err)
				o.Start = start
				if rapid.Bool().Draw(t, "release") {
					require.NoError(t, l.Release(start))
				}
			case 5:
				require.NoError(t, l.Close())
				l = open(t, o)
			case 6:
				l.recent, l.ahead = recent{}, ahead{}
			case 7:
				m.compare(t, l)
			default:
				from := m.last() + 1
				if from == 1 {
					from = rapid.Uint64Range(max(1, m.keep), m.keep+5).Draw(t, "index")
				}
				logs := entries(from, from+rapid.Uint64Range(0, 5).Draw(t, "more"), term)
				if rapid.Bool().Draw(t, "commit") {
					m.commit = rapid.Uint64Range(1, from+10).Draw(t, "commit index")
					require.NoError(t, l.StageCommitIndex(m.commit))
				}
				require.NoError(t, l.StoreLogs(logs))
				require.NoError(t, m.StoreLogs(logs))
			}
		}
		m.compare(t, l)
		require.NoError(t, l.Close())
		l = open(t, o)
		m.compare(t, l)
		require.NoError(t, l.Close())
	})
}

// Readers during cuts see an entry as it was at some time, or none.
func TestReadersBesideAWriter(t *testing.T) {
	l := openNew(t, Options{SegmentSize: 2000})
	done := make(chan struct{})
	finished := make(chan struct{})
	for reader := range uint64(3) {
		go func() {
			defer func() { finished <- struct{}{} }()
			for i := reader; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				var e raft.Log
				if err := l.GetLog(i%120, &e); err == nil {
					require.Equal(t, entries(i%120, i%120, e.Term)[0], &e)
				} else {
					require.ErrorIs(t, err, raft.ErrLogNotFound)
				}
			}
		}()
	}
	for term := uint64(1); term < 30; term++ {
		last, err := l.LastIndex()
		require.NoError(t, err)
		require.NoError(t, l.StoreLogs(entries(last+1, last+30, term)))
		require.NoError(t, l.DeleteRange(last+5, last+30))
		start, err := l.Anchor(last)
		require.NoError(t, err)
		require.NoError(t, l.Release(start))
		l.mu.Lock()
		l.recent = recent{}
		l.mu.Unlock()
	}
	close(done)
	for range 3 {
		<-finished
	}
}
