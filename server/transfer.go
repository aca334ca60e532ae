package server

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/door"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/transfer"
)

// What package transfer needs of the server.

func (srv *Server) startTransfer() {
	files := transfer.Files{FS: srv.fs, Config: srv.config, Log: srv.log, Progress: srv.progress}
	srv.exporter = transfer.NewExporter((*exported)(srv), srv.progress)
	srv.importer = transfer.NewImporter(files, srv.ks, srv.RDBLimits,
		func() transfer.Replayer { return newReplayer(srv, command.FromImport) })
}

// exported is the server as transfer.Source.
type exported Server

// Keyspace implements transfer.Source.
func (x *exported) Keyspace() *engine.Keyspace { return x.ks }

// Log implements transfer.Source.
func (x *exported) Log() *slog.Logger { return x.log }

// Libraries implements transfer.Source.
func (x *exported) Libraries() []string { return x.scripts.Libraries() }

// Loading implements transfer.Source.
func (x *exported) Loading() error {
	if x.replica.loading.Load() {
		return errors.New(string(errLoading))
	}
	return nil
}

// Hold implements transfer.Source.
func (x *exported) Hold(fn func(g *engine.Guard)) error { return (*Server)(x).underAll(fn) }

// WhenLoaded implements transfer.Source.
func (x *exported) WhenLoaded(fn func() error) error {
	d, err := (*Server)(x).Direct(0)
	if err != nil {
		return err
	}
	defer d.Release()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return door.ErrClosed
	}
	if err := d.loaded(context.Background()); err != nil {
		return err
	}
	return fn()
}

// LeftOut says what the file that was imported ends in and was not read, "" if all was.
func (srv *Server) LeftOut() string { return srv.importer.LeftOut() }

// WriteRDB writes the keyspace and the libraries of functions as they are at one moment, as an RDB file. Commands go
// on meanwhile. While keys are still being loaded after a start it waits for them. w is called by another goroutine.
func (srv *Server) WriteRDB(w io.Writer) error { return srv.exporter.RDB(w) }

// WriteAOF is WriteRDB for an append-only file.
func (srv *Server) WriteAOF(w io.Writer) error { return srv.exporter.AOF(w) }

// Snapshot writes the keyspace as it is at one moment, as commands in the form of an append-only file. Commands go on
// meanwhile. While keys are still being loaded after a start it waits for them. w is called by another goroutine.
func (srv *Server) Snapshot(w io.Writer) error { return srv.exporter.Commands(w) }
