package perperignite

import (
	"bytes"
	le "encoding/binary"
	"errors"

	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
	"github.com/atomredis/atomredis/internal/wire/ignite"
)

// This file has the operations on keys in a transaction.

// errParked says that a request waits for a lock, and has no reply yet.
var errParked = errors.New("the request waits for a lock")

// txOperation is an operation on keys in a transaction.
type txOperation struct {
	objects int  // of each key: the key itself, and values
	many    bool // the request has several keys with their number before them
	writes  bool
	reads   bool // it needs the present values
	// do changes the entries of the keys, and appends the reply. values are the objects after each key.
	do func(r *request, t *transaction, entries []*txEntry, values [][]byte)
}

// inTransaction are the operations in transactions. Others ignore the transaction, as those of Ignite do.
var inTransaction = map[int16]txOperation{
	1000: {1, false, false, true, func(r *request, _ *transaction, e []*txEntry, _ [][]byte) { r.appendValue(e[0]) }},
	1001: {2, false, true, false, func(r *request, t *transaction, e []*txEntry, v [][]byte) { t.write(r, e[0], v[0]) }},
	1002: {2, false, true, true, func(r *request, t *transaction, e []*txEntry, v [][]byte) {
		r.appendBool(e[0].now() == nil)
		t.writeIf(e[0].now() == nil, r, e[0], v[0])
	}},
	1003: {1, true, false, true, (*request).appendAll},
	1004: {2, true, true, false, func(r *request, t *transaction, entries []*txEntry, v [][]byte) {
		for i, e := range entries {
			t.write(r, e, v[i])
		}
	}},
	1005: {2, false, true, true, func(r *request, t *transaction, e []*txEntry, v [][]byte) {
		r.appendValue(e[0])
		t.write(r, e[0], v[0])
	}},
	1006: {2, false, true, true, func(r *request, t *transaction, e []*txEntry, v [][]byte) {
		r.appendValue(e[0])
		t.writeIf(e[0].now() != nil, r, e[0], v[0])
	}},
	1007: {1, false, true, true, func(r *request, t *transaction, e []*txEntry, _ [][]byte) {
		r.appendValue(e[0])
		t.write(r, e[0], nil)
	}},
	1008: {2, false, true, true, func(r *request, t *transaction, e []*txEntry, v [][]byte) {
		r.appendValue(e[0])
		t.writeIf(e[0].now() == nil, r, e[0], v[0])
	}},
	1009: {2, false, true, true, func(r *request, t *transaction, e []*txEntry, v [][]byte) {
		r.appendBool(e[0].now() != nil)
		t.writeIf(e[0].now() != nil, r, e[0], v[0])
	}},
	1010: {3, false, true, true, func(r *request, t *transaction, e []*txEntry, v [][]byte) {
		same := bytes.Equal(e[0].now(), v[0])
		r.appendBool(same)
		t.writeIf(same, r, e[0], v[1])
	}},
	1011: {1, false, false, true, func(r *request, _ *transaction, e []*txEntry, _ [][]byte) { r.appendBool(e[0].now() != nil) }},
	1012: {1, true, false, true, func(r *request, _ *transaction, entries []*txEntry, _ [][]byte) {
		all := true
		for _, e := range entries {
			all = all && e.now() != nil
		}
		r.appendBool(all)
	}},
	1016: {1, false, true, true, func(r *request, t *transaction, e []*txEntry, _ [][]byte) {
		r.appendBool(e[0].now() != nil)
		t.writeIf(e[0].now() != nil, r, e[0], nil)
	}},
	1017: {2, false, true, true, func(r *request, t *transaction, e []*txEntry, v [][]byte) {
		same := bytes.Equal(e[0].now(), v[0])
		r.appendBool(same)
		t.writeIf(same, r, e[0], nil)
	}},
	1018: {1, true, true, false, func(r *request, t *transaction, entries []*txEntry, _ [][]byte) {
		for _, e := range entries {
			t.write(r, e, nil)
		}
	}},
}

// now returns the value of the key for the transaction; nil for none.
func (e *txEntry) now() []byte {
	if e.written {
		return e.value
	}
	return e.old
}

// appendValue appends the value of a key to the reply.
func (r *request) appendValue(e *txEntry) {
	if v := e.now(); v != nil {
		r.out = binary.AppendWrapped(r.out, v)
	} else {
		r.out = binary.AppendNull(r.out)
	}
}

// appendAll appends the keys that have values.
func (r *request) appendAll(_ *transaction, entries []*txEntry, _ [][]byte) {
	start, found := len(r.out), 0
	r.appendInt32(0)
	for _, e := range entries {
		if v := e.now(); v != nil {
			found++
			r.out = binary.AppendWrapped(binary.AppendWrapped(r.out, []byte(e.key)), v)
		}
	}
	le.LittleEndian.PutUint32(r.out[start:], uint32(found))
}

// ofTransaction reads the id of a transaction, and executes an operation in it.
func (r *request) ofTransaction(in ignite.Request) (handled bool, err error) {
	id := r.Int32()
	if err := r.Err(); err != nil {
		return true, err
	}
	t, err := r.p.transaction(id)
	if err != nil {
		return true, err
	}
	return r.inTransaction(in, t)
}

