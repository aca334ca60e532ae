package server

import (
	"errors"
	"time"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/persist"
	"github.com/atomredis/atomredis/resp"
)

func init() { command.Register(persistenceCommands) }

var persistenceCommands = []*command.Command{
	{Name: "bgrewriteaof", Group: "server", Since: "1.0.0", Arity: 1, Flags: command.NoAsyncLoading | command.Admin | command.NoScript,
		Summary: "Starts a checkpoint, after which the journal is short again", Complexity: "O(1)", Do: cmdBgrewriteaof},
	{Name: "bgsave", Group: "server", Since: "1.0.0", Arity: -1, Flags: command.NoAsyncLoading | command.Admin | command.NoScript,
		Summary: "Starts a checkpoint in the background", Syntax: "[SCHEDULE]", Complexity: "O(1)", Do: cmdBgsave},
	{Name: "lastsave", Group: "server", Since: "1.0.0", Arity: 1, Flags: command.Loading | command.Stale | command.Fast,
		ACL:     command.CatAdmin | command.CatDangerous,
		Summary: "Tells when the last checkpoint that succeeded was taken", Complexity: "O(1)", Do: cmdLastsave},
	{Name: "save", Group: "server", Since: "1.0.0", Arity: 1,
		Flags:   command.NoAsyncLoading | command.Admin | command.NoScript | command.NoMulti,
		Summary: "Makes a checkpoint and waits for it", Complexity: "O(N), where N is what has changed since the last one", Do: cmdSave},
}

// Errors of the commands that store data.
const (
	errInMemory       command.Error = "ERR the data is in memory only: the server was started with neither save points nor appendonly"
	errNoDirectory    command.Error = "ERR the data is in memory only, and the server was given no directory for a file: set dir"
	errSaveInProgress command.Error = "ERR Background save already in progress"
	errAOFInProgress  command.Error = "ERR Background append only file rewriting already in progress"
)

// begin starts a checkpoint and replies.
func begin(c *command.Ctx, started string, busy command.Error) {
	switch err := serverOf(c).storage.Begin(); {
	case errors.Is(err, persist.ErrInProgress):
		c.Err(busy)
	case err != nil:
		c.Err("ERR " + command.Error(oneLine(err.Error())))
	default:
		c.W.Simple(started)
	}
}

func cmdBgrewriteaof(c *command.Ctx) {
	if serverOf(c).storage.Storage == nil {
		c.Err(errInMemory)
		return
	}
	begin(c, "Background append only file rewriting started", errAOFInProgress)
}

func cmdBgsave(c *command.Ctx) {
	if o := c.Options(1); o.Next() && (o.More() || !o.Is("schedule")) {
		c.Err(command.ErrSyntax)
		return
	}
	const started = "Background saving started"
	srv := serverOf(c)
	switch {
	case srv.storage.Storage != nil:
		begin(c, started, errSaveInProgress)
	case !srv.memoryFile.use:
		c.Err(errNoDirectory)
	case !srv.beginFile():
		c.Err(errSaveInProgress)
	default:
		go srv.saveFile() // which logs, and tells INFO
		c.W.Simple(started)
	}
}

func cmdLastsave(c *command.Ctx) { c.W.Int(serverOf(c).lastSave(serverOf(c).storageStatus()).Unix()) }

// lastSave returns when the last checkpoint was taken, or when the server started if there never was one.
func (srv *Server) lastSave(st persist.Status) time.Time {
	if st.Saved.IsZero() {
		return srv.started
	}
	return st.Saved
}

func cmdSave(c *command.Ctx) {
	srv := serverOf(c)
	save := srv.saveFile
	if srv.storage.Storage != nil {
		save = srv.storage.Save
	} else if !srv.memoryFile.use {
		c.Err(errNoDirectory)
		return
	}
	if srv.storageStatus().Checkpoint || srv.storage.Storage == nil && !srv.beginFile() {
		c.Err(errSaveInProgress)
		return
	}
	finish := Await(c, 0, (*resp.Writer).OK)
	go func() {
		err := save()
		finish(func(w *resp.Writer) {
			if err != nil {
				w.Error("ERR " + oneLine(err.Error()))
			} else {
				w.OK()
			}
		})
	}()
}
