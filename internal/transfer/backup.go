package transfer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/background"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/persist/disk"
)

// Backups makes the backups of BACKUP: append-only files in parts, as a Redis has them, each in a directory of its
// own. The first part is an RDB file of one moment; the second has the later commands, as followers get them, until
// the backup is sealed. There is one backup at a time. Any goroutine may call the methods.
type Backups struct {
	files    Files
	exporter *Exporter
	dump     *Dump
	stream   Stream

	running sync.WaitGroup

	mu     sync.Mutex // protects the following fields
	status Backup
	made   *backup // the backup being made; nil if there is none
	dir    string  // directory of the last backup
	names  []string
	timer  engine.Timer // removes a sealed backup
	closed bool
}

// Backup is the visible state of a backup.
type Backup struct {
	State         string // "" if there is none
	Problem       string // the reason of a failure
	Began, Sealed time.Time
	Files         []string // paths of the complete files
}

// The states of a backup.
const (
	BackupSnapshotting = "snapshotting"
	BackupIncrementing = "incrementing"
	BackupSealed       = "sealed"
	BackupFailed       = "failed"
)

// backup is a backup being made, which a goroutine of its own writes.
type backup struct {
	of     *Backups
	dir    string
	parts  [2]string // the names of its files
	name   string    // of the append-only file
	ctx    context.Context
	cancel context.CancelCauseFunc
	tail   *Tail
	seal   chan struct{} // closed when it gets no more commands
	ended  chan struct{} // closed when it is sealed or has failed
}

var (
	errBackupMade    = errors.New("a backup is in progress already")
	errBackupSealed  = errors.New("there is a sealed backup: BACKUP CLEANUP removes it")
	errBackupNone    = errors.New("no backup is in progress")
	errBackupEarly   = errors.New("the backup has not its first part yet")
	errBackupClean   = errors.New("there is no backup that has been sealed or has failed")
	errBackupAborted = errors.New("aborted")
	errBackupSlow    = errors.New("the disk is slower than the commands that change data")
	errBackupReplica = errors.New("the server follows another one now")
	errBackupEnd     = errors.New("the server ends")
)

// NewBackups returns the Backups of a server, made of the files of exporter and the commands of stream. They need a
// directory, as dump does.
func NewBackups(files Files, exporter *Exporter, dump *Dump, stream Stream) *Backups {
	return &Backups{files: files, exporter: exporter, dump: dump, stream: stream}
}

// Status returns the state of the backup.
func (b *Backups) Status() Backup {
	b.mu.Lock()
	defer b.mu.Unlock()
	status := b.status
	status.Files = slices.Clone(status.Files)
	return status
}

// Start begins a backup.
func (b *Backups) Start() error {
	set := b.files.Config.Get()
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return errBackupEnd
	case b.made != nil:
		return errBackupMade
	case b.status.State == BackupSealed:
		return errBackupSealed
	}
	dir, err := b.newDir(set)
	if err != nil {
		return err
	}
	m := &backup{of: b, dir: dir, name: set.Files.AppendFilename, seal: make(chan struct{}), ended: make(chan struct{}),
		parts: [2]string{set.Files.AppendFilename + ".1.base.rdb", set.Files.AppendFilename + ".1.incr.aof"}}
	m.ctx, m.cancel = context.WithCancelCause(context.Background())
	m.tail = newTail(set.Clients.OutputLimits.Replica.Hard, m.cancel)
	b.made, b.dir, b.names = m, dir, append(m.parts[:], m.name+manifestTail)
	b.status = Backup{State: BackupSnapshotting, Began: b.exporter.clock().Now()}
	b.running.Add(1)
	go func() {
		defer b.running.Done()
		background.Work()
		err := m.make()
		b.end(m, err)
	}()
	return nil
}

// newDir returns the directory of a new backup, which exists and is empty.
func (b *Backups) newDir(set *config.Settings) (string, error) {
	if !b.dump.CanSave() {
		return "", errors.New("the data is in memory only, and the server was given no directory for files: set dir")
	}
	fs := b.files.FS
	dir := fs.PathJoin(set.Files.Dir, set.Files.BackupDirname)
	if b.files.System {
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return "", err
		}
		dir = absolute
	}
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	names, err := fs.List(dir)
	if err == nil && len(names) > 0 {
		err = fmt.Errorf("the directory %s is not empty", dir)
	}
	return dir, err
}

