package memory

import (
	"context"
	"fmt"
	"sync"

	"github.com/atomredis/atomredis/doors/door"
)

// Errors of commands that were not executed, or whose reply is unknown. Use them with errors.Is.
var (
	// ErrClosed says that the DB is closed. A command that was under way may have been executed or not.
	ErrClosed = door.ErrClosed
	// ErrKilled says that CLIENT KILL ended the command, or that a subscriber was too slow for its messages.
	ErrKilled = door.ErrKilled
	// ErrNotDurable says that the journal has failed: the command's changes may be lost.
	ErrNotDurable = door.ErrNotDurable
	// ErrNeedsConnection says that the command changes the state of a connection, and Do has no connection: use Tx,
	// Subscribe, Database or Dial.
	ErrNeedsConnection = door.ErrNeedsConnection
)

// Args are a command: its name and its arguments.
type Args []any

// Do executes a command without a connection, in the caller's goroutine, and returns its reply. Under appendfsync
// always it returns when everything that the reply reports is durable.
//
// Arguments may be strings, []byte, integers, floats, booleans (sent as 1 and 0), types of these kinds, pointers to
// them (nil stands for the zero value), nil (the empty string), time.Time (RFC 3339 with nanoseconds), time.Duration
// (nanoseconds), net.IP (its bytes), encoding.BinaryMarshaler and encoding.TextMarshaler. Slices and arrays become one
// argument per element, maps their keys and values in order of the keys. Structs become the names and values of the
// fields with a tag such as `redis:"name"` or `redis:"name,omitempty"`, as in go-redis. Anything else is an error. Do
// does not keep its arguments.
//
// The error is an Error if the reply is one. Blocking commands wait until ctx ends; then they have taken nothing, or
// return what they have taken. Commands that change the state of a connection are refused with ErrNeedsConnection.
func (db *DB) Do(ctx context.Context, args ...any) (Reply, error) {
	c, err := db.client()
	if err != nil {
		return Reply{}, wrap(err)
	}
	defer c.Close()
	r, err := c.Do(ctx, args...)
	return r, wrap(err)
}

// client returns a client from the server's pool.
func (db *DB) client() (door.Client, error) {
	d, err := db.srv.Direct(db.number)
	if err != nil {
		return door.Client{}, err
	}
	return door.NewClient(d), nil
}

// batches holds the batches of finished DoMany calls for reuse.
var batches = sync.Pool{New: func() any { return new(door.Batch) }}

// DoMany executes commands one after the other and returns their replies when all have come. Commands of other clients
// may run between them. Error replies are among the replies; the error says why there are fewer replies than commands.
func (db *DB) DoMany(ctx context.Context, commands ...Args) ([]Reply, error) {
	b := batches.Get().(*door.Batch)
	defer func() {
		b.Reset()
		batches.Put(b)
	}()
	for _, c := range commands {
		if err := b.Add(c...); err != nil {
			return nil, wrap(err)
		}
	}
	c, err := db.client()
	if err != nil {
		return nil, wrap(err)
	}
	defer c.Close()
	replies, err := c.Pipeline(ctx, b)
	return replies, wrap(err)
}

// wrap adds the package's name to an error that is not a reply.
func wrap(err error) error {
	if err == nil {
		return nil
	}
	if reply, ok := err.(Error); ok {
		return reply
	}
	return fmt.Errorf("atomredis: %w", err)
}
