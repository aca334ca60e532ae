package server

import (
	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/door"
	"github.com/atomredis/atomredis/resp"
)

// cmdShutdown stops the server; the client sees its connection close. What is stored is brought up to date before,
// unless NOSAVE is given, so that the next start has no journal to read; if that fails the server stays, unless FORCE
// is given.
func cmdShutdown(c *command.Ctx) {
	var save, noSave, now, force, abort bool
	for o := c.Options(1); o.Next(); {
		switch {
		case o.Is("save"):
			save = true
		case o.Is("nosave"):
			noSave = true
		case o.Is("now"):
			now = true
		case o.Is("force"):
			force = true
		case o.Is("abort"):
			abort = true
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	switch {
	case save && noSave, abort && (save || noSave || now || force):
		c.Err(command.ErrSyntax)
		return
	case abort:
		c.Err("ERR No shutdown in progress.") // it takes no time that another client could see
		return
	}
	srv := serverOf(c)
	if answer := srv.scripts.run.busy.Load(); answer != nil && !noSave {
		c.Err(*answer)
		return
	}
	srv.log.Info("a client asked for shutdown", "client", sessionOf(c).id, "addr", sessionOf(c).peer.Addr)
	if save && !srv.canSave() && !force {
		srv.log.Warn("refused SHUTDOWN SAVE: the data is in memory only", "client", sessionOf(c).id)
		c.Err(errShutdown)
		return
	}
	if noSave || !save && srv.storage.Storage == nil || !srv.canSave() {
		sessionOf(c).closing, sessionOf(c).why = true, door.ErrClosed
		go srv.close(!noSave) // which waits for the goroutine that is executing this
		return
	}
	write := srv.save
	if !save {
		write = srv.storage.Save
	} else if !srv.beginSave() {
		c.Err(errSaveInProgress)
		return
	}
	finish := c.Await(0, (*resp.Writer).OK)
	go func() {
		if err := write(); err != nil && !force {
			srv.log.Error("cannot shut down: the last save has failed", "error", err.Error())
			finish(func(w *resp.Writer) { w.Error(string(errShutdown)) })
			return
		}
		srv.Close()
	}()
}

// errShutdown is the reply to a SHUTDOWN that would lose data.
const errShutdown command.Error = "ERR Errors trying to SHUTDOWN. Check logs."
