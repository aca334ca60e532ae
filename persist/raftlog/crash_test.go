package raftlog

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/journal"
)

func rng(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// view is the content of a log. It is immutable.
type view struct {
	first  uint64
	terms  []uint64 // of the entries from first on
	values map[string]string
	commit uint64
}

func viewOf(t require.TestingT, l *Log) view {
	v := view{values: values(l)}
	v.first, _ = l.FirstIndex()
	last, _ := l.LastIndex()
	for i := v.first; i <= last && i > 0; i++ {
		var e raft.Log
		require.NoError(t, l.GetLog(i, &e))
		require.Equal(t, entries(i, i, e.Term)[0], &e)
		v.terms = append(v.terms, e.Term)
	}
	v.commit, _ = l.GetCommitIndex()
	return v
}

func (v view) last() uint64 {
	if len(v.terms) == 0 {
		return 0
	}
	return v.first + uint64(len(v.terms)) - 1
}

func (v view) store(index, term uint64, n int) view {
	if len(v.terms) == 0 {
		v.first = index
	}
	v.terms = append(slices.Clip(v.terms), slices.Repeat([]uint64{term}, n)...)
	return v
}

func (v view) cut(from uint64) view {
	v.terms = v.terms[:from-v.first]
	v.commit = min(v.commit, from-1)
	return v
}

func (v view) set(key, value string) view {
	v.values = maps.Clone(v.values)
	v.values[key] = value
	return v
}

// from returns the content from an index on.
func (v view) from(index uint64) string {
	terms := v.terms
	if len(terms) > 0 && index > v.first {
		terms = terms[min(index-v.first, uint64(len(terms))):]
	}
	return fmt.Sprint(v.last(), terms, v.values, min(v.commit, v.last()))
}

// promise is what must survive a crash: one of some views, with all entries from keep on.
type promise struct {
	start journal.Start
	keep  uint64
	may   []view
}

// check returns how a log breaks the promise, "" if it keeps it.
func (p promise) check(t require.TestingT, l *Log) string {
	got := viewOf(t, l)
	for _, v := range p.may {
		keep := p.keep
		if len(got.terms) > 0 && got.first < keep {
			keep = max(got.first, v.first) // more than required
		}
		if got.from(keep) == v.from(keep) && (len(got.terms) == 0) == (keep > v.last() || len(v.terms) == 0) {
			return ""
		}
		// The last entries before keep may be gone, so that the log is empty.
		if len(got.terms) == 0 && v.last() < keep && fmt.Sprint(got.values) == fmt.Sprint(v.values) {
			return ""
		}
	}
	return fmt.Sprintf("got %+v, want one of %+v from %d on", got, p.may, p.keep)
}

// life is a node's use of its log. It stops at the first error, and records all the time what a crash would have to
// leave.
type life struct {
	opening atomic.Bool

	mu sync.Mutex
	promise
	term uint64
}

// begin records that the next action leads from the present view through others to the last of them.
func (w *life) begin(views ...view) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.may = append([]view{w.may[len(w.may)-1]}, views...)
}

// done records that the action is finished, and so durable.
func (w *life) done() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.may = w.may[len(w.may)-1:]
}

func (w *life) now() view { return w.may[len(w.may)-1] }

func (w *life) store(l *Log, n int) error {
	w.term++
	v := w.now()
	index := max(v.last()+1, w.keep)
	var views []view
	for k := range n {
		views = append(views, v.store(index, w.term, k+1))
	}
	views[n-1].commit = index
	w.begin(views...)
	if err := l.StageCommitIndex(index); err != nil {
		return err
	}
	if err := l.StoreLogs(entries(index, index+uint64(n)-1, w.term)); err != nil {
		return err
	}
	w.done()
	return nil
}

func (w *life) cut(l *Log, from uint64) error {
	v := w.now()
	w.begin(v.cut(from))
	if err := l.DeleteRange(from, v.last()); err != nil {
		return err
	}
	w.done()
	return nil
}

func (w *life) set(l *Log, key, value string) error {
	w.begin(w.now().set(key, value))
	if err := l.Set([]byte(key), []byte(value)); err != nil {
		return err
	}
	w.done()
	return nil
}

func (w *life) checkpoint(l *Log, keep uint64) error {
	start, err := l.Anchor(keep)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.start, w.keep = start, keep
	w.mu.Unlock()
	if err := l.Release(start); err != nil && l.Err() != nil {
		return err
	}
	return nil // the next one will remove it
}

