package memory

import (
	"context"
	"errors"

	"github.com/atomredis/atomredis/doors/door"
)

// ErrTxFailed is returned by DB.Tx if watched keys changed before the commit in every attempt.
var ErrTxFailed = errors.New("atomredis: watched keys have changed during every attempt of the transaction")

// txAttempts is how often Tx calls its function at most.
const txAttempts = 16

// Tx is a transaction in preparation. Only one goroutine may use it, until the function of DB.Tx returns; after that
// Watch and Query fail.
type Tx struct {
	ctx     context.Context
	c       door.Client
	queue   door.Batch
	replies []*Reply
	err     error // of a command that could not be queued
	ended   bool  // c is back in the pool
}

var errTxEnded = errors.New("atomredis: the transaction has ended")

// Tx calls fn to prepare a transaction, and then executes the commands that fn has queued with Tx.Do as one atomic
// step. If fn returns an error, no command is executed and Tx returns the error.
//
// If a key that fn gave to Tx.Watch has changed since, Tx executes nothing and calls fn again. After 16 calls Tx
// returns ErrTxFailed. If a command cannot be queued, the transaction fails. If a command fails during execution, the
// others are executed nevertheless, as in Redis; Tx returns the first such Error, and all replies are set.
func (db *DB) Tx(ctx context.Context, fn func(tx *Tx) error) error {
	for range txAttempts {
		if done, err := db.tryTx(ctx, fn); done {
			return err
		}
	}
	return ErrTxFailed
}

// tryTx makes one attempt; done is false if another one should follow.
func (db *DB) tryTx(ctx context.Context, fn func(tx *Tx) error) (done bool, err error) {
	c, err := db.client()
	if err != nil {
		return true, wrap(err)
	}
	defer c.Close() // ends the session if it still watches keys
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

// Watch makes the transaction start again, with a new call of its function, if one of the keys changes before the
// commit.
func (tx *Tx) Watch(keys ...string) error {
	if tx.ended {
		return errTxEnded
	}
	return wrap(tx.c.Watch(tx.ctx, keys...))
}

// Query executes a command at once, outside of the transaction. Use it after Watch to read the values that the
// transaction depends on.
func (tx *Tx) Query(args ...any) (Reply, error) {
	if tx.ended {
		return Reply{}, errTxEnded
	}
	r, err := tx.c.Do(tx.ctx, args...)
	return r, wrap(err)
}

// Do queues a command. Its reply is set when Tx has returned without an error or with an Error; until then its
// accessors return ErrNoReply. The caller must not change []byte arguments before Tx returns.
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
