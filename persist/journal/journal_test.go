package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/persist/disk"
)

const dir = "j"

func newFS(t require.TestingT) *crashfs.FS {
	fs := crashfs.New()
	require.NoError(t, fs.MkdirAll(dir, 0o700))
	root, err := fs.OpenDir("/")
	require.NoError(t, err)
	require.NoError(t, root.Sync())
	require.NoError(t, root.Close())
	return fs
}

// open opens a journal that has already been replayed.
func open(t require.TestingT, o Options) *File { return openAt(t, o, 0) }

// openAt is open for a journal that begins at a position, or whose earlier records are in a checkpoint.
func openAt(t require.TestingT, o Options, from uint64) *File {
	o.Dir = dir
	j := Open(o)
	j.prepare = 100 // so that there are zeros to damage and to use up
	j.reserve = 1000
	_, err := j.Read(from, nothing)
	require.NoError(t, err)
	return j
}

func nothing(uint64, int64, []byte) error { return nil }

// entry is a record from Replay.
type entry struct {
	lsn      uint64
	now      int64
	commands string
}

func replay(fs disk.FS, from uint64) ([]entry, Report, error) {
	var got []entry
	report, err := Replay(fs, dir, Start{LSN: from}, nil, func(lsn uint64, now int64, commands []byte) error {
		got = append(got, entry{lsn, now, string(commands)})
		return nil
	})
	return got, report, err
}

func commandsOf(entries []entry) []string {
	out := []string{}
	for _, e := range entries {
		out = append(out, e.commands)
	}
	return out
}

func mustReplay(t require.TestingT, fs disk.FS, from uint64) []string {
	got, _, err := replay(fs, from)
	require.NoError(t, err)
	return commandsOf(got)
}

// appendSynced appends a record in a batch of its own.
func appendSynced(t require.TestingT, j *File, s string) {
	j.Append(1, []byte(s))
	require.NoError(t, j.Sync(context.Background()))
}

// cloneAll copies the present file system, as after a power loss with everything on the disk.
func cloneAll(fs *crashfs.FS) *crashfs.FS {
	return fs.CrashClone(crashfs.CloneCfg{UnsyncedDataPercent: 100, RNG: rng(0)})
}

// soundSegments returns the segments of a journal without damage.
func soundSegments(t require.TestingT, fs disk.FS, dir string) []segment {
	f, err := inspect(fs, dir, Start{}, nil)
	require.NoError(t, err)
	return f.segments
}

