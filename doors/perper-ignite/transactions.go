package perperignite

import (
	"bytes"
	"strconv"
	"time"

	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
	"github.com/atomredis/atomredis/internal/wire/ignite"
	"github.com/atomredis/atomredis/resp"
)

// Transactions keep their writes in the door until their commit, which is one command: PERPER.COMMIT. Pessimistic ones
// lock keys in the door meanwhile. A request that must wait for a lock is parked, and executed again when the lock is
// there; the peer's other requests go on. The end of a peer ends its transactions.

func init() { // not in the table itself, because they execute parked requests with it
	operations[opStartTransaction] = operation{do: (*request).startTransaction}
	operations[opEndTransaction] = operation{do: (*request).endTransaction}
}

// Limits of the transactions of a peer.
const (
	maxTransactions   = 128
	maxTransactionAge = 5 * time.Minute // also without a timeout of the client
	maxLabel          = 1 << 10
	// entryCost is what an entry of a transaction takes besides its key and values, at most.
	entryCost = 512
)

// The concurrency and the isolation of a transaction on the wire.
const (
	optimistic = iota
	pessimistic
)

const (
	readCommitted = iota
	repeatableRead
	serializable
)

// transaction is a transaction of a peer. Its peer's mu protects it, except for held and waiting, which belong to the
// table of locks.
type transaction struct {
	p           *peer
	id          int32
	label       string
	pessimistic bool
	isolation   int
	entries     map[lockedKey]*txEntry
	writes      []*txEntry       // in the order of their first writes
	names       map[int32]string // of the caches that it uses
	size        int              // bytes of its entries
	failed      error            // why it can only be rolled back; nil if it can go on
	parked      *ignite.Request  // the request that waits for a lock; nil for none

	granted chan struct{} // has an element when a lock was granted
	done    chan struct{} // closed at its end

	held    []*keyLock
	waiting *keyLock
}

// txEntry is a key in a transaction.
type txEntry struct {
	lockedKey
	known   bool   // old was read
	checked bool   // the commit needs old to be the value still
	old     []byte // nil for none
	written bool
	value   []byte // that was written; nil for a removed key
	expiry  *binary.Expiry
	kept    bool // the transaction has it
	cost    int  // that is part of the transaction's size
}

// startTransaction begins a transaction, and answers with its id.
func (r *request) startTransaction() error {
	concurrency, isolation, timeout, label := r.Byte(), r.Byte(), r.Int64(), r.String()
	if err := r.end(); err != nil {
		return err
	}
	p := r.p
	switch {
	case concurrency > pessimistic || isolation > serializable || timeout < 0:
		return failed("The transaction has an unknown concurrency or isolation, or a negative timeout")
	case len(label) > maxLabel:
		return failed("The label of the transaction is too long")
	case len(p.transactions) >= maxTransactions:
		return &failure{ignite.StatusManyTransactions, "Too many open transactions: " + strconv.Itoa(len(p.transactions))}
	}
	p.lastTransaction++
	t := &transaction{p: p, id: p.lastTransaction, label: label, pessimistic: concurrency == pessimistic,
		isolation: int(isolation), entries: map[lockedKey]*txEntry{}, names: map[int32]string{},
		granted: make(chan struct{}, 1), done: make(chan struct{})}
	p.transactions[t.id] = t
	p.door.transactions.Add(1)
	age := maxTransactionAge
	if timeout > 0 && timeout < int64(maxTransactionAge/time.Millisecond) {
		age = time.Duration(timeout) * time.Millisecond
	}
	p.conn.Go(func() { t.run(age) })
	r.appendInt32(int(t.id))
	return nil
}

// run executes parked requests when they have their locks, and lets the transaction time out.
func (t *transaction) run(age time.Duration) {
	timer := time.NewTimer(age)
	defer timer.Stop()
	p := t.p
	for {
		var err error
		select {
		case <-t.done:
			return
		case <-p.conn.Context().Done():
			return
		case <-t.granted:
			err = t.resume()
		case <-timer.C:
			err = t.expire()
		}
		if err == nil {
			err = p.outbox.flush()
		}
		if err != nil {
			p.conn.Close()
			return
		}
	}
}

// resume executes the parked request.
func (t *transaction) resume() error {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	r := t.unpark()
	if r == nil {
		return nil
	}
	return t.p.answer(*r)
}