// end records the result of a backup, and removes the files of a failed one.
func (b *Backups) end(m *backup, err error) {
	if err != nil {
		b.files.Log.Error("the backup has failed", "error", err.Error())
		err = errors.Join(err, b.removeFiles(m.dir, append(m.parts[:], m.name+manifestTail)))
	} else {
		b.files.Log.Info("the backup is sealed", "dir", m.dir)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made = nil
	if err != nil {
		b.status.State, b.status.Problem, b.status.Files = BackupFailed, err.Error(), nil
	} else {
		b.status.State, b.status.Sealed = BackupSealed, b.exporter.clock().Now()
		if keep := b.files.Config.Get().Files.BackupSealedTTL; keep > 0 && !b.closed {
			b.timer = b.exporter.clock().AfterFunc(time.Duration(keep)*time.Second, func() {
				if err := b.Clean(); err != nil {
					b.files.Log.Error("the backup cannot be removed", "error", err.Error())
				}
			})
		}
	}
	close(m.ended)
}

// Seal completes the backup being made with all commands until now. wait returns when it is on the disk.
func (b *Backups) Seal() (wait func() error, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch m := b.made; {
	case m == nil:
		return nil, errBackupNone
	case b.status.State != BackupIncrementing:
		return nil, errBackupEarly
	case !b.stream.CutTail(m.tail):
		return nil, errBackupNone // another client seals it
	default:
		close(m.seal)
		return func() error { return b.wait(m) }, nil
	}
}

// wait returns when a backup is sealed, or with an error if it failed.
func (b *Backups) wait(m *backup) error {
	<-m.ended
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.status.Problem != "" {
		return errors.New(b.status.Problem)
	}
	return nil
}

// Abort gives up the backup being made. wait returns when its files are removed.
func (b *Backups) Abort() (wait func() error, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.made
	if m == nil {
		return nil, errBackupNone
	}
	m.cancel(errBackupAborted)
	return func() error {
		<-m.ended
		return nil
	}, nil
}

// Clean removes a backup that is sealed or has failed.
func (b *Backups) Clean() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.status.State; s != BackupSealed && s != BackupFailed {
		return errBackupClean
	}
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	if err := b.removeFiles(b.dir, b.names); err != nil {
		return err
	}
	b.status = Backup{}
	return nil
}

// removeFiles removes those of the files that exist.
func (b *Backups) removeFiles(dir string, names []string) (err error) {
	fs := b.files.FS
	there, err := fs.List(dir)
	for _, name := range names {
		if slices.Contains(there, name) {
			err = errors.Join(err, fs.Remove(fs.PathJoin(dir, name)))
		}
	}
	return err
}

// Close ends a backup being made, and prevents new ones.
func (b *Backups) Close() {
	b.mu.Lock()
	b.closed = true
	if b.made != nil {
		b.made.cancel(errBackupEnd)
	}
	if b.timer != nil {
		b.timer.Stop()
	}
	b.mu.Unlock()
	b.running.Wait()
}

// make writes a backup until it is sealed.
func (m *backup) make() (err error) {
	defer func() {
		m.of.stream.EndTail(m.tail)
		if cause := context.Cause(m.ctx); cause != nil {
			err = cause
		}
		m.cancel(nil)
	}()
	if err := m.write(m.parts[0], m.base); err != nil {
		return err
	}
	if err := m.pinned(BackupIncrementing, m.parts[0]); err != nil {
		return err
	}
	if err := m.write(m.parts[1], m.increments); err != nil {
		return err
	}
	manifest := fmt.Sprintf("file %s seq 1 type b\nfile %s seq 1 type i\n", m.parts[0], m.parts[1])
	if err := m.write(m.name+manifestTail, func(w *bufio.Writer) error {
		_, err := w.WriteString(manifest)
		return err
	}); err != nil {
		return err
	}
	return m.pinned(BackupIncrementing, m.parts[1], m.name+manifestTail)
}

// pinned makes the names of complete files durable, and adds the files to the status.
func (m *backup) pinned(state string, names ...string) error {
	if err := disk.SyncDir(m.of.files.FS, m.dir); err != nil {
		return err
	}
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	m.of.status.State = state
	for _, name := range names {
		m.of.status.Files = append(m.of.status.Files, m.of.files.FS.PathJoin(m.dir, name))
	}
	return nil
}

// write makes a file with the output of content.
func (m *backup) write(name string, content func(w *bufio.Writer) error) error {
	file, err := m.of.files.FS.Create(m.of.files.FS.PathJoin(m.dir, name))
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(contextWriter{m.ctx, file}, 1<<18)
	if err = content(w); err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// base writes the first part. The second begins at the moment of the first part's data.
func (m *backup) base(w *bufio.Writer) error {
	return m.of.exporter.Copy(m.ctx, w, Copy{Content: All, Wait: true,
		At: func(g *engine.Guard) { m.of.stream.BeginTail(g, m.tail) }})
}

// increments writes commands as they arrive.
func (m *backup) increments(w *bufio.Writer) error {
	for {
		sealed := false
		select {
		case <-m.seal:
			sealed = true
		default:
		}
		if _, err := w.Write(m.tail.take()); err != nil || sealed {
			return err
		}
		if err := w.Flush(); err != nil {
			return err
		}
		select {
		case <-m.tail.more:
		case <-m.seal:
		case <-m.ctx.Done():
			return context.Cause(m.ctx)
		}
	}
}
