package server

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/transfer"
	"github.com/atomredis/atomredis/persist"
)

// The methods of the server that package transfer needs.

// startTransfer prepares the import and export of the data as files. rdbFile is Options.RDBFile.
func (srv *Server) startTransfer(rdbFile bool) {
	files := transfer.Files{FS: srv.fs, System: srv.ownFiles, Config: srv.config, Log: srv.log, Progress: srv.progress}
	srv.exporter = transfer.NewExporter((*exported)(srv), srv.progress)
	var storage transfer.Storage
	needs := "dir"
	if st := srv.storage.Storage; st != nil {
		storage, needs = st, "dbfilename" // dir always has a value
	}
	srv.dump = transfer.NewDump(files, srv.exporter, storage, rdbFile || srv.config.IsSet(needs), srv.started)
	srv.backups = transfer.NewBackups(files, srv.exporter, srv.dump, &srv.followed)
	srv.importer = transfer.NewImporter(files, srv.ks, srv.RDBLimits,
		func() transfer.Replayer { return srv.sessions.NewReplayer(command.FromImport) })
}

// Dump implements servercommands.Host.
func (srv *Server) Dump() *transfer.Dump { return srv.dump }

// Backups implements servercommands.Host.
func (srv *Server) Backups() *transfer.Backups { return srv.backups }

// loadFile reads the data of the directory at start: files of this server, or of a Redis.
func (srv *Server) loadFile(set *config.Settings) error {
	if !srv.dump.Used() || set.Durable() {
		return nil
	}
	if persist.Exists(srv.fs, set.Files.Dir) {
		srv.log.Warn("the data directory is read, but changes are kept in memory only", "dir",
			set.Files.Dir)
		return srv.importer.ImportFrom(set.Files.Dir, srv.openStored)
	}
	if load := srv.importStored(set); load != nil {
		return load()
	}
	return nil
}

// storedData is the data that a server has stored in the directory, as an RDB file.
type storedData struct {
	*io.PipeReader
	srv *Server
}

// openStored returns the stored data of the directory for another server.
func (srv *Server) openStored() (io.ReadCloser, error) {
	next := *config.NewConfig().Get()
	set := srv.config.Get()
	next.Files.Dir, next.Databases, next.Network.Port, next.Persistence.AppendOnly = set.Files.Dir, set.Databases, 0, true
	next.Types.Hash, next.Types.Set, next.Types.ZSet, next.Types.List, next.Types.Stream = set.Types.Hash, set.Types.Set, set.Types.ZSet, set.Types.List, set.Types.Stream
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

// exported is the server as transfer.Source.
type exported Server

// Keyspace implements transfer.Source.
func (x *exported) Keyspace() *engine.Keyspace { return x.ks }

// Log implements transfer.Source.
func (x *exported) Log() *slog.Logger { return x.log }

// Libraries implements transfer.Source.
func (x *exported) Libraries() []string { return x.scripts.Libraries() }

// Kept implements transfer.Source.
func (x *exported) Kept() []byte { return (*Server)(x).kept() }

// Loading implements transfer.Source.
func (x *exported) Loading() error {
	if x.replica.Loading() {
		return errors.New(string(command.ErrLoading))
	}
	return nil
}

// Hold implements transfer.Source.
func (x *exported) Hold(fn func(g *engine.Guard)) error { return (*Server)(x).underAll(fn) }

// WhenLoaded implements transfer.Source.
func (x *exported) WhenLoaded(ctx context.Context, fn func() error) error {
	d, err := (*Server)(x).Direct(0)
	if err != nil {
		return err
	}
	defer d.Release()
	return d.WhenLoaded(ctx, fn)
}

// LeftOut describes the end of the imported file that was not read, "" if everything was read.
func (srv *Server) LeftOut() string { return srv.importer.LeftOut() }

// Unsupported returns what the import has left out because its type does not exist here.
func (srv *Server) Unsupported() *transfer.Unsupported { return srv.importer.Unsupported() }

// CheckFile reads a file, or a directory with files, of a Redis as an import does, and stores nothing; see transfer.Importer.Check.
func (srv *Server) CheckFile(name string, found func(db int, key []byte, typ string)) (*transfer.Checked, error) {
	return srv.importer.Check(name, found)
}

// WriteRDB writes the keyspace and the libraries of functions as they are at one moment, as an RDB file. Commands go
// on meanwhile. While keys are still being loaded after a start it waits for them. w is called by another goroutine.
func (srv *Server) WriteRDB(w io.Writer) error { return srv.exporter.RDB(w) }

// WriteRDBWithModules is WriteRDB for a Redis with the query engine, which finds indexes and dictionaries in the
// file. A Redis without it refuses a file that has them.
func (srv *Server) WriteRDBWithModules(w io.Writer) error { return srv.exporter.RDBWithModules(w) }

// Unreadable calls fn with the keys whose values no Redis reads from the files that WriteRDB and WriteAOF write.
func (srv *Server) Unreadable(fn func(db int, key, typ string)) error {
	return srv.exporter.Unreadable(fn)
}

// WriteAOF is WriteRDB for an append-only file.
func (srv *Server) WriteAOF(w io.Writer) error { return srv.exporter.AOF(w) }

// Snapshot writes the keyspace as it is at one moment, as commands in the form of an append-only file. Commands go on
// meanwhile. While keys are still being loaded after a start it waits for them. w is called by another goroutine.
func (srv *Server) Snapshot(w io.Writer) error { return srv.exporter.Commands(w) }
