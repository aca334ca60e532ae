// Package transactions has the commands of transactions. The session keeps the queue and the watches, and executes
// the queue.
package transactions

import "github.com/atomredis/atomredis/internal/command"

func init() { command.Register(transactionCommands) }

var transactionCommands = []*command.Command{
	{Name: "discard", Group: "transactions", Since: "2.0.0", Arity: 1,
		Flags:   command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy,
		ACL:     command.CatTransaction,
		Summary: "Drops the open transaction", Complexity: "O(N), where N is the number of queued commands",
		Stateful: true, Do: discard, Immediate: true},
	{Name: "exec", Group: "transactions", Since: "1.2.0", Arity: 1,
		Flags:   command.NoScript | command.Loading | command.Stale | command.SkipSlowlog | command.OwnGuard,
		ACL:     command.CatTransaction,
		Summary: "Executes the transaction", Complexity: "That of the queued commands",
		Stateful: true, Do: exec, Immediate: true, RunsQueue: true},
	{Name: "multi", Group: "transactions", Since: "1.2.0", Arity: 1,
		Flags:   command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy,
		ACL:     command.CatTransaction,
		Summary: "Begins a transaction", Complexity: "O(1)",
		Stateful: true, Do: multi, Immediate: true},
	{Name: "unwatch", Group: "transactions", Since: "2.2.0", Arity: 1,
		Flags:   command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy | command.OwnGuard,
		ACL:     command.CatTransaction,
		Summary: "Cancels all WATCHes", Complexity: "O(1)",
		Stateful: true, Do: unwatch},
	{Name: "watch", Group: "transactions", Since: "2.2.0", Arity: -2,
		Flags:      command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy | command.OwnGuard,
		ACL:        command.CatTransaction,
		Keys:       command.Keys("i1+r-1/1/0[RO]"),
		Summary:    "Makes the next transaction fail if one of the keys changes",
		Syntax:     "key [key ...]",
		Complexity: "O(1) for every key",
		Stateful:   true, Do: watch, Immediate: true},
}

func multi(c *command.Ctx) {
	client := clientOf(c)
	if client.InTransaction() {
		c.Err("ERR MULTI calls can not be nested")
		return
	}
	client.Multi()
	c.W.OK()
}

func discard(c *command.Ctx) {
	client := clientOf(c)
	if !client.InTransaction() {
		c.Err("ERR DISCARD without MULTI")
		return
	}
	client.Discard()
	c.W.OK()
}

func watch(c *command.Ctx) {
	client := clientOf(c)
	if client.InTransaction() {
		c.Err("ERR WATCH inside MULTI is not allowed")
		return
	}
	client.Watch(c.DB, c.Args[1:])
	c.W.OK()
}

func unwatch(c *command.Ctx) {
	clientOf(c).Unwatch()
	c.W.OK()
}

func exec(c *command.Ctx) {
	client := clientOf(c)
	if !client.InTransaction() {
		c.Err("ERR EXEC without MULTI")
		return
	}
	client.Exec(c)
}
