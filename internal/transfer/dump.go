package transfer

import (
	"bufio"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/persist"
	"github.com/atomredis/atomredis/persist/disk"
)

// Storage stores the data of a server in its data directory. *persist.Storage is one.
type Storage interface {
	// Status returns the state of the storage, and of its checkpoints.
	Status() persist.Status
	// Save makes a checkpoint.
	Save() error
}

// Dump is the RDB file dbfilename in dir. SAVE, BGSAVE and SHUTDOWN SAVE write it, as backups of a Redis expect. A
// server with its data only in memory also reads it at start; a server with storage also makes a checkpoint with
// each save. A server inside a program writes the file only if the program has configured it. Any goroutine may call
// its methods.
type Dump struct {
	files    Files
	exporter *Exporter
	storage  Storage // nil if the data is in memory only
	use      bool    // there may be a file
	started  time.Time

	written atomic.Int64 // number of keys written to the current file

	mu     sync.Mutex // protects the following fields
	status persist.Status
	before time.Time // the result of LASTSAVE until the current save has ended
}

// NewDump returns a Dump that exporter writes, of a server that started at the given time. storage is nil if the
// data is in memory only; use means that there may be a file.
func NewDump(files Files, exporter *Exporter, storage Storage, use bool, started time.Time) *Dump {
	return &Dump{files: files, exporter: exporter, storage: storage, use: use, started: started}
}

// Used reports whether there may be a file.
func (d *Dump) Used() bool { return d.use }

// CanSave reports whether there is a file or a storage to save to.
func (d *Dump) CanSave() bool { return d.storage != nil || d.use }

// Status returns the state of the stored data, in the data directory or the file. Saved is the server's start time
// if there was no save.
func (d *Dump) Status() persist.Status {
	st := d.stored()
	if st.Saved.IsZero() {
		st.Saved = d.started
	}
	return st
}

// stored is Status without that replacement of Saved.
func (d *Dump) stored() persist.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	file := d.status
	if file.Checkpoint {
		file.Written = int(d.written.Load())
	}
	if d.storage == nil {
		return file
	}
	st := d.storage.Status()
	if file.Checkpoint {
		st.Saved, st.Began = d.before, file.Began
		if !st.Checkpoint {
			st.Checkpoint, st.Written, st.Total = true, file.Written, file.Total
		}
	}
	if file.LastErr != nil {
		st.LastErr = file.LastErr
	}
	return st
}

// Begin records a client's request for a save; it reports false if one is in progress. Save must follow.
func (d *Dump) Begin() bool {
	before := d.stored().Saved
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.status.Checkpoint {
		return false
	}
	d.before = before
	d.status.Checkpoint, d.status.Began, d.status.Total = true, d.exporter.clock().Now(), 0
	d.written.Store(0)
	return true
}

// Save writes the file, if there is one, and makes a checkpoint of stored data.
func (d *Dump) Save() error {
	var err error
	if d.use {
		err = d.save()
	}
	if d.storage != nil {
		err = errors.Join(err, d.storage.Save())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.status.Checkpoint = false
	return err
}

// save writes the file.
func (d *Dump) save() error {
	changes := d.exporter.source.Keyspace().Changes()
	began := time.Now()
	err := d.replace(d.files.Config.Get())
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.status.LastErr = err; err != nil {
		d.status.Failed++
		d.files.Log.Error("the RDB file cannot be written", "error", err.Error())
		return err
	}
	d.status.Saved, d.status.Took, d.status.Changes = d.status.Began, time.Since(began), changes
	d.status.Checkpoints++
	d.status.Failed = 0
	d.files.Log.Info("the RDB file has been written", "duration", d.status.Took.Round(time.Millisecond))
	return nil
}

// begun stores how many keys are to be written.
func (d *Dump) begun(s *engine.Snapshot) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, db := range s.Stats {
		d.status.Total += db.Keys
	}
}

// replace writes a temporary file and renames it once it is complete and on the disk.
func (d *Dump) replace(set *config.Settings) (err error) {
	fs := d.files.FS
	if err := fs.MkdirAll(set.Files.Dir, 0o700); err != nil {
		return err
	}
	name := fs.PathJoin(set.Files.Dir, set.Files.DBFilename)
	temporary := name + ".tmp"
	file, err := fs.Create(temporary)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = fs.Remove(temporary)
		}
	}()
	w := bufio.NewWriterSize(file, 1<<20)
	c := Copy{Content: All, Wait: true, Begun: d.begun, Wrote: func() { d.written.Add(1) }}
	if err = d.exporter.Copy(context.Background(), w, c); err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err = fs.Rename(temporary, name); err != nil {
		return err
	}
	return disk.SyncDir(fs, set.Files.Dir)
}
