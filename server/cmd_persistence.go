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
	{Name: "bgrewriteaof", Group: "server", Since: "1.0.0", Arity: 1,
		Flags:   command.NoAsyncLoading | command.Admin | command.NoScript,
		Summary: "Starts a checkpoint, which shortens the journal", Complexity: "O(1)", Do: cmdBgrewriteaof},
	{Name: "bgsave", Group: "server", Since: "1.0.0", Arity: -1,
		Flags:   command.NoAsyncLoading | command.Admin | command.NoScript,
		Summary: "Writes an RDB file and makes a checkpoint, in the background", Syntax: "[SCHEDULE]",
		Complexity: "O(N), where N is the number of keys", Do: cmdBgsave},
	{Name: "lastsave", Group: "server", Since: "1.0.0", Arity: 1, Flags: command.Loading | command.Stale | command.Fast,
		ACL:     command.CatAdmin | command.CatDangerous,
		Summary: "Returns when the last successful save was", Complexity: "O(1)", Do: cmdLastsave},
	{Name: "save", Group: "server", Since: "1.0.0", Arity: 1,
		Flags:      command.NoAsyncLoading | command.Admin | command.NoScript | command.NoMulti,
		Summary:    "Writes an RDB file and makes a checkpoint, and waits for both",
		Complexity: "O(N), where N is the number of keys", Do: cmdSave},
}

// Errors of the commands that store data.
const (
	errNoDirectory    command.Error = "ERR the data is in memory only, and the server was given no directory for a file: set dir"
	errSaveInProgress command.Error = "ERR Background save already in progress"
	errAOFInProgress  command.Error = "ERR Background append only file rewriting already in progress"
)

func cmdBgrewriteaof(c *command.Ctx) {
	srv := serverOf(c)
	if srv.storage.Storage == nil {
		srv.log.Info("BGREWRITEAOF: the data is in memory only, and there is nothing to make short")
		c.W.Simple(aofStarted)
		return
	}
	switch err := srv.storage.Begin(); {
	case errors.Is(err, persist.ErrInProgress):
		c.Err(errAOFInProgress)
	case err != nil:
		c.Err("ERR " + command.Error(command.OneLine(err.Error())))
	default:
		c.W.Simple(aofStarted)
	}
}

const aofStarted = "Background append only file rewriting started"

func cmdBgsave(c *command.Ctx) {
	if o := c.Options(1); o.Next() && (o.More() || !o.Is("schedule")) {
		c.Err(command.ErrSyntax)
		return
	}
	srv := serverOf(c)
	switch {
	case !srv.canSave():
		c.Err(errNoDirectory)
	case !srv.beginSave():
		c.Err(errSaveInProgress)
	default:
		go srv.save() // which logs, and tells INFO
		c.W.Simple("Background saving started")
	}
}

// canSave reports whether there is where to save to.
func (srv *Server) canSave() bool { return srv.storage.Storage != nil || srv.dumpFile.use }

func cmdLastsave(c *command.Ctx) { c.W.Int(serverOf(c).lastSave(serverOf(c).storageStatus()).Unix()) }

// lastSave returns when the last save was taken, or when the server started if there never was one.
func (srv *Server) lastSave(st persist.Status) time.Time {
	if st.Saved.IsZero() {
		return srv.started
	}
	return st.Saved
}

func cmdSave(c *command.Ctx) {
	srv := serverOf(c)
	switch {
	case !srv.canSave():
		c.Err(errNoDirectory)
		return
	case !srv.beginSave():
		c.Err(errSaveInProgress)
		return
	}
	finish := c.Await(0, (*resp.Writer).OK)
	go func() {
		err := srv.save()
		finish(func(w *resp.Writer) {
			if err != nil {
				w.Error("ERR " + command.OneLine(err.Error()))
			} else {
				w.OK()
			}
		})
	}()
}
