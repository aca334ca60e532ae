package server

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/atomredis/atomredis/internal/archive"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/eviction"
	"github.com/atomredis/atomredis/internal/files"
	"github.com/atomredis/atomredis/internal/transfer"
	"github.com/atomredis/atomredis/persist"
	"github.com/atomredis/atomredis/persist/journal"
)

// This file connects the server with package persist: it opens the data directory, repeats the journal, delays
// replies until the changes that they show are durable, and refuses commands that are not possible at the moment.

const errNoReplicas command.Error = "NOREPLICAS Not enough good replicas to write."

// storageState is the server's state of its storage.
type storageState struct {
	*persist.Storage // nil if the data is in memory only

	importFile string         // Options.Import
	restore    archive.Source // Options.Restore
	imported   bool           // something was imported at start
	stopped    bool           // Options.Stopped

	mu       sync.Mutex  // serializes the calls of restrict
	replayed atomic.Bool // the journal has been read

	waiting struct {
		sync.Mutex
		list []durabilityWaiter
	}
}

// durabilityWaiter waits until the journal is durable up to a position.
type durabilityWaiter struct {
	lsn    uint64
	finish func()
}

// followStorage applies changes of the settings to the storage. The data directory, and whether there is a journal,
// cannot change.
func (srv *Server) followStorage() {
	srv.config.Apply(func(old, set *config.Settings) (undo func() error, err error) {
		return nil, errors.New("the journal cannot be switched on or off while the server runs")
	}, "appendonly")
	srv.config.Apply(func(old, set *config.Settings) (undo func() error, err error) {
		return nil, srv.checkDir(set)
	}, "dir")
	st := srv.storage.Storage
	if st == nil {
		return
	}
	srv.config.Follow(func(set *config.Settings) { st.SetPolicy(set.Persistence.AppendFsync) }, "appendfsync")
	srv.config.Follow(func(set *config.Settings) { st.SetSavePoints(set.Persistence.Save) }, "save")
	srv.config.Follow(srv.retain, "changes-retention", "changes-retention-time", "archive", "archive-journal-limit")
	srv.config.Follow(func(set *config.Settings) { st.SetCheckpointSize(eviction.CheckpointSize(set)) },
		"checkpoint-size", "maxmemory", "maxmemory-policy", "tier")
	srv.config.Follow(func(set *config.Settings) {
		st.SetKeyDelays(set.Persistence.KeyLoadDelay, set.Persistence.KeySaveDelay)
	},
		"key-load-delay", "rdb-key-save-delay")
}

// retention returns what the journal keeps for readers of changes.
func retention(set *config.Settings) journal.Retention {
	return journal.Retention{Bytes: int64(set.Persistence.ChangesRetention), Age: set.Persistence.ChangesRetentionTime.Milliseconds()}
}

// retain tells the journal what to keep for readers of changes and for the archive.
func (srv *Server) retain(set *config.Settings) {
	srv.storage.SetRetention(srv.archived.retention(set))
}

// records returns the journal for readers, nil if there is none or it is still being read.
func (srv *Server) records() journal.Journal {
	if st := srv.storage.Storage; st != nil && srv.storage.replayed.Load() {
		return st.Records()
	}
	return nil
}

// checkDir returns an error if dir cannot change. Stored data is not moved; without any, dir is only the directory
// of RDB files.
func (srv *Server) checkDir(set *config.Settings) error {
	if srv.storage.Storage != nil {
		return errors.New("the data stays where it is while the server runs")
	}
	info, err := os.Stat(set.Files.Dir)
	if err != nil {
		return errors.New("Changing directory: " + files.Reason(err))
	}
	if !info.IsDir() {
		return errors.New("Changing directory: Not a directory")
	}
	return nil
}

