package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/persist/disk"
)

// opened opens a journal with small segments in a directory, from an LSN on.
func opened(t *testing.T, dir string, from Start, r Retention, now func() time.Time) *File {
	t.Helper()
	require.NoError(t, disk.System.MkdirAll(dir+"/journal", 0o700))
	j := Open(Options{FS: disk.System, Dir: dir + "/journal", Policy: Always, SegmentSize: 200, Seed: from.Seed, Retention: r, Now: now})
	_, err := j.Read(from.LSN, func(uint64, int64, []byte) error { return nil })
	require.NoError(t, err)
	return j
}

// fill appends records until the journal has so many segments more, and returns their texts.
func fill(t *testing.T, j *File, name string, n int) (all []string) {
	t.Helper()
	for i := range n {
		text := fmt.Sprintf("%s-%d-%030d", name, i, i)
		j.Append(int64(i), []byte(text))
		require.NoError(t, j.Sync(context.Background()))
		all = append(all, text)
	}
	return all
}

// rest reads all that follows a place.
func rest(t *testing.T, j *File, from Place) (all []string, at Place, err error) {
	t.Helper()
	r, err := j.Follow(from)
	if err != nil {
		return nil, from, err
	}
	defer r.Close()
	for at = from; ; {
		e, ok, err := r.Next()
		if err != nil || !ok {
			return all, at, err
		}
		all, at = append(all, string(e.Commands)), e.After
	}
}

func TestAReaderGoesOnFromEveryPlace(t *testing.T) {
	dir := t.TempDir()
	j := opened(t, dir, Start{}, Retention{}, nil)
	begin, _, err := j.Places()
	require.NoError(t, err)
	all := fill(t, j, "a", 20)
	r, err := j.Follow(begin)
	require.NoError(t, err)
	places := []Place{begin}
	for i := range all {
		e, ok, err := r.Next()
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, all[i], string(e.Commands))
		require.Equal(t, int64(i), e.Now)
		places = append(places, e.After)
	}
	_, ok, err := r.Next()
	require.NoError(t, err)
	require.False(t, ok)
	more := fill(t, j, "b", 3)
	e, ok, err := r.Next()
	require.NoError(t, err)
	require.True(t, ok, "it sees what is appended later")
	require.Equal(t, more[0], string(e.Commands))
	r.Close()
	all = append(all, more...)
	require.NoError(t, j.Close())

	j = opened(t, dir, Start{}, Retention{}, nil)
	all = append(all, fill(t, j, "c", 3)...)
	for i, p := range places {
		again, ok := ParsePlace(p.String())
		require.True(t, ok)
		got, end, err := rest(t, j, again)
		require.NoError(t, err, p)
		require.Equal(t, all[i:], got, "after a restart")
		_, now, err := j.Places()
		require.NoError(t, err)
		require.Equal(t, now.LSN, end.LSN)
		// Places that no reader ever got.
		for _, wrong := range []Place{{p.Mark + 1, p.LSN, 0}, {p.Mark, p.LSN, 7}, {p.Mark, p.LSN + 3, 0}, {p.Mark, 1 << 40, 0}} {
			_, _, err = rest(t, j, wrong)
			require.ErrorIs(t, err, ErrForeign, wrong)
		}
	}
	require.NoError(t, j.Close())
	other := opened(t, t.TempDir(), Start{}, Retention{}, nil)
	fill(t, other, "a", 20)
	for _, p := range places {
		_, _, err := rest(t, other, p)
		require.ErrorIs(t, err, ErrForeign, "another journal")
	}
	require.NoError(t, other.Close())
}