// park keeps a request until a lock is granted.
func (t *transaction) park(in ignite.Request) error {
	if err := t.grow(len(in.Body)); err != nil {
		t.p.door.locks.release(t)
		return t.abort(err)
	}
	in.Body = bytes.Clone(in.Body)
	t.parked = &in
	return nil
}

// unpark returns the parked request, which is then no longer parked; nil without one.
func (t *transaction) unpark() *ignite.Request {
	r := t.parked
	if t.parked = nil; r != nil {
		t.grow(-len(r.Body))
	}
	return r
}

// expire rolls the transaction back. Its id remains until the client ends it.
func (t *transaction) expire() error {
	p := t.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.transactions[t.id] != t || t.failed != nil {
		return nil
	}
	parked := t.unpark()
	err := t.abort(t.failure("Cache transaction timed out, and was rolled back"))
	if parked == nil {
		return nil
	}
	return p.refuse(parked.ID, err)
}

// failure returns an error with the label of the transaction.
func (t *transaction) failure(text string) error {
	return failed(text + " [id=" + strconv.Itoa(int(t.id)) + ", label=" + t.label + "]")
}

// abort forgets what the transaction has done. It returns why, with which all further requests fail.
func (t *transaction) abort(why error) error {
	t.failed = why
	t.clear()
	return why
}

// clear releases the locks and the memory of the transaction.
func (t *transaction) clear() {
	t.p.door.locks.release(t)
	t.p.transactionBytes -= t.size
	t.size, t.entries, t.writes, t.parked = 0, nil, nil, nil
}

// end removes the transaction.
func (t *transaction) end() {
	t.clear()
	delete(t.p.transactions, t.id)
	t.p.door.transactions.Add(-1)
	close(t.done)
}

// grow adds to the size of the transaction.
func (t *transaction) grow(n int) error {
	if n > 0 && t.p.transactionBytes+n > maxKept {
		return t.failure("The transactions of the connection are too large")
	}
	t.size += n
	t.p.transactionBytes += n
	return nil
}

// transaction returns an open transaction.
func (p *peer) transaction(id int32) (*transaction, error) {
	t := p.transactions[id]
	if t == nil {
		return nil, &failure{ignite.StatusNoTransaction, "Transaction with id " + strconv.Itoa(int(id)) + " not found"}
	}
	return t, nil
}

// endTransaction commits a transaction or rolls it back.
func (r *request) endTransaction() error {
	id, commit := r.Int32(), r.Bool()
	if err := r.end(); err != nil {
		return err
	}
	t, err := r.p.transaction(id)
	if err != nil {
		return err
	}
	parked := t.unpark()
	defer t.end()
	if parked != nil {
		err := t.failure("The transaction has ended while a request waited for a lock")
		if gone := r.p.refuse(parked.ID, err); gone != nil || commit {
			return err
		}
	}
	if !commit {
		return nil
	}
	if t.failed != nil {
		return t.failed
	}
	return t.commit()
}

// commit executes the writes, if what the transaction has read is still so.
func (t *transaction) commit() error {
	if len(t.writes) == 0 && (t.pessimistic || t.isolation != serializable) {
		return nil
	}
	if len(t.writes) > 0 {
		if err := t.p.allowed(opPut); err != nil {
			return err
		}
	}
	args := []any{"PERPER.COMMIT"}
	for _, e := range t.entries {
		switch {
		case e.checked && e.old == nil:
			args = append(args, "IFMISSING", t.names[e.cache], e.key)
		case e.checked:
			args = append(args, "IF", t.names[e.cache], e.key, e.old)
		}
	}
	for _, e := range t.writes {
		if e.value == nil {
			args = append(args, "REMOVE", t.names[e.cache], e.key)
			continue
		}
		args = append(args, "PUT", t.names[e.cache], e.key, e.value)
		if e.expiry != nil {
			args = append(args, "EXPIRY", e.expiry.Created, e.expiry.Updated, e.expiry.Accessed)
		}
	}
	if len(args) == 1 {
		return nil
	}
	reply, err := t.p.do(append(args, raw)...)
	if err != nil {
		return err
	}
	return t.committed(reply)
}

// committed returns an error if a condition of the commit did not hold.
func (t *transaction) committed(reply resp.Reply) error {
	n, err := reply.Int()
	if err != nil || n > 0 {
		return err
	}
	if !t.pessimistic {
		return t.failure("Failed to prepare transaction, read/write conflict or lock conflict")
	}
	return t.failure("Failed to commit the transaction, a key that it has locked was changed by another client")
}