func readFile(t require.TestingT, fs disk.FS, path string) []byte {
	info, err := fs.Stat(path)
	require.NoError(t, err)
	f, err := fs.Open(path)
	require.NoError(t, err)
	b := make([]byte, info.Size())
	if len(b) > 0 {
		_, err = f.ReadAt(b, 0)
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
	return b
}

func writeFile(t require.TestingT, fs disk.FS, path string, b []byte) {
	f, err := fs.Create(path)
	require.NoError(t, err)
	_, err = f.Write(slices.Clone(b)) // may change its argument
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestReplayGivesWhatWasAppended(t *testing.T) {
	for _, policy := range []Policy{Always, EverySec, No} {
		t.Run(fmt.Sprint(policy), func(t *testing.T) {
			fs := newFS(t)
			var want []entry
			for range 3 {
				got, report, err := replay(fs, 7)
				require.NoError(t, err)
				require.Equal(t, want, got)
				j := openAt(t, Options{FS: fs, Policy: policy, SegmentSize: 1000}, 7)
				require.Equal(t, report.End, j.Appended())
				require.Equal(t, report.End, j.Durable())
				for i := range 100 {
					commands := strings.Repeat("x", i*i%300)
					j.Append(int64(i)-50, []byte(commands))
					end := j.Appended()
					want = append(want, entry{end - uint64(recordHeader+minPayload+len(commands)), int64(i) - 50, commands})
					if i%7 == 0 {
						j.Kick()
					}
					if i%30 == 0 {
						require.NoError(t, j.Sync(context.Background()))
						require.GreaterOrEqual(t, j.Durable(), end)
					}
				}
				require.NoError(t, j.Close())
				require.Equal(t, j.Appended(), j.Durable())
				j.Append(0, []byte("dropped"))
			}
			for i, e := range want {
				got, _, err := replay(cloneAll(fs), e.lsn)
				require.NoError(t, err)
				require.Equal(t, want[i:], got)
			}
			report, err := Verify(fs, dir, Start{LSN: 7}, nil)
			require.NoError(t, err)
			require.Equal(t, len(want), report.Records)
			require.Zero(t, report.Cut)
			require.Greater(t, report.Segments, 3)
		})
	}
}

func TestReplayRefusesPositionWithinRecord(t *testing.T) {
	fs := newFS(t)
	j := open(t, Options{FS: fs})
	appendSynced(t, j, "one")
	require.NoError(t, j.Close())
	_, _, err := replay(fs, 3)
	require.ErrorAs(t, err, new(*DamageError))
}

func TestErrorOfCallbackEndsReplay(t *testing.T) {
	fs := newFS(t)
	j := open(t, Options{FS: fs})
	appendSynced(t, j, "one")
	require.NoError(t, j.Close())
	want := errors.New("no")
	_, err := Replay(fs, dir, Start{}, nil, func(uint64, int64, []byte) error { return want })
	require.Equal(t, want, err)
}

func TestRotateAndRelease(t *testing.T) {
	fs := newFS(t)
	j := open(t, Options{FS: fs})
	var positions []uint64
	for i := range 5 {
		j.Append(0, fmt.Appendf(nil, "%d", i))
		if i == 3 {
			require.NoError(t, j.Sync(context.Background())) // so that nothing is waiting to be written
		}
		positions = append(positions, j.Rotate())
		require.Equal(t, positions[i], j.Rotate(), "nothing was appended meanwhile")
		require.Equal(t, j.Appended(), positions[i])
	}
	appendSynced(t, j, "5")
	size := j.Size()
	require.NoError(t, j.Release(positions[0]-1))
	require.Equal(t, size, j.Size())
	for i, p := range positions {
		require.NoError(t, j.Release(p))
		segments, _, err := list(fs, dir)
		require.NoError(t, err)
		require.Equal(t, p, segments[0].start)
		report, err := Verify(fs, dir, Start{LSN: p}, nil)
		require.NoError(t, err)
		require.Equal(t, report.Bytes, j.Size())
		require.Equal(t, []string{"0", "1", "2", "3", "4", "5"}[i+1:], mustReplay(t, cloneAll(fs), p))
	}
	require.NoError(t, j.Release(j.Appended()))
	appendSynced(t, j, "6")
	require.NoError(t, j.Close())
	require.Equal(t, []string{"5", "6"}, mustReplay(t, fs, positions[4]))
}

func TestJournalBeginsAtPositionBeyondItsEnd(t *testing.T) {
	fs := newFS(t)
	j := open(t, Options{FS: fs})
	appendSynced(t, j, "old")
	require.NoError(t, j.Close())
	start := j.Appended() + 1000
	require.Empty(t, mustReplay(t, fs, start))
	segments, _, err := list(fs, dir)
	require.NoError(t, err)
	require.Empty(t, segments)

	j = openAt(t, Options{FS: fs}, start)
	require.Equal(t, start, j.Appended())
	appendSynced(t, j, "new")
	require.NoError(t, j.Close())
	require.Equal(t, []string{"new"}, mustReplay(t, fs, start))
}

// gate blocks syncs of data until it is opened.
type gate struct {
	open    chan struct{}
	reached chan struct{} // closed when the first one waits
	once    sync.Once
	syncs   atomic.Int32
}

func newGate() *gate { return &gate{open: make(chan struct{}), reached: make(chan struct{})} }

func (g *gate) wrap(fs disk.FS) disk.FS {
	return crashfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSyncData {
			g.syncs.Add(1)
			g.once.Do(func() { close(g.reached) })
			<-g.open
		}
		return nil
	}))
}