func TestAJournalKeepsWhatItRetainsForReaders(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	clock := func() time.Time { return now }
	j := opened(t, dir, Start{}, Retention{Bytes: 1000}, clock)
	begin, _, err := j.Places()
	require.NoError(t, err)
	all := fill(t, j, "a", 60)
	lsn := j.Rotate()
	anchor, err := j.Anchor(lsn)
	require.NoError(t, err)
	size := j.Size()
	require.NoError(t, j.Release(lsn))
	require.Less(t, j.Size(), size, "what is only retained is not counted")
	require.InDelta(t, 1000, j.Retained(), 300)
	_, _, err = rest(t, j, begin)
	require.ErrorIs(t, err, ErrReleased)
	oldest, _, err := j.Places()
	require.NoError(t, err)
	got, _, err := rest(t, j, oldest)
	require.NoError(t, err)
	require.Equal(t, all[len(all)-len(got):], got)
	require.Greater(t, len(got), 5)
	require.NoError(t, j.Close())

	// A restart keeps it, and recovery begins at the checkpoint.
	j = opened(t, dir, anchor.Start, Retention{Bytes: 1000}, clock)
	more := fill(t, j, "b", 2)
	again, _, err := rest(t, j, oldest)
	require.NoError(t, err)
	require.Equal(t, append(got, more...), again)

	// Old segments go with the next checkpoint.
	j.Retain(Retention{Bytes: 1 << 30, Age: 1000})
	now = now.Add(time.Hour)
	lsn = j.Rotate()
	require.NoError(t, j.Release(lsn))
	require.Zero(t, j.Retained())
	_, _, err = rest(t, j, oldest)
	require.ErrorIs(t, err, ErrReleased)
	require.NoError(t, j.Close())
}

func TestNoReaderGoesOnAcrossABreak(t *testing.T) {
	for _, checkpoint := range []bool{false, true} {
		dir := t.TempDir()
		keep := Retention{Bytes: 1 << 20}
		j := opened(t, dir, Start{}, keep, nil)
		fill(t, j, "a", 10)
		_, before, err := j.Places()
		require.NoError(t, err)
		open, err := j.Follow(before)
		require.NoError(t, err)
		j.Break(1)
		lsn := j.Rotate()
		start, err := j.Anchor(lsn)
		require.NoError(t, err)
		after := fill(t, j, "b", 10)
		e, ok, err := open.Next()
		require.NoError(t, err)
		require.True(t, ok)
		require.Empty(t, e.Commands)
		_, _, err = open.Next()
		require.ErrorIs(t, err, ErrReleased)
		open.Close()
		if checkpoint { // otherwise the process ends before it has released anything
			require.NoError(t, j.Release(lsn))
			require.Zero(t, j.Retained())
		}
		oldest, _, err := j.Places()
		require.NoError(t, err)
		got, _, err := rest(t, j, oldest)
		require.NoError(t, err)
		require.Equal(t, after, got)
		require.NoError(t, j.Close())

		j = opened(t, dir, start.Start, keep, nil)
		_, _, err = rest(t, j, before)
		require.Error(t, err)
		got, _, err = rest(t, j, oldest)
		require.NoError(t, err)
		require.Equal(t, after, got)
		require.NoError(t, j.Close())
	}
}

func TestPlacesAreReadAsTheyAreWritten(t *testing.T) {
	for _, p := range []Place{{}, {1, 2, 3}, {0xfedcba98, 1<<64 - 1, 1<<32 - 1}} {
		got, ok := ParsePlace(p.String())
		require.True(t, ok)
		require.Equal(t, p, got)
	}
	for _, text := range []string{"", "-", "0", "1-2", "00000001", "00000001-", "00000001-x", "00000001-1.", "00000001-1.0", "00000001-01",
		"0000000G-1", "0000000A-1", "+0000001-1", "00000001-1.4294967296", "00000001-18446744073709551616"} {
		_, ok := ParsePlace(text)
		require.False(t, ok, text)
	}
}

// A segment that already has to begin before a break continues the one before it, and does not take the break's place.
func TestABreakSeparatesWhereItIs(t *testing.T) {
	j := opened(t, t.TempDir(), Start{}, Retention{Bytes: 1 << 20}, nil)
	fill(t, j, "a", 2)
	_, before, err := j.Places()
	require.NoError(t, err)
	j.turn.Lock() // the writer waits
	j.Rotate()
	j.Append(0, []byte("x"))
	j.Break(1)
	lsn := j.Rotate()
	j.turn.Unlock()
	_, err = j.Anchor(lsn)
	require.NoError(t, err)
	fill(t, j, "b", 2)
	got, _, err := rest(t, j, before)
	require.ErrorIs(t, err, ErrReleased)
	require.Equal(t, []string{"x", ""}, got)
	require.NoError(t, j.Close())
}

