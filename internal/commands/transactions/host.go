package transactions

import "github.com/atomredis/atomredis/internal/command"

// Client is what transactions need of the client. Its methods take the locks that they need.
type Client interface {
	// InTransaction reports whether the client is between MULTI and EXEC or DISCARD.
	InTransaction() bool
	// Multi begins a transaction.
	Multi()
	// Discard ends the transaction without executing it, and all watches.
	Discard()
	// Watch makes the next EXEC fail if one of the keys, in database db, changes before. keys are not kept.
	Watch(db int, keys [][]byte)
	// Unwatch ends all watches.
	Unwatch()
	// Exec executes the transaction under the guard of c and writes the reply of EXEC to c. It ends the transaction
	// and the watches, whether the transaction was executed or not.
	Exec(c *command.Ctx)
}

// clientOf returns the client of a command.
func clientOf(c *command.Ctx) Client { return c.Client.(Client) }
