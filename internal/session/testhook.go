package session

import (
	"strconv"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/testhook"
)

// This file lets package atomredistest influence commands.

// Fallible makes executions of the command fail, or delays them, as the hook says, but not calls by scripts and
// other commands.
func Fallible(cmd *command.Command, h *testhook.Hook) {
	do := cmd.Do
	if do == nil {
		return
	}
	cmd.Do = func(c *command.Ctx) {
		if !c.Origin.In(fromCommand) {
			if reply, fails := h.Failure(hookedCall(cmd, c), sessionOf(c)); fails {
				c.W.Error(reply)
				return
			}
		}
		do(c)
	}
}

// hookedCall describes an execution for the hook.
func hookedCall(cmd *command.Command, c *command.Ctx) *testhook.Call {
	return &testhook.Call{
		Command: cmd.Name,
		Key: func(match func(key []byte) bool) bool {
			found := false
			cmd.EachKey(c.Args, func(i int, _ *command.KeySpec) bool {
				found = found || match(c.Args[i])
				return true
			})
			return found
		},
		Client: func(match func(name string) bool) bool {
			s := sessionOf(c)
			return match(s.modes.options.Name) || match(strconv.FormatInt(s.id, 10)) || match(s.peer.Addr)
		},
	}
}

// Overdue reports whether a client is blocked although its deadline has passed. Its transport is about to end the
// wait.
func (sh *Shared) Overdue() bool {
	now := sh.Keyspace.Now()
	for _, s := range sh.Clients.All() {
		if w := s.snapshot().keyWait; w != nil {
			if at := w.deadline.Load(); at != 0 && at <= now {
				return true
			}
		}
	}
	return false
}
