package server

import (
	"slices"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/engine"
)

// The commands of transactions. What they do to the session is in transaction.go.

func init() { command.Register(transactionCommands) }

var transactionCommands = []*command.Command{
	{Name: "discard", Group: "transactions", Since: "2.0.0", Arity: 1,
		Flags:   command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy,
		ACL:     command.CatTransaction,
		Summary: "Drops the open transaction", Complexity: "O(N), where N is the number of queued commands",
		Stateful: true, Do: cmdDiscard, Immediate: true, EndsTransaction: true},
	{Name: "exec", Group: "transactions", Since: "1.2.0", Arity: 1,
		Flags:   command.NoScript | command.Loading | command.Stale | command.SkipSlowlog | command.OwnGuard,
		ACL:     command.CatTransaction,
		Summary: "Executes the transaction", Complexity: "That of the queued commands",
		Stateful: true, Do: cmdExec, Immediate: true, RunsQueue: true, EndsTransaction: true},
	{Name: "multi", Group: "transactions", Since: "1.2.0", Arity: 1,
		Flags:   command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy,
		ACL:     command.CatTransaction,
		Summary: "Begins a transaction", Complexity: "O(1)",
		Stateful: true, Do: cmdMulti, Immediate: true},
	{Name: "unwatch", Group: "transactions", Since: "2.2.0", Arity: 1,
		Flags:   command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy | command.OwnGuard,
		ACL:     command.CatTransaction,
		Summary: "Cancels all WATCHes", Complexity: "O(1)",
		Stateful: true, Do: cmdUnwatch},
	{Name: "watch", Group: "transactions", Since: "2.2.0", Arity: -2,
		Flags:      command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy | command.OwnGuard,
		ACL:        command.CatTransaction,
		Keys:       command.Keys("i1+r-1/1/0[RO]"),
		Summary:    "Makes the next transaction fail if one of the keys changes",
		Syntax:     "key [key ...]",
		Complexity: "O(1) for every key",
		Stateful:   true, Do: cmdWatch, Immediate: true},
}

const (
	errExecAborted command.Error = "EXECABORT Transaction discarded because of previous errors."
	errExecLoading command.Error = "EXECABORT Transaction discarded because of: " + errLoading
)

func cmdMulti(c *command.Ctx) {
	s := sessionOf(c)
	if s.tx.active {
		c.Err("ERR MULTI calls can not be nested")
		return
	}
	s.tx.active = true
	c.W.OK()
}

func cmdDiscard(c *command.Ctx) {
	s := sessionOf(c)
	if !s.tx.active {
		c.Err("ERR DISCARD without MULTI")
		return
	}
	s.discard()
	c.W.OK()
}

func cmdWatch(c *command.Ctx) {
	s := sessionOf(c)
	if s.tx.active {
		c.Err("ERR WATCH inside MULTI is not allowed")
		return
	}
	from := len(s.tx.watches)
	for _, key := range c.Args[1:] {
		if !s.watches(c.DB, key) {
			s.tx.watches = append(s.tx.watches, &watchedKey{db: c.DB, key: string(key), shard: s.srv.ks.ShardOf(key)})
		}
	}
	if added := s.tx.watches[from:]; len(added) > 0 {
		s.underWatches(added, func(g *engine.Guard, written bool) {
			for _, w := range added {
				w.begin(g, written)
			}
		})
	}
	c.W.OK()
}

func cmdUnwatch(c *command.Ctx) {
	sessionOf(c).unwatchAll()
	c.W.OK()
}

// cmdExec runs the queued commands under one guard over all their shards.
func cmdExec(c *command.Ctx) {
	s := sessionOf(c)
	if !s.tx.active {
		c.Err("ERR EXEC without MULTI")
		return
	}
	if s.tx.spoiled {
		e := errExecAborted
		if s.srv.cluster != nil && !s.oneSlot(s.tx.queue) {
			e = errCrossSlot
		}
		s.discard()
		c.Err(e)
		return
	}
	queue := s.tx.queue
	shards := shardsOf(s.tx.watches)
	for _, q := range queue {
		shards |= q.cmd.Shards(s.srv.ks, q.args)
	}
	g := c.G
	if busy := s.lock(g, shards); busy != "" {
		s.discard()
		c.Err(execAborted(busy))
		return
	}
	defer g.Unlock() // call unlocks too, which then has nothing left to do

	mustWait := func(q queuedCommand) bool { return q.cmd.Flags&command.Loading == 0 }
	if s.srv.replica.loading.Load() && slices.ContainsFunc(queue, mustWait) {
		s.unwatchUnder(g)
		s.endTransaction()
		c.Err(errExecLoading)
		return
	}

	unchanged := true
	for _, w := range s.tx.watches {
		unchanged = g.Unchanged(w.watch, w.version) && unchanged
	}
	s.unwatchUnder(g)
	s.tx = transaction{room: s.tx.room, pieces: s.tx.pieces}
	defer s.endTransaction() // the commands run from the room for the queue
	if !unchanged {
		c.W.NullArray()
		return
	}

	if s.srv.cluster != nil && !s.oneSlot(queue) {
		c.Err(errCrossSlot)
		return
	}

	c.W.Array(len(queue))
	exec := c.Cmd
	c.NoBlock, c.Origin = true, command.FromQueue
	s.tx.running, s.lastCmd = len(queue), exec
	for _, q := range queue {
		if e := s.admit(command.FromQueue, q.cmd, nil, q.args); e != "" {
			c.Err(e)
			continue
		}
		c.Cmd, c.Args, c.DB = q.cmd, q.args, s.db
		s.runQueued(c, q.long)
		if s.tracking.on {
			s.rememberKeys(q.cmd, q.args)
		}
	}
	s.tx.running = 0
	c.NoBlock, c.Origin = false, command.FromClient
	c.Cmd = exec
}
