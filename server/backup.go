package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	servercommands "github.com/atomredis/atomredis/commands/server"
	"github.com/atomredis/atomredis/config"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/background"
	"github.com/atomredis/atomredis/replication"
	"github.com/atomredis/atomredis/transfer"
)

// What BACKUP makes: an append-only file in parts, as a Redis has it, in a directory of its own. The first part is an RDB
// file of one moment; the second has the commands since, as followers get them, until the backup is sealed.

const manifestTail = ".manifest"

// backups is what the server has for it. There is one backup at a time.
type backups struct {
	running sync.WaitGroup

	mu     sync.Mutex // protects what follows
	told   servercommands.Backup
	made   *backup // that is being made; nil if none is
	dir    string  // where the last one is
	names  []string
	timer  engine.Timer // cleans a sealed one up
	closed bool
}

// backup is one that is being made, by a goroutine of its own.
type backup struct {
	srv    *Server
	dir    string
	parts  [2]string // the names of its files
	name   string    // of the append-only file
	ctx    context.Context
	cancel context.CancelCauseFunc
	tail   *tail
	seal   chan struct{} // closed when it gets no more commands
	ended  chan struct{} // closed when it is sealed or has failed
}

// tail takes commands as followers get them.
type tail struct {
	limit  int64 // of pending, in bytes; 0 is none
	cancel context.CancelCauseFunc
	more   chan struct{}

	changes replication.Stream // protected by followers.mu

	mu      sync.Mutex // protects what follows
	pending []byte
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

// add takes a part of the stream. It is called under the locks of the keys that have changed.
func (t *tail) add(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending = append(t.pending, b...); t.limit > 0 && int64(len(t.pending)) > t.limit {
		t.pending = nil
		t.cancel(errBackupSlow)
	}
	select {
	case t.more <- struct{}{}:
	default:
	}
}

// take returns what has come since the last time.
func (t *tail) take() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.pending
	t.pending = nil
	return b
}

// Backup implements servercommands.Backuper.
func (srv *Server) Backup() servercommands.Backup {
	b := &srv.backups
	b.mu.Lock()
	defer b.mu.Unlock()
	told := b.told
	told.Files = slices.Clone(told.Files)
	return told
}

// StartBackup implements servercommands.Backuper.
func (srv *Server) StartBackup() error {
	b, set := &srv.backups, srv.config.Get()
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return errBackupEnd
	case b.made != nil:
		return errBackupMade
	case b.told.State == servercommands.BackupSealed:
		return errBackupSealed
	}
	dir, err := srv.backupDir(set)
	if err != nil {
		return err
	}
	m := &backup{srv: srv, dir: dir, name: set.AppendFilename, seal: make(chan struct{}), ended: make(chan struct{}),
		parts: [2]string{set.AppendFilename + ".1.base.rdb", set.AppendFilename + ".1.incr.aof"}}
	m.ctx, m.cancel = context.WithCancelCause(context.Background())
	m.tail = &tail{limit: set.OutputLimits.Replica.Hard, cancel: m.cancel, more: make(chan struct{}, 1)}
	b.made, b.dir, b.names = m, dir, append(m.parts[:], m.name+manifestTail)
	b.told = servercommands.Backup{State: servercommands.BackupSnapshotting, Began: srv.ks.Clock().Now()}
	b.running.Add(1)
	go func() {
		defer b.running.Done()
		background.Work()
		err := m.make()
		b.end(m, err)
	}()
	return nil
}

// backupDir returns the directory of a new backup, which is there and empty.
func (srv *Server) backupDir(set *config.Settings) (string, error) {
	if !srv.dump.CanSave() {
		return "", errors.New("the data is in memory only, and the server was given no directory for files: set dir")
	}
	dir := srv.fs.PathJoin(set.Dir, set.BackupDirname)
	if srv.ownFiles {
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return "", err
		}
		dir = absolute
	}
	if err := srv.fs.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	names, err := srv.fs.List(dir)
	if err == nil && len(names) > 0 {
		err = fmt.Errorf("the directory %s is not empty", dir)
	}
	return dir, err
}