func newLife() *life { return &life{promise: promise{may: []view{{values: map[string]string{}}}}} }

func (w *life) run(t require.TestingT, fs disk.FS) error {
	for i := range 3 {
		w.opening.Store(true)
		l, err := Open(Options{FS: fs, Dir: dir, Start: w.start, SegmentSize: 250})
		if err != nil {
			return err
		}
		w.opening.Store(false)
		require.Empty(t, w.check(t, l))
		steps := []func() error{
			func() error { return w.set(l, "term", fmt.Sprint(i)) },
			func() error { return w.store(l, 3) },
			func() error { return w.set(l, "candidate", strings.Repeat("x", 10*i)) },
			func() error { return w.store(l, 1) },
			func() error { return w.cut(l, w.now().last()-1) },
			func() error { return w.store(l, 4) },
			func() error { return w.checkpoint(l, w.now().last()-2) },
			func() error { return w.store(l, 1) },
			func() error { return w.cut(l, w.now().last()) },
		}
		if i == 1 { // install a snapshot
			steps = append(steps,
				func() error { return w.cut(l, w.now().first) },
				func() error { return w.checkpoint(l, w.keep+20) },
				func() error { return w.store(l, 2) })
		}
		for _, step := range steps {
			if err = step(); err != nil {
				break
			}
			first, _ := l.FirstIndex() // released entries need not be known here
			if v := w.now(); first > v.first && len(v.terms) > 0 {
				v.terms, v.first = v.terms[first-v.first:], first
				w.begin(v)
				w.done()
			}
		}
		if err != nil {
			require.Error(t, l.Err())
			require.ErrorIs(t, l.StoreLogs(entries(1, 1, 1)), l.Err(), "it stays so")
			_ = l.Close()
			return err
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	return nil
}

// mustKeep opens a log after a crash and checks the promise, also after the next start.
func mustKeep(t require.TestingT, fs disk.FS, p promise) {
	for i := range 2 {
		l, err := Open(Options{FS: fs, Dir: dir, Start: p.start, SegmentSize: 250})
		require.NoError(t, err)
		require.Empty(t, p.check(t, l))
		if i == 0 {
			p.may = []view{viewOf(t, l)} // present content must stay
			w := life{promise: p, term: 1000}
			require.NoError(t, w.store(l, 2))
			require.NoError(t, w.set(l, "term", "after the crash"))
			p = w.promise
		}
		require.NoError(t, l.Close())
	}
}

func TestCrashAtEveryOperation(t *testing.T) {
	type crash struct {
		fs *crashfs.FS
		promise
	}
	for seed, percent := range []int{0, 30, 60, 100} {
		fs := newFS(t)
		random := rng(uint64(seed))
		w := newLife()
		var crashes []crash
		var mu sync.Mutex
		err := w.run(t, crashfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsRead {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			w.mu.Lock()
			defer w.mu.Unlock()
			crashes = append(crashes, crash{
				fs.CrashClone(crashfs.CloneCfg{UnsyncedDataPercent: percent, RNG: random}), w.promise,
			})
			return nil
		})))
		require.NoError(t, err)
		require.Greater(t, len(crashes), 100)
		for _, c := range crashes {
			mustKeep(t, c.fs, c.promise)
		}
	}
}

// After an error nothing more is stored, and earlier data survives, whether the machine does or not.
func TestErrorAtEveryOperation(t *testing.T) {
	for k := int32(0); ; k++ {
		fs := newFS(t)
		w := newLife()
		var op atomic.Int32
		_ = w.run(t, crashfs.Wrap(fs, errorfs.InjectorFunc(func(o errorfs.Op) error {
			if o.Kind.ReadOrWrite() == errorfs.OpIsRead && !w.opening.Load() {
				return nil // the test itself reads
			}
			if op.Add(1)-1 == k {
				return errorfs.ErrInjected
			}
			return nil
		})))
		if op.Load() <= k {
			require.Greater(t, k, int32(100))
			return
		}
		for _, percent := range []int{0, 50, 100} {
			mustKeep(t, fs.CrashClone(crashfs.CloneCfg{UnsyncedDataPercent: percent, RNG: rng(uint64(k))}), w.promise)
		}
	}
}