func TestOneSyncServesAllWhoWait(t *testing.T) {
	g := newGate()
	j := open(t, Options{FS: g.wrap(newFS(t)), Now: newClock().now}) // a pause would make it sync room for later records, too
	const n = 200
	var appended, done sync.WaitGroup
	appended.Add(n)
	for range n {
		done.Go(func() {
			j.Append(0, []byte("x"))
			lsn := j.Appended()
			appended.Done()
			j.Kick()
			if err := j.Sync(context.Background()); err != nil || j.Durable() < lsn {
				t.Error("not durable", err)
			}
		})
	}
	appended.Wait()
	<-g.reached
	require.Zero(t, j.Durable())
	close(g.open)
	done.Wait()
	require.LessOrEqual(t, g.syncs.Load(), int32(3))
	require.NoError(t, j.Close())
}

func TestAlwaysNeedsNoKick(t *testing.T) {
	durable := make(chan struct{}, 1)
	j := open(t, Options{FS: newFS(t), Notify: func() { durable <- struct{}{} }})
	j.Append(0, []byte("x"))
	<-durable
	require.Equal(t, j.Appended(), j.Durable())
	require.NoError(t, j.Close())
}

// clock is a clock that stands still.
type clock struct{ ns atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(0, c.ns.Load()) }
func (c *clock) advance(d time.Duration) { c.ns.Add(int64(d)) }

// newClock returns a clock that does not start at 0, which would mean that nothing waits for a sync.
func newClock() *clock {
	var c clock
	c.advance(time.Hour)
	return &c
}

// openEverySec opens a journal that syncs every second of the clock, if the gate permits.
func openEverySec(t require.TestingT, fs disk.FS) (*File, *clock, *gate) {
	c, g := newClock(), newGate()
	return open(t, Options{FS: g.wrap(fs), Policy: EverySec, Now: c.now}), c, g
}

func TestEverySecSyncsOnceASecondAndSaysWhenItCannot(t *testing.T) {
	fs := newFS(t)
	j, c, g := openEverySec(t, fs)
	j.Append(0, []byte("one"))
	// It is written soon, even before it is synced.
	written := func(n int) {
		for len(readFile(t, fs, segmentPath(fs, dir, 0))) < headerSize+n*(recordHeader+minPayload+3) {
			runtime.Gosched()
		}
	}
	written(1)
	require.Zero(t, g.syncs.Load())
	require.False(t, j.lagging())

	c.advance(syncInterval)
	j.Append(0, []byte("two"))
	<-g.reached
	j.Append(0, []byte("six"))
	written(3)
	require.False(t, j.lagging())
	c.advance(1500 * time.Millisecond)
	require.True(t, j.lagging())
	require.Zero(t, j.Durable())
	close(g.open)
	require.NoError(t, j.Sync(context.Background()))
	require.False(t, j.lagging())
	require.Equal(t, j.Appended(), j.Durable())

	j.SetPolicy(No)
	j.Append(0, []byte("two"))
	c.advance(time.Hour)
	require.False(t, j.lagging())
	require.NoError(t, j.Close())
}

// unattended keeps the writer idle, as if its timer had just been set.
func unattended(j *File) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.paused = true
}

// waiting returns the number of unwritten bytes.
func waiting(j *File) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.buf)
}

