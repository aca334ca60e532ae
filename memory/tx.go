package memory

import (
	"context"
	"errors"

	"github.com/atomredis/atomredis/doors/door"
)

// ErrTxFailed is returned by DB.Tx if watched keys changed before the commit in every attempt.
var ErrTxFailed = errors.New("atomredis: watched keys have changed during every attempt of the transaction")

// txAttempts is how often Tx calls its function.
const txAttempts = 16

// Tx is a transaction that is being prepared. One goroutine uses it, until the function that it was given to returns;
// then Watch and Query fail.
type Tx struct {
	ctx     context.Context
	c       door.Client
	queue   door.Batch
	replies []*Reply
	err     error // of a command that could not be queued
	ended   bool  // c is not its own any more
}

var errTxEnded = errors.New("atomredis: the transaction has ended")

// Tx calls fn to prepare a transaction, and then executes what fn has queued with Tx.Do, all at once: nobody sees a
// part of it, and nobody's commands come between. If fn returns an error nothing is executed, and Tx returns it.
//
// If a key that fn gave to Tx.Watch has changed since, nothing is executed and fn is called again, up to 16 times in
// all; then Tx returns ErrTxFailed. A command that cannot be queued makes the whole fail. One that fails while the
// transaction is executed does not keep the others from being executed, as in Redis; Tx returns the first such Error,
// and the replies are there.
func (db *DB) Tx(ctx context.Context, fn func(tx *Tx) error) error {
	for range txAttempts {
		if done, err := db.tryTx(ctx, fn); done {
			return err
		}
	}
	return ErrTxFailed
}

// tryTx makes one attempt; done is false if it should be made again.
func (db *DB) tryTx(ctx context.Context, fn func(tx *Tx) error) (done bool, err error) {
	c, err := db.client()
	if err != nil {
		return true, wrap(err)
	}
	defer c.Close() // which ends the session if it still watches keys
	tx := &Tx{ctx: ctx, c: c}
	defer func() { tx.ended = true }()
	if err := fn(tx); err != nil {
		return true, err
	}
	if tx.err != nil {
		return true, tx.err
	}
	return tx.commit()
}

// Watch makes the transaction fail, and its function be called again, if one of the keys changes before it is executed.
func (tx *Tx) Watch(keys ...string) error {
	if tx.ended {
		return errTxEnded
	}
	return wrap(tx.c.Watch(tx.ctx, keys...))
}

// Query executes a command at once, outside of the transaction: to read what the transaction depends on, after Watch.
func (tx *Tx) Query(args ...any) (Reply, error) {
	if tx.ended {
		return Reply{}, errTxEnded
	}
	r, err := tx.c.Do(tx.ctx, args...)
	return r, wrap(err)
}

// Do queues a command. Its reply is there when Tx has returned without an error, or with an Error; before that,
// accessors return ErrNoReply. []byte arguments must not be changed before Tx returns.
func (tx *Tx) Do(args ...any) *Reply {
	r := new(Reply)
	if err := tx.queue.Add(args...); err != nil && tx.err == nil {
		tx.err = wrap(err)
	}
	tx.replies = append(tx.replies, r)
	return r
}

func (tx *Tx) commit() (done bool, err error) {
	results, err := tx.c.Transact(tx.ctx, &tx.queue)
	if errors.Is(err, door.ErrConflict) {
		return false, nil
	}
	if err != nil {
		return true, wrap(err)
	}
	for i, result := range results {
		*tx.replies[i] = result
		if e := result.Err(); e != nil && err == nil {
			err = e
		}
	}
	return true, err
}