// openStorage opens the data directory, if the configuration has one.
func (srv *Server) openStorage(set *config.Settings) error {
	if !set.Durable() {
		return nil
	}
	var err error
	srv.sessions.Restricted.Store(true)
	o := persist.Options{
		FS: srv.fs, Dir: set.Files.Dir, NoJournal: !set.Persistence.AppendOnly, Policy: set.Persistence.AppendFsync,
		CheckpointSize: eviction.CheckpointSize(set),
		SavePoints:     set.Persistence.Save, Log: srv.log, Notify: srv.storageChanged, Waited: srv.sessions.Waited,
		Progress: srv.progress, Retention: srv.archived.retention(set),
		Extra:   srv.extra,
		Restore: srv.restoreExtra,

		Recovered: srv.followed.Recovered,
		Import:    srv.importStored(set),
	}
	if srv.storage.stopped {
		o.Member = srv.readMember
	} else if set.Raft.Addr != "" {
		o.Group = srv.openGroup
	}
	srv.storage.Storage, err = persist.Open(o)
	if err == nil {
		srv.storage.SetKeyDelays(set.Persistence.KeyLoadDelay, set.Persistence.KeySaveDelay)
	}
	return err
}

// importStored returns the function for persist.Options.Import. It reads the file that Options.Import names, or the
// files of a Redis in the data directory. importStored returns nil if there is nothing to read.
func (srv *Server) importStored(set *config.Settings) func() error {
	file := srv.storage.importFile
	if srv.storage.restore != nil {
		return srv.restoreArchived
	}
	if file == "" {
		var err error
		if file, err = transfer.Find(srv.fs, set); err != nil {
			return func() error { return fmt.Errorf("what a Redis has stored cannot be read: %w", err) }
		}
		if file == "" {
			return nil
		}
	}
	return func() error {
		err := srv.importer.Import(file)
		srv.storage.imported = err == nil
		return err
	}
}

// restoreFunctions replaces the functions by those that are stored with the keys.
func (srv *Server) restoreFunctions(stored []byte) error {
	if len(stored) > 0 {
		return srv.scripts.Recover(stored)
	}
	if e := srv.scripts.Restore(nil, true, false); e != "" {
		return errors.New(string(e))
	}
	return nil
}

// closeStorage closes the data directory, after a last checkpoint if save is set.
func (srv *Server) closeStorage(save bool) error {
	if srv.storage.Storage == nil {
		return nil
	}
	return srv.storage.Close(save)
}

// abandonStorage closes the data directory, and removes it if it was made for this server.
func (srv *Server) abandonStorage() error {
	if srv.storage.Storage == nil {
		return nil
	}
	return srv.storage.Abandon()
}

// recoverData fills the keyspace with the stored data.
func (srv *Server) recoverData() error {
	if srv.storage.Storage == nil {
		return nil
	}
	if err := srv.storage.Recover(srv.ks, srv.Repeat(command.FromJournal)); err != nil {
		return err
	}
	if (srv.storage.importFile != "" || srv.storage.restore != nil) && !srv.storage.imported {
		return ErrNotEmpty
	}
	srv.storage.replayed.Store(true)
	srv.storageChanged()
	srv.changes.Start()
	srv.archived.Start()
	return nil
}

// storageChanged is called when the journal has become durable up to a later position, and when the storage has
// failed or recovered. Any goroutine may call it.
func (srv *Server) storageChanged() {
	st := &srv.storage
	srv.restrict()
	for _, c := range srv.carriers {
		c.Recheck()
	}

	srv.replica.JournalSynced()
	srv.changes.Woken()
	durable := st.Durable()
	w := &st.waiting
	w.Lock()
	var done []durabilityWaiter
	w.list = slices.DeleteFunc(w.list, func(a durabilityWaiter) bool {
		if a.lsn <= durable {
			done = append(done, a)
		}
		return a.lsn <= durable
	})
	w.Unlock()
	for _, a := range done {
		a.finish()
	}
}

