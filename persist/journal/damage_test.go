package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/persist/disk"
)

func rng(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// small creates a journal of three segments and returns their records. If closed is set, a mark confirms everything in
// the last segment.
func small(t require.TestingT, closed bool) (*crashfs.FS, []string) {
	fs := newFS(t)
	j := open(t, Options{FS: fs})
	var want []string
	for i := range 9 {
		if i > 0 && i%3 == 0 {
			j.Rotate()
		}
		want = append(want, fmt.Sprintf("command %d", i))
		appendSynced(t, j, want[i])
	}
	if closed {
		require.NoError(t, j.Close())
		return fs, want
	}
	awaitNote(t, fs, j)
	crashed := cloneAll(fs)
	require.NoError(t, j.Close())
	return crashed, want
}

// awaitNote waits until the file of positions has the synced position.
func awaitNote(t require.TestingT, fs disk.FS, j *File) {
	for {
		p, err := readPositions(fs, dir)
		require.NoError(t, err)
		if p.synced == j.Durable() {
			return
		}
		runtime.Gosched()
	}
}

// knowNothing creates a file of positions without information about segments.
func knowNothing(t require.TestingT, fs disk.FS) {
	require.NoError(t, writePositions(fs, dir, positions{exists: true}))
}

// checkDamaged checks that Replay and Repair treat a possibly damaged journal correctly.
func checkDamaged(t require.TestingT, fs *crashfs.FS, want []string) (damaged bool) {
	before, verifyErr := Verify(fs, dir, Start{}, nil)
	got, report, err := replay(fs, 0)
	require.Equal(t, verifyErr, err)
	require.Equal(t, before, report)
	require.LessOrEqual(t, len(got), len(want))
	require.Equal(t, want[:len(got)], commandsOf(got))
	if err != nil {
		var damage *DamageError
		require.ErrorAs(t, err, &damage)
		again, err := Verify(fs, dir, Start{}, nil)
		require.Equal(t, verifyErr, err, "Replay has changed nothing")
		require.Equal(t, before, again)

		repaired, _, err := Repair(fs, dir, Start{}, nil)
		require.NoError(t, err)
		require.Equal(t, before, repaired)
	}
	// Now it is sound and can be continued.
	after, report2, err := replay(fs, 0)
	require.NoError(t, err)
	require.Equal(t, got, after)
	require.Zero(t, report2.Cut)
	require.Equal(t, report.End, report2.End)
	j := open(t, Options{FS: fs})
	require.Equal(t, report.End, j.Appended())
	appendSynced(t, j, "new")
	require.NoError(t, j.Close())
	require.Equal(t, append(commandsOf(got), "new"), mustReplay(t, fs, 0))
	return verifyErr != nil
}

func TestTruncatedAnywhere(t *testing.T) {
	for _, closed := range []bool{false, true} {
		fs, want := small(t, closed)
		segments := soundSegments(t, fs, dir)
		require.Len(t, segments, 3)
		for i, s := range segments {
			whole := readFile(t, fs, segmentPath(fs, dir, s.start))
			for n := range len(whole) {
				clone := cloneAll(fs)
				writeFile(t, clone, segmentPath(fs, dir, s.start), whole[:n])
				damaged := checkDamaged(t, clone, want)
				require.Equal(t, n < int(s.size), damaged, "segment %d cut to %d bytes", i, n)
			}
		}
	}
}

// endsWithZeros reports whether there are only zeros from an offset on, as if what follows had not been written.
func endsWithZeros(b []byte, at int) bool { return len(bytes.TrimRight(b, "\x00")) <= at }

// A flipped bit is damage wherever it is, also in the last record, which nothing confirms as synced.
func TestFlippedAnywhere(t *testing.T) {
	for _, closed := range []bool{false, true} {
		fs, want := small(t, closed)
		knowNothing(t, fs) // so that only the segments show what was written
		for i, s := range soundSegments(t, fs, dir) {
			whole := readFile(t, fs, segmentPath(fs, dir, s.start))
			for n := range len(whole) {
				clone := cloneAll(fs)
				b := slices.Clone(whole)
				b[n] ^= byte(1 << (n % 8))
				writeFile(t, clone, segmentPath(fs, dir, s.start), b)
				damaged := n < int(s.size) && (i < 2 || !endsWithZeros(b[:s.size], n))
				require.Equal(t, damaged, checkDamaged(t, clone, want), "segment %d, byte %d of %d", i, n, len(whole))
			}
		}
	}
}

// A record of some sectors, the last one, with any byte changed in any way is damage. If sectors of it are missing, or
// the file ends within it, it is torn.
func TestTheLastRecordIsDamagedOrTorn(t *testing.T) {
	r := testseed.Rand(t)
	fs := newFS(t)
	j := open(t, Options{FS: fs})
	appendSynced(t, j, "first")
	start := int(headerSize + j.Appended())
	long := make([]byte, 3*sector+r.IntN(sector))
	for i := range long {
		long[i] = byte(1 + r.IntN(255))
	}
	appendSynced(t, j, string(long))
	end := int(headerSize + j.Appended())
	clone := cloneAll(fs)
	require.NoError(t, j.Close())
	fs = clone
	knowNothing(t, fs)
	path := segmentPath(fs, dir, 0)
	whole := readFile(t, fs, path)
	want := []string{"first", string(long)}
	require.Equal(t, want, mustReplay(t, cloneAll(fs), 0))
	try := func(b []byte) (damaged bool) {
		clone := cloneAll(fs)
		writeFile(t, clone, path, b)
		return checkDamaged(t, clone, want)
	}
	for at := start; at < end; at++ {
		b := slices.Clone(whole)
		b[at] ^= byte(1 + r.IntN(255))
		require.Equal(t, !endsWithZeros(b[:end], at), try(b), "byte %d", at)
	}
	for first := start / sector * sector; first < end; first += sector {
		b := slices.Clone(whole)
		clear(b[max(first, start):min(first+sector, len(b))])
		require.False(t, try(b), "the sector at %d is missing", first)
	}
	for n := start; n < end; n += 1 + r.IntN(sector/4) {
		require.False(t, try(whole[:n]), "%d bytes", n)
	}
	b := slices.Clone(whole)
	for i := start + sector; i < start+2*sector; i++ { // a sector that is not ours
		b[i] = byte(1 + r.IntN(255))
	}
	require.True(t, try(b))
}

func TestHoleBeforeUnsyncedRecordsIsTornTail(t *testing.T) {
	fs := newFS(t)
	j := open(t, Options{FS: fs, Policy: No})
	appendSynced(t, j, "synced")
	synced := j.Appended()
	for i := range 10 {
		j.Append(0, fmt.Appendf(nil, "not %d", i))
	}
	j.Rotate() // everything is written
	require.NoError(t, j.Release(0))
	require.NoError(t, j.Close())
	// As if the crash had come before the second segment existed.
	path := segmentPath(fs, dir, 0)
	b := readFile(t, fs, path)
	clear(b[headerSize+synced+markSize+8:][:17])
	clone := newFS(t)
	writeFile(t, clone, path, b)
	knowNothing(t, clone)
	got, report, err := replay(clone, 0)
	require.NoError(t, err)
	require.Equal(t, []string{"synced"}, commandsOf(got))
	torn := int64(headerSize + synced + markSize)
	require.Equal(t, Cut{File: path, Offset: torn, Bytes: int64(len(b)) - torn, Records: 9}, report.Cut)
}

func TestMissingSegment(t *testing.T) {
	for missing := range 3 {
		fs, want := small(t, true)
		segments, _, err := list(fs, dir)
		require.NoError(t, err)
		path := segmentPath(fs, dir, segments[missing].start)
		require.NoError(t, fs.Remove(path))
		_, _, err = replay(fs, 0)
		var damage *DamageError
		require.ErrorAs(t, err, &damage)
		require.Equal(t, path, damage.File)
		report, _, err := Repair(fs, dir, Start{}, nil)
		require.NoError(t, err)
		require.Equal(t, 3*(2-missing), report.Cut.Records)
		require.Equal(t, want[:3*missing], mustReplay(t, fs, 0))
		// After the gap it is complete.
		fs, _ = small(t, true)
		segments, _, err = list(fs, dir)
		require.NoError(t, err)
		require.NoError(t, fs.Remove(segmentPath(fs, dir, segments[missing].start)))
		if missing == 2 {
			continue
		}
		require.Equal(t, want[3*missing+3:], mustReplay(t, fs, segments[missing+1].start))
	}
}

func TestRepairKeepsWhatItCutsOff(t *testing.T) {
	fs, want := small(t, true)
	segments, _, err := list(fs, dir)
	require.NoError(t, err)
	path := segmentPath(fs, dir, segments[1].start)
	whole := readFile(t, fs, path)
	at := strings.Index(string(whole), want[4])
	whole[at] ^= 1
	writeFile(t, fs, path, whole)
	report, _, err := Repair(fs, dir, Start{}, nil)
	require.NoError(t, err)
	require.Equal(t, path, report.Cut.File)
	require.Equal(t, int64(at-recordHeader-minPayload), report.Cut.Offset)
	require.Equal(t, segments[1].size-report.Cut.Offset+segments[2].size, report.Cut.Bytes)
	require.Equal(t, 4, report.Cut.Records)
	require.Equal(t, want[:4], mustReplay(t, fs, 0))
	require.Equal(t, whole, readFile(t, fs, path+damagedSuffix))
	require.Len(t, readFile(t, fs, segmentPath(fs, dir, segments[2].start)+damagedSuffix), int(segments[2].size))
}

func TestUnreadableDiskIsNoTornTail(t *testing.T) {
	fs, _ := small(t, false)
	eio := errors.New("input/output error")
	segments, _, err := list(fs, dir)
	require.NoError(t, err)
	last := segments[2]
	bad := crashfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt && op.Path == segmentPath(fs, dir, last.start) && op.Offset > headerSize {
			return eio
		}
		return nil
	}))
	r := &reader{segment: last}
	r.file, err = bad.Open(segmentPath(fs, dir, last.start))
	require.NoError(t, err)
	_, err = r.at(headerSize+1, 5)
	require.ErrorIs(t, err, eio)
	r.close()

	all := crashfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt && op.Path == segmentPath(fs, dir, last.start) {
			return eio
		}
		return nil
	}))
	_, _, err = replay(all, 0)
	require.ErrorAs(t, err, new(*DamageError))
	require.ErrorIs(t, err, eio)
}

