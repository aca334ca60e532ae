package atomredis

import (
	"context"
	"errors"

	"github.com/atomredis/atomredis/resp"
	"github.com/atomredis/atomredis/server"
)

// ErrTxFailed is returned by DB.Tx if watched keys changed before the commit in every attempt.
var ErrTxFailed = errors.New("atomredis: watched keys have changed during every attempt of the transaction")

// txAttempts is how often Tx calls its function.
const txAttempts = 16

// Tx is a transaction that is being prepared. One goroutine uses it, until the function that it was given to returns; then Watch and Query
// fail.
type Tx struct {
	ctx     context.Context
	d       *server.Direct
	queue   encoder
	replies []*Reply
	err     error // of a command that could not be queued
	ended   bool  // d is not its own any more
}

var errTxEnded = errors.New("atomredis: the transaction has ended")

// Tx calls fn to prepare a transaction, and then executes what fn has queued with Tx.Do, all at once: nobody sees a part of it, and
// nobody's commands come between. If fn returns an error nothing is executed, and Tx returns it.
//
// If a key that fn gave to Tx.Watch has changed since, nothing is executed and fn is called again, up to 16 times in all; then Tx returns
// ErrTxFailed. A command that cannot be queued makes the whole fail. One that fails while the transaction is executed does not keep
// the others from being executed, as in Redis; Tx returns the first such Error, and the replies are there.
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
	d, err := db.srv.Direct(db.number)
	if err != nil {
		return true, wrap(err)
	}
	defer d.Release() // which closes the session if it is in the middle of a transaction, or watches keys
	tx := &Tx{ctx: ctx, d: d}
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
	args := [][]byte{[]byte("WATCH")}
	for _, k := range keys {
		args = append(args, []byte(k))
	}
	if err := tx.d.Control(tx.ctx, args); err != nil {
		return wrap(err)
	}
	raw, err := tx.d.Flush()
	if err != nil {
		return wrap(err)
	}
	return resp.NewReply(raw).Err()
}

// Query executes a command at once, outside of the transaction: to read what the transaction depends on, after Watch.
func (tx *Tx) Query(args ...any) (Reply, error) {
	if tx.ended {
		return Reply{}, errTxEnded
	}
	var e encoder
	if err := e.add(args); err != nil {
		return Reply{}, err
	}
	if err := tx.d.Run(tx.ctx, e.commands()[0]); err != nil {
		return Reply{}, wrap(err)
	}
	raw, err := tx.d.Flush()
	if err != nil {
		return Reply{}, wrap(err)
	}
	r := resp.NewReply(raw)
	return r, r.Err()
}

// Do queues a command. Its reply is there when Tx has returned without an error, or with an Error; before that, accessors return
// ErrNoReply. []byte arguments must not be changed before Tx returns.
func (tx *Tx) Do(args ...any) *Reply {
	r := new(Reply)
	if err := tx.queue.add(args); err != nil && tx.err == nil {
		tx.err = err
	}
	tx.replies = append(tx.replies, r)
	return r
}

func (tx *Tx) commit() (done bool, err error) {
	if err := tx.d.Control(tx.ctx, [][]byte{[]byte("MULTI")}); err != nil {
		return true, wrap(err)
	}
	for _, c := range tx.queue.commands() {
		if err := tx.d.Run(tx.ctx, c); err != nil {
			return true, wrap(err)
		}
	}
	if err := tx.d.Control(tx.ctx, [][]byte{[]byte("EXEC")}); err != nil {
		return true, wrap(err)
	}
	raw, err := tx.d.Flush()
	if err != nil {
		return true, wrap(err)
	}
	var r Reply
	for range 1 + len(tx.replies) { // what MULTI and the queued commands say
		if r, raw, err = resp.NextReply(raw); err != nil {
			return true, err
		}
		if err := r.Err(); err != nil {
			return true, err
		}
	}
	r = resp.NewReply(raw)
	if r.IsNull() {
		return false, nil
	}
	results, err := r.Slice()
	if err != nil {
		return true, err
	}
	for i, result := range results {
		*tx.replies[i] = result
		if e := result.Err(); e != nil && err == nil {
			err = e
		}
	}
	return true, err
}
