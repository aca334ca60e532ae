package memory

import (
	"context"
	"fmt"
	"sync"

	"github.com/atomredis/atomredis/doors/door"
)

// Errors of commands that were not executed, or whose reply is not known; for errors.Is.
var (
	// ErrClosed says that the DB is closed. What a command did that was executed meanwhile may have happened or not.
	ErrClosed = door.ErrClosed
	// ErrKilled says that CLIENT KILL ended the command, or that a subscriber did not take its messages.
	ErrKilled = door.ErrKilled
	// ErrNotDurable says that the journal has failed: what the command did may be lost.
	ErrNotDurable = door.ErrNotDurable
	// ErrNeedsConnection says that the command changes the state of its connection, which Do has none of: use Tx,
	// Subscribe, Database or Dial.
	ErrNeedsConnection = door.ErrNeedsConnection
)

// Args are a command: its name and its arguments.
type Args []any

// Do executes a command without a connection, in the caller's goroutine, and returns its reply. Under appendfsync
// always the reply comes when what it tells is durable.
//
// Arguments may be strings, []byte, integers, floats, booleans (sent as 1 and 0), types of these kinds, pointers to
// them (nil stands for the zero value), nil (the empty string), time.Time (RFC 3339 with nanoseconds), time.Duration
// (nanoseconds), net.IP (its bytes), encoding.BinaryMarshaler, and what else has encoding.TextMarshaler. Slices,
// arrays and maps are as many arguments as they have elements, or keys and values in order of the keys, and structs
// are the names and values of their fields with a tag such as `redis:"name"` or `redis:"name,omitempty"`, as go-redis
// has them. Anything else is an error. Arguments are not kept.
//
// The error is an Error if the reply is one. Blocking commands wait as long as ctx lasts; when it ends they have
// taken nothing, or return what they have taken. Commands that change the state of a connection are refused with
// ErrNeedsConnection.
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

// batches are used by DoMany again and again.
var batches = sync.Pool{New: func() any { return new(door.Batch) }}

// DoMany executes commands one after the other, others' commands possibly between them, and returns their replies
// when all are there. Error replies are among them; the error says why there are fewer replies than commands.
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

// wrap says where an error comes from, if it is not a reply.
func wrap(err error) error {
	if err == nil {
		return nil
	}
	if reply, ok := err.(Error); ok {
		return reply
	}
	return fmt.Errorf("atomredis: %w", err)
}