// end notes how a backup has ended. What of one has been written that has failed is removed.
func (b *backups) end(m *backup, err error) {
	if err != nil {
		m.srv.log.Error("the backup has failed", "error", err.Error())
		err = errors.Join(err, m.srv.removeFiles(m.dir, append(m.parts[:], m.name+manifestTail)))
	} else {
		m.srv.log.Info("the backup is sealed", "dir", m.dir)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made = nil
	if err != nil {
		b.told.State, b.told.Problem, b.told.Files = servercommands.BackupFailed, err.Error(), nil
	} else {
		b.told.State, b.told.Sealed = servercommands.BackupSealed, m.srv.ks.Clock().Now()
		if keep := m.srv.config.Get().BackupSealedTTL; keep > 0 && !b.closed {
			b.timer = m.srv.ks.Clock().AfterFunc(time.Duration(keep)*time.Second, func() {
				if err := m.srv.CleanBackup(); err != nil {
					m.srv.log.Error("the backup cannot be removed", "error", err.Error())
				}
			})
		}
	}
	close(m.ended)
}

// SealBackup implements servercommands.Backuper.
func (srv *Server) SealBackup() (wait func() error, err error) {
	b := &srv.backups
	b.mu.Lock()
	defer b.mu.Unlock()
	switch m := b.made; {
	case m == nil:
		return nil, errBackupNone
	case b.told.State != servercommands.BackupIncrementing:
		return nil, errBackupEarly
	case !srv.followed.endTail(m.tail):
		return nil, errBackupNone // somebody else seals it
	default:
		close(m.seal)
		return func() error { return b.wait(m) }, nil
	}
}

// wait returns when a backup is sealed, or with the error why it is not.
func (b *backups) wait(m *backup) error {
	<-m.ended
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.told.Problem != "" {
		return errors.New(b.told.Problem)
	}
	return nil
}

// AbortBackup implements servercommands.Backuper.
func (srv *Server) AbortBackup() (wait func() error, err error) {
	b := &srv.backups
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

// CleanBackup implements servercommands.Backuper.
func (srv *Server) CleanBackup() error {
	b := &srv.backups
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.told.State; s != servercommands.BackupSealed && s != servercommands.BackupFailed {
		return errBackupClean
	}
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	if err := srv.removeFiles(b.dir, b.names); err != nil {
		return err
	}
	b.told = servercommands.Backup{}
	return nil
}

// removeFiles removes those of the files that are there.
func (srv *Server) removeFiles(dir string, names []string) (err error) {
	there, err := srv.fs.List(dir)
	for _, name := range names {
		if slices.Contains(there, name) {
			err = errors.Join(err, srv.fs.Remove(srv.fs.PathJoin(dir, name)))
		}
	}
	return err
}

// close ends a backup that is being made.
func (b *backups) close() {
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
		m.srv.endTail(m.tail)
		if cause := context.Cause(m.ctx); cause != nil {
			err = cause
		}
		m.cancel(nil)
	}()
	if err := m.write(m.parts[0], m.base); err != nil {
		return err
	}
	if err := m.pinned(servercommands.BackupIncrementing, m.parts[0]); err != nil {
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
	return m.pinned(servercommands.BackupIncrementing, m.parts[1], m.name+manifestTail)
}

// pinned notes that files are complete, once they and their names are on the disk.
func (m *backup) pinned(state string, names ...string) error {
	dir, err := m.srv.fs.OpenDir(m.dir)
	if err != nil {
		return err
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return err
	}
	b := &m.srv.backups
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told.State = state
	for _, name := range names {
		b.told.Files = append(b.told.Files, m.srv.fs.PathJoin(m.dir, name))
	}
	return nil
}

// write makes a file of what content writes.
func (m *backup) write(name string, content func(w *bufio.Writer) error) error {
	file, err := m.srv.fs.Create(m.srv.fs.PathJoin(m.dir, name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(writerFunc(func(b []byte) (int, error) {
		if err := context.Cause(m.ctx); err != nil {
			return 0, err
		}
		return file.Write(b)
	}), 1<<18)
	if err = content(w); err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// base writes the first part. The second begins at the moment that it shows.
func (m *backup) base(w *bufio.Writer) error {
	return m.srv.exporter.Copy(m.ctx, w, transfer.Copy{Content: transfer.All, Wait: true,
		At: func(g *engine.Guard) { m.srv.followed.beginTail(g, m.tail) }})
}

// increments writes commands as they come.
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

// beginTail has a backup get the stream from now on. g is a guard over everything.
func (f *followers) beginTail(g *engine.Guard, t *tail) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tail = t
	f.attach(g)
}

// endTail ends that, and reports whether the backup got the stream.
func (f *followers) endTail(t *tail) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tail != t {
		return false
	}
	f.tail = nil
	return true
}

// endTail is that of the followers, and has no stream made any more if nobody else gets it.
func (srv *Server) endTail(t *tail) {
	f := &srv.followed
	f.endTail(t)
	_ = srv.underAll(func(g *engine.Guard) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.attach(g)
	})
}
