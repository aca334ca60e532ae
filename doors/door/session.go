package door

import (
	"context"
	"errors"
	"fmt"
)

// Session is one client of the server without a transport: the goroutines that call its methods execute its commands.
// Its replies are in RESP3, or in RESP2 after Client.UseRESP2. They are returned when everything that they report is as
// durable as appendfsync demands.
//
// One goroutine uses a Session at a time; any goroutine may call Settle, Release, Fork, Admitted and Done.
type Session interface {
	// Run executes a command, whose name is args[0]; the next Flush returns the reply. It waits while the command
	// blocks, or while CLIENT PAUSE delays it. If ctx ends before the command was served, the command takes nothing and
	// the error is that of ctx. A command that changes the state of its connection is refused with ErrNeedsConnection.
	// Run does not keep args.
	Run(ctx context.Context, args [][]byte) error
	// Control is Run for commands that change the state of the connection.
	Control(ctx context.Context, args [][]byte) error
	// Flush returns the replies of all commands since the last call, one after the other, when everything that they
	// report is durable. The caller owns the replies.
	Flush() ([]byte, error)
	// Ahead is Flush without the wait. The caller must not send the replies before Settle has returned position or a
	// later one. Position 0 means that there is nothing to wait for.
	Ahead() (replies []byte, position uint64, err error)
	// Settle waits until the replies of Ahead up to a position are durable. It returns the position up to which
	// everything is durable, which may be a later one. After an error the caller must send none of these replies.
	Settle(position uint64) (settled uint64, err error)
	// Discard discards a transaction in preparation, watched keys, and replies that Flush has not returned.
	Discard()
	// Receive waits for messages of the session's subscriptions, and returns all that have come, encoded one after the
	// other. The caller owns them. A session with subscriptions must not be used for anything else: messages that come
	// while a command waits are lost.
	Receive(ctx context.Context) ([]byte, error)
	// Permitted returns nil if the session's user may execute a command, and otherwise the resp.Error with which it
	// would be refused. The command is one of the server or of Kind.Commands. Permitted does not execute the command,
	// and does not check other reasons for a refusal.
	Permitted(args [][]byte) error
	// Fork returns another session of the same client, with the same address, user, name and database. The fork ends
	// with this session at the latest.
	Fork() (Session, error)
	// Admitted reports whether the session may execute commands: its client has authenticated, or needs no password.
	Admitted() bool
	// SetUnobserved(true) keeps further commands out of the slow log, the latency monitor and the latencies of
	// commands; false ends that.
	SetUnobserved(yes bool)
	// Done is closed when the session was released, or when the server has ended it or is about to. A session that ends with a
	// reply, such as that of CLIENT KILL of itself, is over with the next command.
	Done() <-chan struct{}
	// Undone reports whether the server has ended the session for the reason of ErrUndone, and for no other.
	Undone() bool
	// Release ends the session. A command that another goroutine waits for ends with ErrClosed.
	Release()
}

// Errors of commands that were not executed, or whose reply is unknown.
var (
	// ErrClosed says that the server or the client is closed. A command that was under way may have been executed or
	// not.
	ErrClosed = errors.New("the server is closed")
	// ErrKilled says that the server has ended the session: CLIENT KILL, a change of its user, or ErrSlow.
	ErrKilled = errors.New("the server has ended the session")
	// ErrUndone says that the server has lost the lead of its group: changes that the session's commands made or saw may have been
	// undone, and the session has ended. It wraps ErrKilled.
	ErrUndone = fmt.Errorf("%w: it has lost the lead of its group, and what the command did or saw may be undone", ErrKilled)
	// ErrSlow says that more messages waited for the session than client-output-buffer-limit allows. It wraps
	// ErrKilled.
	ErrSlow = fmt.Errorf("%w: too many messages waited for it", ErrKilled)
	// ErrNotDurable says that the journal has failed: the command's changes may be lost.
	ErrNotDurable = errors.New("the journal has failed, and what the command did may be lost")
	// ErrNeedsConnection says that a command changes the state of its connection; Client has methods for that.
	ErrNeedsConnection = errors.New("the command needs a connection of its own")
	// ErrConflict says that a watched key has changed; the transaction was not executed.
	ErrConflict = errors.New("a watched key has changed")
	// ErrNoUser says that the user of a door's clients does not exist, or is disabled.
	ErrNoUser = errors.New("the user of the door does not exist, or is disabled")
	// ErrTooManyClients says that maxclients allows no further client.
	ErrTooManyClients = errors.New("max number of clients reached")
)

// ContextError returns the error of an ended context, wrapped with its cause if that differs.
func ContextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == err {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}
