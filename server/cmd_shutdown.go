package server

import (
	"time"

	"github.com/atomredis/atomredis/resp"
)

// cmdShutdown stops the server; the client sees its connection close. What is stored is brought up to date before, unless
// NOSAVE is given, so that the next start has no journal to read; if that fails the server stays, unless FORCE is given.
func cmdShutdown(c *Ctx) {
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
			c.Err(ErrSyntax)
			return
		}
	}
	switch {
	case save && noSave, abort && (save || noSave || now || force):
		c.Err(ErrSyntax)
		return
	case abort:
		c.Err("ERR No shutdown in progress.") // it takes no time that another client could see
		return
	}
	srv := c.Server
	if answer := srv.scripts.run.busy.Load(); answer != nil && !noSave {
		c.Err(*answer)
		return
	}
	srv.log.Info("a client asked for shutdown", "client", c.Session.id, "addr", c.Session.peer.Addr)
	if noSave || srv.storage.Storage == nil {
		if save && !force {
			srv.log.Warn("refused SHUTDOWN SAVE: the data is in memory only", "client", c.Session.id)
			c.Err(errShutdown)
			return
		}
		c.Session.closing = true
		go srv.close(!noSave) // which waits for the goroutine that is executing this
		return
	}
	finish := c.Await(0, (*resp.Writer).OK)
	go func() {
		if err := srv.storage.Save(); err != nil && !force {
			srv.log.Error("cannot shut down: the last checkpoint has failed", "error", err.Error())
			finish(func(w *resp.Writer) { w.Error(string(errShutdown)) })
			return
		}
		srv.Close()
	}()
}

// errShutdown is the reply to a SHUTDOWN that would lose data.
const errShutdown Error = "ERR Errors trying to SHUTDOWN. Check logs."

// cmdDebug carries out DEBUG SLEEP, which holds up all commands that use keys.
func cmdDebug(c *Ctx) {
	if len(c.Args) != 3 || !equalFold(c.Args[1], "sleep") {
		c.wrongUse("DEBUG")
		return
	}
	seconds, ok := resp.ParseFloat(c.Args[2])
	if ok && seconds > 0 {
		time.Sleep(time.Duration(min(seconds, maxDebugSleep) * float64(time.Second)))
	}
	c.W.OK()
}

// maxDebugSleep in seconds keeps the pause within a Duration.
const maxDebugSleep = 1e9

// debugAllowed reports whether the client may use commands that can harm the server.
func (s *Session) debugAllowed() bool {
	switch s.srv.config.Get().EnableDebugCommand {
	case DebugYes:
		return true
	case DebugLocal:
		return s.peer.local()
	}
	return false
}
