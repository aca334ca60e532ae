package server

import (
	"errors"
	"time"

	"github.com/atomredis/atomredis/persist"
	"github.com/atomredis/atomredis/resp"
)

func init() { Register(persistenceCommands) }

var persistenceCommands = []*Command{
	{Name: "bgrewriteaof", Group: "server", Since: "1.0.0", Arity: 1, Flags: NoAsyncLoading | Admin | NoScript,
		Summary: "Starts a checkpoint, after which the journal is short again", Complexity: "O(1)", Do: cmdBgrewriteaof},
	{Name: "bgsave", Group: "server", Since: "1.0.0", Arity: -1, Flags: NoAsyncLoading | Admin | NoScript,
		Summary: "Starts a checkpoint in the background", Syntax: "[SCHEDULE]", Complexity: "O(1)", Do: cmdBgsave},
	{Name: "lastsave", Group: "server", Since: "1.0.0", Arity: 1, Flags: Loading | Stale | Fast, ACL: CatAdmin | CatDangerous,
		Summary: "Tells when the last checkpoint that succeeded was taken", Complexity: "O(1)", Do: cmdLastsave},
	{Name: "save", Group: "server", Since: "1.0.0", Arity: 1, Flags: NoAsyncLoading | Admin | NoScript | NoMulti,
		Summary: "Makes a checkpoint and waits for it", Complexity: "O(N), where N is what has changed since the last one", Do: cmdSave},
}

// Errors of the commands that store data.
const (
	errInMemory       Error = "ERR the data is in memory only: the server was started with neither save points nor appendonly"
	errNoDirectory    Error = "ERR the data is in memory only, and the server was given no directory for a file: set dir"
	errSaveInProgress Error = "ERR Background save already in progress"
	errAOFInProgress  Error = "ERR Background append only file rewriting already in progress"
)

// begin starts a checkpoint and replies.
func (c *Ctx) begin(started string, busy Error) {
	switch err := serverOf(c).storage.Begin(); {
	case errors.Is(err, persist.ErrInProgress):
		c.Err(busy)
	case err != nil:
		c.Err("ERR " + Error(oneLine(err.Error())))
	default:
		c.W.Simple(started)
	}
}

func cmdBgrewriteaof(c *Ctx) {
	if serverOf(c).storage.Storage == nil {
		c.Err(errInMemory)
		return
	}
	c.begin("Background append only file rewriting started", errAOFInProgress)
}

func cmdBgsave(c *Ctx) {
	if o := c.Options(1); o.Next() && (o.More() || !o.Is("schedule")) {
		c.Err(ErrSyntax)
		return
	}
	const started = "Background saving started"
	srv := serverOf(c)
	switch {
	case srv.storage.Storage != nil:
		c.begin(started, errSaveInProgress)
	case !srv.memoryFile.use:
		c.Err(errNoDirectory)
	case !srv.beginFile():
		c.Err(errSaveInProgress)
	default:
		go srv.saveFile() // which logs, and tells INFO
		c.W.Simple(started)
	}
}

func cmdLastsave(c *Ctx) { c.W.Int(serverOf(c).lastSave(serverOf(c).storageStatus()).Unix()) }

// lastSave returns when the last checkpoint was taken, or when the server started if there never was one.
func (srv *Server) lastSave(st persist.Status) time.Time {
	if st.Saved.IsZero() {
		return srv.started
	}
	return st.Saved
}

func cmdSave(c *Ctx) {
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
	finish := c.Await(0, (*resp.Writer).OK)
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