// inTransaction executes an operation in a transaction. handled is false for operations that ignore
// the transaction. The error is errParked if it waits for a lock.
func (r *request) inTransaction(in ignite.Request, t *transaction) (handled bool, err error) {
	if in.Op == opRemoveAll {
		return true, t.failure("Removing all keys is not supported in a transaction")
	}
	op, ok := inTransaction[in.Op]
	if !ok {
		return false, nil
	}
	switch {
	case t.failed != nil:
		return true, t.failed
	case t.parked != nil:
		return true, t.failure("An earlier request of the transaction waits for a lock")
	}
	keys, values, err := r.keysAndValues(op)
	if err != nil {
		return true, err
	}
	if err := t.use(r.cache); err != nil {
		return true, err
	}
	entries, locked, err := t.enter(op, r.cache, keys)
	switch {
	case err != nil:
		return true, err
	case !locked:
		if err := t.park(in); err != nil {
			return true, err
		}
		return true, errParked
	}
	if err := t.load(r, op, entries); err != nil {
		return true, err
	}
	op.do(r, t, entries, values)
	return true, t.keep(entries)
}

// keysAndValues reads the objects of an operation.
func (r *request) keysAndValues(op txOperation) (keys, values [][]byte, err error) {
	n := 1
	if op.many {
		n = r.Count(op.objects)
	}
	for range n {
		keys = append(keys, r.Object())
		for range op.objects - 1 {
			values = append(values, r.Object())
		}
	}
	if err := r.end(); err != nil {
		return nil, nil, err
	}
	for _, objects := range [][][]byte{keys, values} {
		for _, o := range objects {
			if binary.Code(o[0]) == binary.Null {
				return nil, nil, failed("BADOBJECT keys and values cannot be null")
			}
		}
	}
	return keys, values, nil
}

// use checks that a cache exists when the transaction uses it for the first time.
func (t *transaction) use(cache int32) error {
	if _, ok := t.names[cache]; ok {
		return nil
	}
	if _, err := t.p.onCache(cache, "PERPER.LEN"); err != nil {
		return err
	}
	known, _ := t.p.door.caches.Load(cache)
	t.names[cache], _ = known.(string)
	return nil
}

// enter returns the entries of keys. A pessimistic transaction locks the keys that it writes, and with more isolation
// those that it reads. locked is false if it must wait for one of them.
func (t *transaction) enter(op txOperation, cache int32, keys [][]byte) (entries []*txEntry, locked bool, err error) {
	lock := t.pessimistic && (op.writes || t.isolation != readCommitted)
	for _, key := range keys {
		k := lockedKey{cache, string(key)}
		e := t.entries[k]
		if e == nil {
			e = &txEntry{lockedKey: k}
			if lock || op.writes || t.isolation != readCommitted {
				if err := t.add(e); err != nil {
					return nil, false, err
				}
			}
		}
		if lock && !t.p.door.locks.lock(t, k) {
			return nil, false, nil
		}
		entries = append(entries, e)
	}
	return entries, true, nil
}

// add makes an entry part of the transaction.
func (t *transaction) add(e *txEntry) error {
	if err := t.grow(entryCost + 2*len(e.key)); err != nil {
		return t.abort(err)
	}
	e.kept = true
	t.entries[e.lockedKey] = e
	return nil
}

// load reads the values that an operation needs and the transaction does not have.
func (t *transaction) load(r *request, op txOperation, entries []*txEntry) error {
	if !op.reads {
		return nil
	}
	var missing []*txEntry
	var keys []string
	for _, e := range entries {
		if !e.written && (!e.known || t.isolation == readCommitted && !e.checked) {
			missing, keys = append(missing, e), append(keys, e.key)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	reply, err := t.p.onCache(r.cache, "PERPER.MGET", len(keys), keys, r.tail())
	if err != nil {
		return err
	}
	values, err := reply.Slice()
	if err != nil {
		return err
	}
	for i, e := range missing {
		e.old = nil
		if !values[i].IsNull() {
			v, err := values[i].Bytes()
			if err != nil {
				return err
			}
			e.old = bytes.Clone(v)
		}
		e.known = true
		e.checked = e.checked || e.kept && (t.pessimistic || t.isolation == serializable)
	}
	return nil
}

// writeIf is write if a condition holds.
func (t *transaction) writeIf(holds bool, r *request, e *txEntry, value []byte) {
	if holds {
		t.write(r, e, value)
	}
}

// write sets the value of a key in the transaction; nil removes the key.
func (t *transaction) write(r *request, e *txEntry, value []byte) {
	if !e.written {
		e.written = true
		t.writes = append(t.writes, e)
	}
	e.value, e.expiry = bytes.Clone(value), r.expiry
}

// keep counts the memory of entries. If that is too much, it aborts the transaction.
func (t *transaction) keep(entries []*txEntry) error {
	for _, e := range entries {
		if !e.kept {
			continue
		}
		cost := len(e.old) + len(e.value)
		if err := t.grow(cost - e.cost); err != nil {
			return t.abort(err)
		}
		e.cost = cost
	}
	return nil
}