func TestCommitWritesAtOnceUnlessItMightHaveToWait(t *testing.T) {
	c := newClock()
	var takes time.Duration // duration of a write
	fs := newFS(t)
	// With No, because a sync would wake the writer.
	j := open(t, Options{FS: fs, Policy: No, Now: c.now, SegmentSize: 64 << 10, Delay: func() time.Duration {
		c.advance(takes)
		return 0
	}})
	unattended(j)
	commit := func(n int) (left int) {
		j.Append(0, make([]byte, n))
		j.Commit()
		return waiting(j)
	}
	require.NotZero(t, commit(1), "little")
	require.Zero(t, commit(minInline))
	takes = 2 * inlineLimit
	began := c.now()
	require.Zero(t, commit(minInline))
	takes = 0
	took := c.now().Sub(began)
	require.GreaterOrEqual(t, took, 2*inlineLimit)
	require.NotZero(t, commit(minInline), "the disk is slow")
	c.advance(slowPauses*took - 1)
	require.NotZero(t, commit(minInline), "it still is")
	c.advance(1)
	require.Zero(t, commit(56<<10))
	require.NotZero(t, commit(minInline), "the segment ends")
	require.NoError(t, j.Close())
	require.Len(t, mustReplay(t, fs, 0), 7)
}

func TestCommitDoesNotWriteDuringSync(t *testing.T) {
	j, c, g := openEverySec(t, newFS(t))
	unattended(j)
	c.advance(syncInterval)
	j.Append(0, make([]byte, minInline))
	j.Commit()
	require.Zero(t, waiting(j))
	<-g.reached
	j.Append(0, make([]byte, minInline))
	j.Commit()
	require.NotZero(t, waiting(j))
	close(g.open)
	require.NoError(t, j.Close())
}

func TestWriterTakesWhatCommitLeaves(t *testing.T) {
	j := open(t, Options{FS: newFS(t), Policy: EverySec})
	j.Append(0, make([]byte, minInline))
	j.Commit()
	j.Append(0, []byte("little"))
	j.Commit()
	for waiting(j) > 0 {
		runtime.Gosched()
	}
	require.NoError(t, j.Close())
}

func TestRestBeforeSyncDoesNotMakeWhatComesLaterOld(t *testing.T) {
	j, c, g := openEverySec(t, newFS(t))
	unattended(j)
	j.Append(0, make([]byte, minInline))
	j.Commit()
	first := j.Appended()
	c.advance(lagLimit / 2)
	j.Append(0, make([]byte, minInline))
	j.Commit()
	c.advance(lagLimit / 3)
	j.mu.Lock()
	j.wakeWriter() // like its timer, with nothing to write
	j.mu.Unlock()
	<-g.reached
	j.Append(0, []byte("later"))
	close(g.open)
	for j.Durable() <= first {
		runtime.Gosched()
	}
	waiting(j) // after the syncer has unlocked mu, everything is recorded
	c.advance(lagLimit * 9 / 10)
	require.False(t, j.lagging())
	require.NoError(t, j.Close())
}

func TestSyncEndsWithItsContext(t *testing.T) {
	g := newGate()
	j := open(t, Options{FS: g.wrap(newFS(t))})
	j.Append(0, []byte("one"))
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-g.reached
		cancel()
	}()
	require.ErrorIs(t, j.Sync(ctx), context.Canceled)
	close(g.open)
	require.NoError(t, j.Close())
}

func TestAppendWaitsForRoom(t *testing.T) {
	g := newGate()
	fs := newFS(t)
	j := open(t, Options{FS: g.wrap(fs)})
	j.maxBuffer = 100
	var want []string
	var appended atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 20 {
			j.Append(0, bytes.Repeat([]byte("x"), 30))
			appended.Add(1)
		}
	}()
	<-g.reached
	for appended.Load() < 3 {
		runtime.Gosched()
	}
	require.LessOrEqual(t, appended.Load(), int32(4), "two buffers")
	close(g.open)
	<-done
	for range 20 {
		want = append(want, strings.Repeat("x", 30))
	}
	j.Append(0, bytes.Repeat([]byte("y"), 1000)) // exceeds all the room
	require.NoError(t, j.Close())
	require.Equal(t, append(want, strings.Repeat("y", 1000)), mustReplay(t, fs, 0))
}

func TestCloseEndsAllGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 20 {
		j := open(t, Options{FS: newFS(t), Policy: EverySec})
		j.Append(0, []byte("x"))
		require.NoError(t, j.Close())
		require.NoError(t, j.Close())
	}
	for runtime.NumGoroutine() > before { // a goroutine that has called Done is about to end
		runtime.Gosched()
	}
}

// discard is a file system that drops writes.
type discard struct{ disk.FS }

type discardFile struct{ disk.File }

func (d discard) Create(name string) (disk.File, error) {
	f, err := d.FS.Create(name)
	return discardFile{f}, err
}

func (discardFile) Write(b []byte) (int, error) { return len(b), nil }

// BenchmarkAppend measures Append while the writer keeps up; BenchmarkSaturated while it does not.
func BenchmarkAppend(b *testing.B) {
	for _, policy := range []Policy{Always, EverySec} {
		b.Run(fmt.Sprint(policy), func(b *testing.B) {
			j := open(b, Options{FS: discard{newFS(b)}, Policy: policy})
			commands := bytes.Repeat([]byte("x"), 100)
			b.ReportAllocs()
			for i := range b.N {
				if i%4096 == 0 {
					b.StopTimer()
					require.NoError(b, j.Sync(context.Background()))
					b.StartTimer()
				}
				j.Append(1, commands)
			}
			require.NoError(b, j.Close())
		})
	}
}

func BenchmarkSaturated(b *testing.B) {
	j := open(b, Options{FS: discard{newFS(b)}, Policy: EverySec})
	commands := bytes.Repeat([]byte("x"), 100)
	b.SetBytes(100)
	for b.Loop() {
		j.Append(1, commands)
	}
	require.NoError(b, j.Close())
}