func FuzzReplay(f *testing.F) {
	fs, _ := small(f, true)
	segments, _, err := list(fs, dir)
	require.NoError(f, err)
	for _, s := range segments {
		b := readFile(f, fs, segmentPath(fs, dir, s.start))
		f.Add(s.start, b)
		f.Add(s.start, b[:len(b)-3])
		f.Add(s.start, slices.Concat(b[:headerSize+5], b[headerSize+8:]))
	}
	f.Fuzz(func(t *testing.T, start uint64, b []byte) {
		fs := newFS(t)
		writeFile(t, fs, segmentPath(fs, dir, start), b)
		knowNothing(t, fs)
		before, verifyErr := Verify(fs, dir, Start{LSN: start}, nil)
		got, _, err := replay(fs, start)
		require.Equal(t, verifyErr, err)
		require.Equal(t, before.Records, len(got))
		if err != nil {
			require.ErrorAs(t, err, new(*DamageError))
			_, _, err = Repair(fs, dir, Start{LSN: start}, nil)
			require.NoError(t, err)
		}
		again, _, err := replay(fs, start)
		require.NoError(t, err)
		require.Equal(t, got, again)
		if start > 1<<63 {
			return // no journal gets this far
		}
		j := openAt(t, Options{FS: fs}, start)
		j.Append(1, []byte("new"))
		require.NoError(t, j.Sync(context.Background()))
		require.NoError(t, j.Close())
		require.Equal(t, append(commandsOf(got), "new"), mustReplay(t, fs, start))
	})
}

