package journal

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/persist/disk"
)

// smallDisk is a file system with a limit of bytes for growing files.
type smallDisk struct {
	disk.FS
	mu     sync.Mutex
	free   int
	greedy bool // others take freed room
}

// take takes room for the growth of a file.
func (d *smallDisk) take(n int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n > d.free {
		return &errnoError{}
	}
	d.free -= max(n, 0)
	return nil
}

type errnoError struct{}

func (*errnoError) Error() string { return "no space left on device" }
func (*errnoError) Unwrap() error { return syscall.ENOSPC }

func (d *smallDisk) fill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free = 0
}

func (d *smallDisk) give(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free += n
}

func (d *smallDisk) Remove(name string) error {
	info, err := d.FS.Stat(name)
	if err == nil {
		err = d.FS.Remove(name)
	}
	if err == nil && !d.greedy {
		d.give(int(info.Size()))
	}
	return err
}

func (d *smallDisk) Create(name string) (disk.File, error) {
	f, err := d.FS.Create(name)
	return smallFile{f, d}, err
}

func (d *smallDisk) OpenReadWrite(name string) (disk.File, error) {
	f, err := d.FS.OpenReadWrite(name)
	return smallFile{f, d}, err
}

type smallFile struct {
	disk.File
	d *smallDisk
}

func (f smallFile) Write(b []byte) (int, error) {
	if err := f.d.take(len(b)); err != nil {
		return 0, err
	}
	return f.File.Write(b)
}

func (f smallFile) WriteAt(b []byte, off int64) (int, error) {
	info, err := f.Stat()
	if err == nil {
		err = f.d.take(int(off + int64(len(b)) - info.Size()))
	}
	if err != nil {
		return 0, err
	}
	return f.File.WriteAt(b, off)
}

// Under EverySec clients get replies before anything is written. When the disk is full, everything that they were told
// still reaches it, wherever the shortage is detected first, and nothing more is appended.
func TestWhatWasAppendedIsWrittenWhenTheDiskIsFull(t *testing.T) {
	for _, policy := range []Policy{EverySec, No} {
		for name, before := range map[string]func(j *File){
			"in a segment":       func(j *File) {},
			"at the next one":    func(j *File) { j.Rotate() },
			"behind a long pile": func(j *File) { j.Append(0, []byte(strings.Repeat("y", 700))) },
		} {
			t.Run(fmt.Sprint(name, policy), func(t *testing.T) {
				mem := newFS(t)
				fs := &smallDisk{FS: mem, free: 1 << 20}
				j := open(t, Options{FS: fs, Policy: policy})
				j.Append(0, []byte("one"))
				require.NoError(t, j.Sync(context.Background()))
				j.turn.Lock()
				require.True(t, j.reserved)
				fs.fill()
				var told uint64
				for i := range 5 { // the writer waits for its turn
					j.Append(0, fmt.Appendf(nil, "told %d", i))
					told = j.Appended()
				}
				before(j)
				rest := j.Appended()
				j.turn.Unlock()
				for j.Err() == nil {
					j.Kick()
				}
				require.True(t, disk.Full(j.Err()))
				require.GreaterOrEqual(t, j.Durable(), max(told, rest))
				j.Append(0, []byte("not told"))
				killed := cloneAll(mem)
				got := mustReplay(t, killed, 0)
				require.Contains(t, got, "told 4")
				require.NotContains(t, got, "not told")

				// It continues once there is room, with a reserve for the next time.
				fs.fill()
				fs.greedy = true
				fs.give(999) // not enough for a reserve
				j.FailedNext()
				require.Error(t, j.Resume())
				fs.give(1 << 20)
				next := j.FailedNext()
				require.NoError(t, j.Resume())
				j.Append(0, []byte("again"))
				require.NoError(t, j.Sync(context.Background()))
				require.NoError(t, j.Close())
				require.Equal(t, []string{"again"}, mustReplay(t, mem, next))
				_, err := mem.Stat(reservePath(mem, dir))
				require.NoError(t, err)
			})
		}
	}
}

// A journal opens on a full disk: its content is repeated, nothing is appended, and it continues once there is room.
func TestOpenOnAFullDisk(t *testing.T) {
	for _, torn := range []int{0, 3} {
		mem, want := small(t, false)
		if torn > 0 { // followed by unsynced data
			all, _, err := list(mem, dir)
			require.NoError(t, err)
			path := segmentPath(mem, dir, all[len(all)-1].start)
			s := soundSegments(t, mem, dir)
			b := readFile(t, mem, path)[:s[len(s)-1].size]
			writeFile(t, mem, path, append(b, "torn"...))
		}
		for _, failing := range []string{"all writes", "what makes files longer"} {
			mem := cloneAll(mem)
			small := &smallDisk{FS: mem, greedy: true}
			fs := disk.FS(small)
			full := true
			if failing == "all writes" {
				small.free = 1 << 20
				fs = crashfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
					if full && (op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpFileWriteAt) {
						return syscall.ENOSPC
					}
					return nil
				}))
			}
			j := Open(Options{FS: fs, Dir: dir})
			var got []string
			_, err := j.Read(0, func(_ uint64, _ int64, commands []byte) error {
				got = append(got, string(commands))
				return nil
			})
			require.NoError(t, err, failing)
			require.Equal(t, want, got)
			require.True(t, disk.Full(j.Err()))
			j.Append(0, []byte("dropped"))
			require.Equal(t, want, mustReplay(t, cloneAll(mem), 0), "a kill changes nothing")

			j.FailedNext()
			require.Error(t, j.Resume(), failing)
			full = false
			small.give(1 << 20)
			next := j.FailedNext()
			require.NoError(t, j.Resume(), failing)
			appendSynced(t, j, "new")
			require.NoError(t, j.Close())
			require.Equal(t, []string{"new"}, mustReplay(t, mem, next))
		}
	}
}