func TestReadWhileOpen(t *testing.T) {
	fs := newFS(t)
	j := openAt(t, Options{FS: fs, SegmentSize: 200}, 5)
	var starts []uint64
	for i := range 20 {
		starts = append(starts, j.Appended())
		appendSynced(t, j, fmt.Sprint("command ", i))
	}
	for i, from := range starts {
		var got []entry
		next, err := j.Read(from, func(lsn uint64, now int64, commands []byte) error {
			got = append(got, entry{lsn, now, string(commands)})
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, j.Appended(), next)
		require.Len(t, got, len(starts)-i)
		require.GreaterOrEqual(t, got[0].lsn, from) // a mark may come first
		require.Equal(t, fmt.Sprint("command ", i), got[0].commands)
	}

	j.SetPolicy(No) // nothing becomes durable unless Sync waits for it
	j.Append(1, []byte("not durable yet"))
	next, err := j.Read(starts[19], nothing)
	require.NoError(t, err)
	require.Equal(t, j.Durable(), next)
	next, err = j.Read(next+1000, nothing)
	require.NoError(t, err)
	require.Equal(t, j.Durable()+1000, next)

	want := errors.New("enough")
	_, err = j.Read(starts[3], func(uint64, int64, []byte) error { return want })
	require.Equal(t, want, err)

	require.NoError(t, j.Release(j.Rotate()))
	_, err = j.Read(starts[3], nothing)
	require.Equal(t, ErrReleased, err)
	require.NoError(t, j.Close())
}

// shortening truncates files before it removes them, like stepwise removal.
type shortening struct{ disk.FS }

func (s shortening) Remove(name string) error {
	return os.Truncate(name, headerSize) // not done yet
}

func TestReadOfWhatIsBeingRemoved(t *testing.T) {
	j := Open(Options{FS: shortening{disk.System}, Dir: t.TempDir()})
	_, err := j.Read(0, nothing)
	require.NoError(t, err)
	for range 3 {
		appendSynced(t, j, strings.Repeat("x", window))
	}
	n := 0
	_, err = j.Read(0, func(uint64, int64, []byte) error {
		if n++; n == 1 {
			require.NoError(t, j.Release(j.Rotate()))
		}
		return nil
	})
	require.Equal(t, ErrReleased, err)
	require.Less(t, n, 3)
	require.NoError(t, j.Close())
}

// While clients wait for each sync the file rarely grows, and is never much longer than its content.
func TestAlwaysOverwritesZeros(t *testing.T) {
	fs := newFS(t)
	j := open(t, Options{FS: fs, Now: newClock().now})
	j.prepare = 1000
	lengths := map[int]bool{}
	for i := range 100 {
		appendSynced(t, j, fmt.Sprintf("command %02d", i))
		b := readFile(t, fs, segmentPath(fs, dir, 0))
		lengths[len(b)] = true
		require.Empty(t, bytes.Trim(b[j.Size():], "\x00"))
		require.LessOrEqual(t, len(b), int(j.Size())+1000)
	}
	require.LessOrEqual(t, len(lengths), int(j.Size())/1000+1)
	appendSynced(t, j, strings.Repeat("x", 5000)) // it must grow in any case
	require.Len(t, readFile(t, fs, segmentPath(fs, dir, 0)), int(j.Size()))
	j.SetPolicy(EverySec)
	appendSynced(t, j, "short")
	require.Len(t, readFile(t, fs, segmentPath(fs, dir, 0)), int(j.Size()))
	require.NoError(t, j.Close())
}

// hurried returns a clock that advances by d whenever it is read.
func hurried(d time.Duration) func() time.Time {
	c := newClock()
	return func() time.Time {
		c.advance(d)
		return c.now()
	}
}

// When idle, the file grows until there is room for many batches, but not beyond the length of a segment.
func TestZerosAreWrittenWhileNothingElseIs(t *testing.T) {
	for segment, want := range map[int64]func(size int) int{
		0:    func(size int) int { return size + preparedAhead*1000 },
		2500: func(size int) int { return 2500 },
	} {
		fs := newFS(t)
		var j *File
		grown := make(chan int, 100)
		watched := crashfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileSyncData {
				grown <- len(readFile(t, fs, op.Path))
			}
			return nil
		}))
		j = open(t, Options{FS: watched, Now: hurried(quietInterval), SegmentSize: segment})
		j.prepare = 1000
		appendSynced(t, j, "command")
		size := int(j.Size())
		for length := 0; length < want(size); {
			length = <-grown
			require.Less(t, length, want(size)+1000)
		}
		appendSynced(t, j, "another")
		require.NoError(t, j.Close())
		require.Equal(t, []string{"command", "another"}, mustReplay(t, fs, 0))
	}
}

// zeroFS passes writes of only zeros through a function.
type zeroFS struct {
	disk.FS
	zeros func(write func() (int, error)) (int, error)
}

func (fs zeroFS) OpenReadWrite(name string) (disk.File, error) {
	f, err := fs.FS.OpenReadWrite(name)
	return zeroFile{f, fs}, err
}

type zeroFile struct {
	disk.File
	fs zeroFS
}

func (f zeroFile) WriteAt(b []byte, off int64) (int, error) {
	write := func() (int, error) { return f.File.WriteAt(b, off) }
	if len(bytes.Trim(b, "\x00")) > 0 {
		return write()
	}
	return f.fs.zeros(write)
}

func TestNoRoomForZerosIsNoFailure(t *testing.T) {
	fs := newFS(t)
	refused := make(chan struct{}, 100)
	j := open(t, Options{Now: hurried(quietInterval), FS: zeroFS{fs, func(func() (int, error)) (int, error) {
		refused <- struct{}{}
		return 0, errorfs.ErrInjected
	}}})
	for range 3 {
		appendSynced(t, j, "command")
		<-refused
	}
	require.Len(t, readFile(t, fs, segmentPath(fs, dir, 0)), int(j.Size()))
	require.NoError(t, j.Close())
	require.Len(t, mustReplay(t, fs, 0), 3)
}