// restrict decides whether commands have to check the state of the storage and of the replica.
func (srv *Server) restrict() {
	st := &srv.storage
	st.mu.Lock()
	defer st.mu.Unlock()
	srv.sessions.Restricted.Store(srv.followed.Scarce() || srv.follows() || st.Storage != nil &&
		(!st.replayed.Load() || st.Loading() || st.Err() != nil))
}

// await calls finish, now or later, once the journal is durable up to lsn.
func (st *storageState) await(lsn uint64, finish func()) {
	w := &st.waiting
	w.Lock()
	now := lsn <= st.Durable() // it may have become so since the caller's check
	if !now {
		w.list = append(w.list, durabilityWaiter{lsn, finish})
	}
	w.Unlock()
	if now {
		finish()
	}
}

// Restriction implements session.Host.
func (srv *Server) Restriction(cmd *command.Command, flags command.Flag, writes bool) command.Error {
	st := &srv.storage
	e := srv.replicaRestriction(flags, writes, srv.config.Get())
	if e == "" {
		e = srv.group.restriction(flags, writes, srv.config.Get())
	}
	if e == "" && writes && srv.followed.Scarce() && !srv.follows() && srv.replayed() {
		e = errNoReplicas
	}
	if e != "" || st.Storage == nil {
		return e
	}
	if !srv.replayed() {
		if flags&command.Loading == 0 {
			return command.ErrLoading
		}
		return ""
	}
	if flags&command.AllKeys != 0 && st.Loading() {
		return command.ErrLoading
	}
	if writes || cmd.TellsOfFailure {
		return srv.writeRestriction()
	}
	return ""
}

// replicaRestriction returns the error that a replica has for a command with these flags, "" if it may run.
func (srv *Server) replicaRestriction(flags command.Flag, writes bool, set *config.Settings) command.Error {
	switch {
	case !srv.replica.Following():
		return ""
	case writes && (set.Replication.ReadOnly || flags&command.Blocking != 0):
		return command.ErrReadOnly // a blocked command would change data once the master's commands serve it
	case srv.replica.Loading() && flags&command.Loading == 0:
		return command.ErrLoading
	case !set.Replication.ServeStaleData && flags&command.Stale == 0 && srv.replica.Down():
		return command.ErrMasterDown
	}
	return ""
}

// replayed reports whether the journal has been read, so that the data is complete.
func (srv *Server) replayed() bool {
	if !srv.sessions.Restricted.Load() || srv.storage.Storage == nil {
		return true
	}
	return srv.storage.replayed.Load()
}

// writeRestriction returns the error for commands that change something while that cannot be made durable.
func (srv *Server) writeRestriction() command.Error {
	f := srv.storageFailure()
	switch {
	case f == nil:
		return ""
	case f.Journal:
		return command.ErrMisconfAOF + command.Error(files.Reason(f.Err))
	}
	return command.ErrMisconfRDB
}

// storageFailure returns the failure that forbids changes at the moment, nil if there is none.
func (srv *Server) storageFailure() *persist.Failure {
	f := srv.storage.Err()
	if f != nil && !f.Journal && !srv.config.Get().Persistence.StopWritesOnBgsaveError {
		return nil
	}
	return f
}

// Repeat returns a function that repeats records of a journal, each at its time, as commands from an origin that is
// part of command.Accepted. One goroutine at a time may call it.
func (srv *Server) Repeat(from command.Origin) func(now int64, commands []byte) error {
	return srv.sessions.NewReplayer(from).Apply
}

// HasJournal implements replication.Host.
func (srv *Server) HasJournal() bool {
	st := srv.storage.Storage
	return st != nil && st.HasJournal()
}

// Durable implements replication.Host. In a group each reply waits until what it shows is committed.
func (srv *Server) Durable() bool {
	return srv.InGroup() || srv.storage.Durable() >= srv.storage.Appended()
}

// AwaitDurable implements replication.Host.
func (srv *Server) AwaitDurable(finish func()) { srv.storage.await(srv.storage.Appended(), finish) }
