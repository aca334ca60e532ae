package door

import (
	"context"
	"errors"
	"fmt"
)

// Session is one client of the server without a transport: the goroutines that call its methods execute its commands.
// Its replies are in RESP3, and are given only once what they tell is as durable as appendfsync demands.
//
// One goroutine uses a Session at a time; Settle, Release, Fork, Admitted and Done may be called by any.
type Session interface {
	// Run executes a command, args[0] being its name; the reply is part of what Flush returns next. It waits as long as
	// the command blocks, or is held up by CLIENT PAUSE, and ctx lasts: if ctx ends before the command was served,
	// nothing is taken and the error is that of ctx. A command that changes the state of its connection is refused with
	// ErrNeedsConnection. args are not kept.
	Run(ctx context.Context, args [][]byte) error
	// Control is Run for commands that change the state of the connection.
	Control(ctx context.Context, args [][]byte) error
	// Flush returns the replies of the commands that were run since it was called last, one after the other, when all
	// that they tell is durable. The caller owns them.
	Flush() ([]byte, error)
	// Ahead is Flush without the wait. Nobody outside may be told what the replies say before Settle has returned position
	// or a later one; 0 is nothing to wait for.
	Ahead() (replies []byte, position uint64, err error)
	// Settle waits until what Ahead has returned up to a position is durable, which others may have made later ones
	// meanwhile. It returns up to which one everything is. With an error nobody may be told.
	Settle(position uint64) (settled uint64, err error)
	// Discard forgets a transaction that was begun, the keys that are watched, and replies that Flush has not returned.
	Discard()
	// Receive waits for messages of the session's subscriptions, and returns those that have come, encoded one after the
	// other. The caller owns them. A session that has subscriptions is used for nothing else: messages that come while a
	// command waits are lost.
	Receive(ctx context.Context) ([]byte, error)
	// Permitted returns the error with which a command is refused because of the session's user: a resp.Error, or nil if
	// the user may execute it. The command is the server's or one of Kind.Commands. Nothing is executed, and what else may
	// refuse the command is not looked at.
	Permitted(args [][]byte) error
	// Fork returns another session of the same client: with its address, its user, its name and its database. It ends
	// with this one at the latest.
	Fork() (Session, error)
	// Admitted reports whether the session may execute commands: its client has authenticated, or need not.
	Admitted() bool
	// SetUnobserved keeps what is executed from now on out of the slow log, the latency monitor and the latencies of
	// commands, or ends that.
	SetUnobserved(yes bool)
	// Done is closed when the session has ended: it was released, or the server has ended it or is about to.
	Done() <-chan struct{}
	// Release ends the use of the session. What another goroutine waits for ends with ErrClosed.
	Release()
}

// Errors of commands that were not executed, or whose reply is not known.
var (
	// ErrClosed says that the server is closed, or the client. What a command did that was executed meanwhile may have
	// happened or not.
	ErrClosed = errors.New("the server is closed")
	// ErrKilled says that the server has ended the session: CLIENT KILL, a change of its user, or ErrSlow.
	ErrKilled = errors.New("the server has ended the session")
	// ErrSlow says that more messages waited for the session than client-output-buffer-limit allows. It is an ErrKilled.
	ErrSlow = fmt.Errorf("%w: too many messages waited for it", ErrKilled)
	// ErrNotDurable says that the journal has failed: what the command did may be lost.
	ErrNotDurable = errors.New("the journal has failed, and what the command did may be lost")
	// ErrNeedsConnection says that a command changes the state of its connection, for which Client has methods.
	ErrNeedsConnection = errors.New("the command needs a connection of its own")
	// ErrConflict says that a watched key has changed, so that nothing of the transaction was executed.
	ErrConflict = errors.New("a watched key has changed")
	// ErrNoUser says that the user as which the clients of a door act does not exist, or is disabled.
	ErrNoUser = errors.New("the user of the door does not exist, or is disabled")
	// ErrTooManyClients says that there are as many clients as maxclients allows.
	ErrTooManyClients = errors.New("max number of clients reached")
)

// ContextError returns why a context has ended: its error, and its cause if that says more.
func ContextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == err {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}
