package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/atomredis/atomredis/config"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/persist"
	"github.com/atomredis/atomredis/transfer"
)

// The RDB file dbfilename in dir. SAVE, BGSAVE and SHUTDOWN SAVE write it, as backups of a Redis expect. A server that
// keeps its data in memory also reads it at start; one that stores them makes a checkpoint too. A program that has a
// server inside gets no file that it has not asked for.

// dumpFile is what the server has for it.
type dumpFile struct {
	use bool // there may be one

	written atomic.Int64 // keys of the file that is being written

	mu     sync.Mutex // protects what follows
	status persist.Status
	before time.Time // what LASTSAVE is until all that was asked for is there
}

// storageStatus tells of what is stored, in data directory or file.
func (srv *Server) storageStatus() persist.Status {
	f := &srv.dumpFile
	f.mu.Lock()
	defer f.mu.Unlock()
	file := f.status
	if file.Checkpoint {
		file.Written = int(f.written.Load())
	}
	stored := srv.storage.Storage
	if stored == nil {
		return file
	}
	st := stored.Status()
	if file.Checkpoint {
		st.Saved, st.Began = f.before, file.Began
		if !st.Checkpoint {
			st.Checkpoint, st.Written, st.Total = true, file.Written, file.Total
		}
	}
	if file.LastErr != nil {
		st.LastErr = file.LastErr
	}
	return st
}

// BeginSave implements servercommands.Saver.
func (srv *Server) BeginSave() bool {
	before := srv.storageStatus().Saved
	f := &srv.dumpFile
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.status.Checkpoint {
		return false
	}
	f.before = before
	f.status.Checkpoint, f.status.Began, f.status.Total = true, srv.ks.Clock().Now(), 0
	f.written.Store(0)
	return true
}

// Save implements servercommands.Saver. It may run in any goroutine.
func (srv *Server) Save() error {
	var err error
	if srv.dumpFile.use {
		err = srv.saveFile()
	}
	if st := srv.storage.Storage; st != nil {
		err = errors.Join(err, st.Save())
	}
	f := &srv.dumpFile
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.Checkpoint = false
	return err
}

// saveFile writes the file.
func (srv *Server) saveFile() error {
	changes := srv.ks.Changes()
	began := time.Now()
	err := srv.replaceFile(srv.config.Get())
	f := &srv.dumpFile
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.status.LastErr = err; err != nil {
		f.status.Failed++
		srv.log.Error("the RDB file cannot be written", "error", err.Error())
		return err
	}
	f.status.Saved, f.status.Took, f.status.Changes = f.status.Began, time.Since(began), changes
	f.status.Checkpoints++
	f.status.Failed = 0
	srv.log.Info("the RDB file has been written", "duration", f.status.Took.Round(time.Millisecond))
	return nil
}

// begun notes how many keys there are to be written.
func (f *dumpFile) begun(s *engine.Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, db := range s.Stats {
		f.status.Total += db.Keys
	}
}

// replaceFile writes a file that takes the place of the one of that name when it is whole and on the disk.
func (srv *Server) replaceFile(set *config.Settings) (err error) {
	if err := srv.fs.MkdirAll(set.Dir, 0o700); err != nil {
		return err
	}
	name := srv.fs.PathJoin(set.Dir, set.DBFilename)
	temporary := name + ".tmp"
	file, err := srv.fs.Create(temporary, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = srv.fs.Remove(temporary)
		}
	}()
	w := bufio.NewWriterSize(file, 1<<20)
	how := transfer.Copy{Content: transfer.All, Wait: true, Begun: srv.dumpFile.begun, Wrote: func() { srv.dumpFile.written.Add(1) }}
	if err = srv.exporter.Copy(context.Background(), w, how); err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err = srv.fs.Rename(temporary, name); err != nil {
		return err
	}
	dir, err := srv.fs.OpenDir(set.Dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// loadFile reads what there is at start: what a server has stored in the directory, or what a Redis has.
func (srv *Server) loadFile(set *config.Settings) error {
	if !srv.dumpFile.use || set.Durable() {
		return nil
	}
	if persist.Exists(srv.fs, set.Dir) {
		srv.log.Warn("there are data in the directory, which are read; what changes from now on is in memory only", "dir",
			set.Dir)
		return srv.importer.ImportFrom(set.Dir, srv.openStored)
	}
	if load := srv.importStored(set); load != nil {
		return load()
	}
	return nil
}

// storedData is what a server has stored in the directory, as an RDB file.
type storedData struct {
	*io.PipeReader
	srv *Server
}

// openStored has another server read what is stored in the directory.
func (srv *Server) openStored() (io.ReadCloser, error) {
	next := *config.NewConfig().Get()
	set := srv.config.Get()
	next.Dir, next.Databases, next.Port, next.AppendOnly = set.Dir, set.Databases, 0, true
	next.Hash, next.Set, next.ZSet, next.List, next.Stream = set.Hash, set.Set, set.ZSet, set.List, set.Stream
	stored, err := New(config.Of(next), srv.log, Options{FS: srv.fs, Goroutines: true, Clock: srv.ks.Clock()})
	if err != nil {
		return nil, err
	}
	if err := stored.Start(); err != nil {
		return nil, err
	}
	out, in := io.Pipe()
	go func() { in.CloseWithError(stored.WriteRDB(in)) }()
	return storedData{out, stored}, nil
}

// Close implements io.Closer.
func (d storedData) Close() error {
	d.PipeReader.Close()
	return d.srv.close(false)
}

// CanSave implements servercommands.Saver.
func (srv *Server) CanSave() bool { return srv.storage.Storage != nil || srv.dumpFile.use }

// LastSave implements servercommands.Saver.
func (srv *Server) LastSave() time.Time { return srv.lastSave(srv.storageStatus()) }

// lastSave returns when the last save was taken, or when the server started if there never was one.
func (srv *Server) lastSave(st persist.Status) time.Time {
	if st.Saved.IsZero() {
		return srv.started
	}
	return st.Saved
}