func TestRetentionKeepsWholeSegments(t *testing.T) {
	now := time.Now()
	for _, r := range []Retention{{Bytes: 1}, {Age: 1000}} {
		j := opened(t, t.TempDir(), Start{}, r, func() time.Time { return now })
		fill(t, j, "a", 60)
		all := len(j.segments)
		require.NoError(t, j.Release(j.Rotate()))
		kept := all
		if r.Age == 0 {
			kept = 1 // it is longer than a byte
		}
		require.Len(t, j.segments, kept+1)
		require.NoError(t, j.Release(j.Appended()))
		require.Len(t, j.segments, kept+1)
		j.Retain(Retention{})
		require.NoError(t, j.Release(j.Appended()))
		require.Zero(t, j.Retained())
		require.NoError(t, j.Close())
	}
}

// Records that an archive lacks are kept within a limit, also over a restart, and no others.
func TestRecordsAreKeptUntilTheyAreArchived(t *testing.T) {
	dir := t.TempDir()
	j := opened(t, dir, Start{}, Retention{FromBytes: 1 << 20}, nil)
	begin, _, err := j.Places()
	require.NoError(t, err)
	all := fill(t, j, "a", 60)
	lsn := j.Rotate()
	anchor, err := j.Anchor(lsn)
	require.NoError(t, err)
	require.NoError(t, j.Release(lsn))
	got, _, err := rest(t, j, begin)
	require.NoError(t, err)
	require.Equal(t, all, got)
	require.NoError(t, j.Close())
	j = opened(t, dir, anchor.Start, Retention{FromBytes: 1 << 20}, nil)
	got, _, err = rest(t, j, begin)
	require.NoError(t, err)
	require.Equal(t, all, got)
	archived := j.segments[3].start
	j.Retain(Retention{From: archived, FromBytes: 1 << 20})
	require.NoError(t, j.Release(j.Rotate()))
	require.Equal(t, archived, j.segments[0].start)
	j.Retain(Retention{From: archived, FromBytes: 1})
	require.NoError(t, j.Release(j.Appended()))
	require.Less(t, j.Retained(), int64(400), "a segment is kept as a whole")
	require.NoError(t, j.Close())
}

func TestReadersLoseDamageThatRecoveryDoesNotNeed(t *testing.T) {
	dir := t.TempDir()
	j := opened(t, dir, Start{}, Retention{Bytes: 1 << 20}, nil)
	begin, _, err := j.Places()
	require.NoError(t, err)
	all := fill(t, j, "a", 60)
	damaged, last := j.segments[1], j.segments[2]
	overwrite := func(at uint64) {
		file, err := disk.System.OpenReadWrite(segmentPath(disk.System, j.o.Dir, at))
		require.NoError(t, err)
		_, err = file.WriteAt([]byte("damage"), headerSize+recordHeader+12)
		require.NoError(t, errors.Join(err, file.Close()))
	}
	overwrite(damaged.start)
	_, _, err = rest(t, j, begin)
	require.ErrorAs(t, err, new(*DamageError), "recovery needs it")
	require.NoError(t, j.Release(j.Rotate()))
	_, _, err = rest(t, j, begin)
	require.ErrorIs(t, err, ErrReleased)
	oldest, _, err := j.Places()
	require.NoError(t, err)
	require.Equal(t, last.start, oldest.LSN)
	got, _, err := rest(t, j, oldest)
	require.NoError(t, err)
	require.Equal(t, all[len(all)-len(got):], got)
	require.NotEmpty(t, got)
	require.NoError(t, j.Release(j.Appended()))
	_, err = disk.System.Stat(segmentPath(disk.System, j.o.Dir, damaged.start))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, j.Close())
}
