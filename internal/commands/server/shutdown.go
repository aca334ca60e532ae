package server

import (
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

func init() { command.Register([]*command.Command{shutdownCommand}) }

var shutdownCommand = &command.Command{Name: "shutdown", Group: "server", Since: "1.0.0", Arity: -1,
	Flags:   command.Admin | command.NoScript | command.Loading | command.Stale | command.NoMulti | command.AllowBusy,
	Summary: "Stops the server", Syntax: "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
	Complexity: "O(N), where N is the number of clients", Do: shutdown}

// shutdown stops the server; the client sees its connection close. Before, it makes a checkpoint, unless NOSAVE is
// given, so that the next start has no journal to read. If that fails, the server continues, unless FORCE is given.
func shutdown(c *command.Ctx) {
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
		c.Err("ERR No shutdown in progress.") // other clients never see a shutdown in progress
		return
	}
	host, client := hostOf(c), clientOf(c)
	if busy := host.Busy(); busy != "" && !noSave {
		c.Err(busy)
		return
	}
	host.Log().Info("a client asked for shutdown", "client", client.ID(), "addr", client.Addr())
	if save && !host.Dump().CanSave() && !force {
		host.Log().Warn("refused SHUTDOWN SAVE: the data is in memory only", "client", client.ID())
		c.Err(errShutdown)
		return
	}
	if noSave || !save && !host.Stores() || !host.Dump().CanSave() {
		client.End()
		go host.Stop(!noSave) // in a goroutine, because Stop waits for this one
		return
	}
	write := host.Dump().Save
	if !save {
		write = host.FinishCheckpoint
	} else if !host.Dump().Begin() {
		c.Err(errSaveInProgress)
		return
	}
	finish := c.Await(0, (*resp.Writer).OK)
	go func() {
		if err := write(); err != nil && !force {
			host.Log().Error("cannot shut down: the last save has failed", "error", err.Error())
			finish(func(w *resp.Writer) { w.Error(string(errShutdown)) })
			return
		}
		host.Stop(true)
	}()
}

// errShutdown is the reply to a SHUTDOWN that would lose data.
const errShutdown command.Error = "ERR Errors trying to SHUTDOWN. Check logs."
