package psync

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"

	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/resp"
)

// A server that is stopped leaves its backlog in a file beside its data. The next start reads and removes it.

// backlogName is the name of that file.
const backlogName = "replication.backlog"

func (f *Followers) backlogPath() string {
	return f.fs.PathJoin(f.config.Get().Files.Dir, backlogName)
}

// readBacklog reads and removes the file, and reports whether it has the end of this history. mu is locked.
func (f *Followers) readBacklog() (ended bool) {
	fs, path := f.fs, f.backlogPath()
	file, err := fs.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	var b []byte
	if err == nil {
		b, err = io.ReadAll(file)
		err = errors.Join(err, file.Close(), f.removeBacklog())
	}
	if err != nil {
		f.log.Warn("cannot load the saved replication backlog", "error", err.Error())
		return false
	}
	// A checksum, the note of the history, the kept end.
	if len(b) < 4 || crc32.ChecksumIEEE(b[4:]) != binary.LittleEndian.Uint32(b) {
		return false
	}
	args, n, err := (&resp.Parser{MaxBulk: resp.AnyBulk}).Next(b[4:], nil)
	if err != nil || n == 0 {
		return false
	}
	// The file of another end of the history must not be used: replicas may have executed more than the data has.
	var left Followers
	if err := left.recall(args[1:], 0); err != nil {
		return false
	}
	l, h := &left.history, &f.history
	if !h.Known || !l.Known || l.ID != h.ID || l.Offset != h.Offset || l.Relayed != h.Relayed {
		return false
	}
	h.Skip(h.Offset)
	h.Remember(b[4+n:])
	return true
}

// removeBacklog removes the file and syncs the directory: a power loss must not bring it back.
func (f *Followers) removeBacklog() error {
	fs := f.fs
	if err := fs.Remove(f.backlogPath()); err != nil {
		return err
	}
	dir, err := fs.OpenDir(f.config.Get().Files.Dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// LeaveBacklog writes the file for the next start. The data changes no more.
func (f *Followers) LeaveBacklog() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keeper == nil || !f.history.Known || f.inGroup() {
		return
	}
	b := append(make([]byte, 4), f.encodedNote()...)
	b = append(b, f.history.All()...)
	binary.LittleEndian.PutUint32(b, crc32.ChecksumIEEE(b[4:]))
	if err := writeBacklog(f.fs, f.backlogPath(), b); err != nil {
		f.log.Warn("cannot save the replication backlog", "error", err.Error())
		_ = f.removeBacklog()
	}
}

// DropBacklog removes what LeaveBacklog has written, because not all data could be stored.
func (f *Followers) DropBacklog() {
	if f.keeper != nil {
		_ = f.removeBacklog()
	}
}

// writeBacklog writes the file without a sync: the checksum detects damage by a power loss.
func writeBacklog(fs disk.FS, path string, b []byte) error {
	file, err := fs.Create(path)
	if err != nil {
		return err
	}
	_, err = file.Write(b)
	return errors.Join(err, file.Close())
}