func TestOnDisk(t *testing.T) {
	fs, disk := disk.System, t.TempDir()
	j := Open(Options{FS: fs, Dir: disk})
	_, err := j.Read(0, nothing)
	require.NoError(t, err)
	for i := range 4 {
		appendSynced(t, j, fmt.Sprint("command ", i))
		if i == 1 {
			j.Rotate()
		}
	}
	require.NoError(t, j.Close())
	segments := soundSegments(t, fs, disk)
	require.Len(t, segments, 2)

	torn := segmentPath(fs, disk, segments[1].start)
	require.NoError(t, writePositions(fs, disk, positions{exists: true}))
	require.NoError(t, cut(fs, disk, segments[1].start, segments[1].size-markSize-3))
	report, err := Replay(fs, disk, Start{}, nil, nothing)
	require.NoError(t, err)
	require.Equal(t, torn, report.Cut.File)
	require.Equal(t, 3, report.Records)

	damaged := segmentPath(fs, disk, 0)
	b := readFile(t, fs, damaged)
	b[segments[0].size-1] ^= 1
	writeFile(t, fs, damaged, b)
	_, err = Replay(fs, disk, Start{}, nil, nothing)
	require.ErrorAs(t, err, new(*DamageError))
	_, _, err = Repair(fs, disk, Start{}, nil)
	require.NoError(t, err)
	report, err = Replay(fs, disk, Start{}, nil, nothing)
	require.NoError(t, err)
	require.Equal(t, 1, report.Records)
	j = Open(Options{FS: fs, Dir: disk})
	_, err = j.Read(0, nothing)
	require.NoError(t, err)
	require.Equal(t, report.End, j.Appended())
	appendSynced(t, j, "new")
	require.NoError(t, j.Close())
}
