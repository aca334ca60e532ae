package server

import (
	"errors"
	"sync/atomic"

	"github.com/atomredis/atomredis/internal/archive"
	"github.com/atomredis/atomredis/internal/command"
	servercommands "github.com/atomredis/atomredis/internal/commands/server"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/persist/journal"
)

// This file connects the server with its archive (package internal/archive).

// archived is the archive's part of the server.
type archived struct {
	archive.Archiver
	from atomic.Uint64 // LSN from which on the archive needs the journal
}

var errArchiveJournal = errors.New("archive needs a journal: a data directory with appendonly yes")

// checkArchive returns an error if a server with these settings cannot have the archive that they name.
func checkArchive(set *config.Settings) error {
	switch {
	case set.Persistence.Archive == "":
		return nil
	case !set.Persistence.AppendOnly:
		return errArchiveJournal
	}
	return archive.Check(set.Persistence.Archive)
}

// startArchive makes the archiver, which begins once the data has been read.
func (srv *Server) startArchive() {
	srv.archived.Archiver = archive.New(archive.Options{
		Settings: func() archive.Settings {
			set := &srv.config.Get().Persistence
			return archive.Settings{URL: set.Archive, Interval: set.ArchiveInterval, BaseInterval: set.ArchiveBaseInterval,
				Retention: set.ArchiveRetention}
		},
		Clock: srv.ks.Clock(), FS: srv.fs, Log: srv.log, Records: srv.records, Base: srv.exporter.RDBAt,
		Group: srv.InGroup, Leads: func() bool { return !srv.group.following.Load() }, Lazy: srv.lazyJournal,
		Witness: srv.config.Get().Raft.Witness,
		Keep: func(lsn uint64) {
			srv.archived.from.Store(lsn)
			srv.retain(srv.config.Get())
		}})
}

// lazyJournal reports whether nobody syncs the journal for long.
func (srv *Server) lazyJournal() bool {
	return !srv.InGroup() && srv.config.Get().Persistence.AppendFsync == journal.No
}

// followArchive applies changes of the settings to the archiver.
func (srv *Server) followArchive() {
	srv.config.Apply(func(_, set *config.Settings) (undo func() error, err error) {
		if set.Persistence.Archive != "" && !srv.HasJournal() {
			return nil, errArchiveJournal
		}
		return nil, checkArchive(set)
	}, "archive")
	if srv.storage.Storage != nil {
		srv.config.Follow(func(*config.Settings) { srv.archived.Changed() }, "archive", "archive-interval", "archive-base-interval",
			"archive-retention")
	}
}

// retention returns what the journal keeps for readers of changes and for the archive. A witness's has nothing to archive.
func (a *archived) retention(set *config.Settings) journal.Retention {
	r := retention(set)
	if set.Persistence.Archive != "" && !set.Raft.Witness {
		r.From, r.FromBytes = a.from.Load(), int64(set.Persistence.ArchiveJournalLimit)
	}
	return r
}

// restoreArchived fills the keyspace with Options.Restore.
func (srv *Server) restoreArchived() error {
	from := srv.storage.restore
	if err := srv.importer.ImportFrom(from.Name(), from.Base); err != nil {
		return err
	}
	r := srv.sessions.NewReplayer(command.FromJournal)
	if from.OfGroup() {
		r.Obey()
	}
	err := from.Records(r.Apply)
	srv.storage.imported = err == nil
	return err
}

// infoArchive writes the archive's part of INFO.
func (srv *Server) infoArchive(b *servercommands.InfoText) {
	srv.archived.Status().Info(b.Text, b.Number)
}
