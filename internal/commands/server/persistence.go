package server

import (
	"errors"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/persist"
	"github.com/atomredis/atomredis/resp"
)

func init() { command.Register(persistenceCommands) }

var persistenceCommands = []*command.Command{
	{Name: "bgrewriteaof", Group: "server", Since: "1.0.0", Arity: 1,
		Flags:   command.NoAsyncLoading | command.Admin | command.NoScript,
		Summary: "Starts a checkpoint, which shortens the journal", Complexity: "O(1)", Do: bgrewriteaof},
	{Name: "bgsave", Group: "server", Since: "1.0.0", Arity: -1,
		Flags:   command.NoAsyncLoading | command.Admin | command.NoScript,
		Summary: "Writes an RDB file and makes a checkpoint, in the background", Syntax: "[SCHEDULE]",
		Complexity: "O(N), where N is the number of keys", Do: bgsave},
	{Name: "lastsave", Group: "server", Since: "1.0.0", Arity: 1, Flags: command.Loading | command.Stale | command.Fast,
		ACL:     command.CatAdmin | command.CatDangerous,
		Summary: "Returns when the last successful save was", Complexity: "O(1)", Do: lastsave},
	{Name: "save", Group: "server", Since: "1.0.0", Arity: 1,
		Flags:      command.NoAsyncLoading | command.Admin | command.NoScript | command.NoMulti,
		Summary:    "Writes an RDB file and makes a checkpoint, and waits for both",
		Complexity: "O(N), where N is the number of keys", Do: save},
}

// Errors of the commands that store data.
const (
	errNoDirectory    command.Error = "ERR the data is in memory only, and the server was given no directory for a file: set dir"
	errSaveInProgress command.Error = "ERR Background save already in progress"
	errAOFInProgress  command.Error = "ERR Background append only file rewriting already in progress"
)

func bgrewriteaof(c *command.Ctx) {
	host := hostOf(c)
	if !host.Stores() {
		host.Log().Info("BGREWRITEAOF: the data is in memory only, so there is no journal to shorten")
		c.W.Simple(aofStarted)
		return
	}
	switch err := host.Checkpoint(); {
	case errors.Is(err, persist.ErrInProgress):
		c.Err(errAOFInProgress)
	case err != nil:
		c.Err("ERR " + command.Error(command.OneLine(err.Error())))
	default:
		c.W.Simple(aofStarted)
	}
}

const aofStarted = "Background append only file rewriting started"

func bgsave(c *command.Ctx) {
	if o := c.Options(1); o.Next() && (o.More() || !o.Is("schedule")) {
		c.Err(command.ErrSyntax)
		return
	}
	dump := hostOf(c).Dump()
	switch {
	case !dump.CanSave():
		c.Err(errNoDirectory)
	case !dump.Begin():
		c.Err(errSaveInProgress)
	default:
		go dump.Save() // logs the result and records it for INFO
		c.W.Simple("Background saving started")
	}
}

func lastsave(c *command.Ctx) { c.W.Int(hostOf(c).Dump().Status().Saved.Unix()) }

func save(c *command.Ctx) {
	dump := hostOf(c).Dump()
	switch {
	case !dump.CanSave():
		c.Err(errNoDirectory)
		return
	case !dump.Begin():
		c.Err(errSaveInProgress)
		return
	}
	finish := c.Await(0, (*resp.Writer).OK)
	go func() {
		err := dump.Save()
		finish(func(w *resp.Writer) {
			if err != nil {
				w.Error("ERR " + command.OneLine(err.Error()))
			} else {
				w.OK()
			}
		})
	}()
}
