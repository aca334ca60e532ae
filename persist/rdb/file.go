package rdb

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/atomredis/atomredis/engine"
)

// The start of a file: magic and four digits of the version, or of Valkey 9 and later magicValkey and three.
const (
	magic       = "REDIS"
	magicValkey = "VALKEY"
	headLength  = len(magic) + 4
)

// MagicLength is the number of bytes that IsFile needs.
const MagicLength = len(magicValkey)

// IsFile reports whether a file with this start claims to be an RDB file.
func IsFile(head []byte) bool {
	return bytes.HasPrefix(head, []byte(magic)) || bytes.HasPrefix(head, []byte(magicValkey))
}

// Key is a key in a file.
type Key struct {
	DB  int
	Key []byte
	// Value is a []byte or a collection.
	Value any
	// Deadline is when the key expires, in ms since 1970; 0 if it does not.
	Deadline int64
	// Idle is the number of seconds without use, -1 if unknown.
	Idle int64
	// Blessed says that the key is never evicted.
	Blessed bool
}

// LeftOut is a key in a file whose value is of an UnknownType.
type LeftOut struct {
	DB  int
	Key []byte
	*UnknownType
}

// Function is the source of a library of functions in a file.
type Function string

// Aux is information in a file about its origin.
type Aux struct{ Name, Value string }

// Reader reads a file once, from start to end.
type Reader struct {
	d     decoder
	lim   Limits
	began bool
	ended bool
	db    int
	// module is the last returned item, if that is a *Module.
	module *Module
	// LeaveOut makes Next return a *LeftOut for a value of an UnknownType, if its end is marked. Release candidates of
	// Redis 4.0 do not mark it.
	LeaveOut bool
	// Version is the file's version, known after the first call of Next.
	Version int
	// Empty counts the collections without elements that were skipped.
	Empty int
	// Announced is the number of keys in the databases begun so far, according to the file.
	Announced int64
}

// NewReader returns a Reader of r's data. It may read beyond the end of the file; Rest returns the surplus.
func NewReader(r io.Reader, lim Limits) *Reader { return &Reader{d: decoder{r: r}, lim: lim} }

// Next returns the next item: a *Key, a *LeftOut, a Function, an Aux or a *Module; io.EOF after a proper end of the file.
// The item is valid until the next call, except collections, which the caller owns.
func (r *Reader) Next() (any, error) {
	if r.ended {
		return nil, io.EOF
	}
	if !r.began {
		if err := r.header(); err != nil {
			return nil, err
		}
		r.began = true
	}
	if r.module != nil {
		if err := r.module.skip(); err != nil {
			return nil, err
		}
		r.module = nil
	}
	key := &Key{Idle: -1}
	for {
		item, err := r.next(key)
		switch {
		case errors.Is(err, errEmpty):
			r.Empty++
			key = &Key{Idle: -1}
		case err == io.EOF:
			return nil, io.EOF
		case err != nil && len(key.Key) > 0:
			left, err := r.leaveOut(key, err)
			if err == nil {
				return left, nil
			}
			return nil, fmt.Errorf("key %s in database %d: %w", strconv.Quote(string(key.Key)), r.db, err)
		case err != nil || item != nil:
			return item, err
		}
	}
}

// leaveOut skips the value of a key that failed with err, or returns err if the value cannot be left out.
func (r *Reader) leaveOut(key *Key, err error) (*LeftOut, error) {
	unknown, ok := errors.AsType[*UnknownType](err)
	if !ok || !r.LeaveOut || !unknown.marked {
		return nil, err
	}
	m := Module{Name: unknown.Module, d: &r.d}
	return &LeftOut{key.DB, key.Key, unknown}, m.skip()
}

// Rest returns the data read beyond the end of the file.
func (r *Reader) Rest() []byte { return r.d.buf[r.d.pos:] }

func (r *Reader) header() error {
	b, err := r.d.fixed(headLength)
	if err != nil {
		return err
	}
	digits, ok := bytes.CutPrefix(b, []byte(magic))
	if !ok {
		digits, r.d.valkey = bytes.CutPrefix(b, []byte(magicValkey))
	}
	version, err := strconv.ParseUint(string(digits), 10, 16)
	if err != nil || version == 0 || !ok && !r.d.valkey {
		return corrupt("not an RDB file")
	}
	if !r.d.knows(version) {
		return fmt.Errorf("%w: version %d of RDB files", ErrUnsupported, version)
	}
	r.Version = int(version)
	return nil
}

// next reads an opcode with its data, or a key; the item is nil if there is nothing to return.
func (r *Reader) next(key *Key) (any, error) {
	d := &r.d
	d.recycle()
	op, err := d.byte()
	if err != nil {
		return nil, err
	}
	switch op {
	case opEOF:
		return nil, r.end()
	case opSelectDB:
		n, err := d.length()
		if err == nil && n > math.MaxInt32 {
			err = corrupt("database %d", n)
		}
		r.db = int(n)
		return nil, err
	case opResize: // numbers of keys and of expiring keys
		var keys, expiring uint64
		err := d.numbers(&keys, &expiring)
		r.Announced += int64(min(keys, math.MaxInt32))
		return nil, err
	case opSlotInfo: // the same for a slot of a cluster
		var n uint64
		return nil, d.numbers(&n, &n, &n)
	case opSlotImport: // the name of a task that imports slots, and their ranges
		if !d.valkey {
			break
		}
		if _, err := d.string(); err != nil {
			return nil, err
		}
		return nil, d.elements(func() error {
			var n uint64
			return d.numbers(&n, &n)
		})
	case opBlessed:
		if d.valkey {
			break
		}
		key.Blessed = true
		return nil, nil
	case opTemplate:
		if d.valkey {
			break
		}
		return nil, d.template()
	case opExpireMillis:
		key.Deadline, err = d.millis()
		return nil, err
	case opExpire:
		b, err := d.fixed(4)
		if err == nil {
			key.Deadline = int64(int32(binary.LittleEndian.Uint32(b))) * 1000
		}
		return nil, err
	case opIdle:
		n, err := d.length()
		if n > math.MaxInt64 {
			n = math.MaxInt64
		}
		key.Idle = int64(n)
		return nil, err
	case opFreq:
		_, err := d.byte()
		return nil, err
	case opAux:
		name, err := d.string()
		if err != nil {
			return nil, err
		}
		value, err := d.string()
		return Aux{string(name), string(value)}, err
	case opModuleAux:
		r.module, err = d.module()
		return r.module, err
	case opFunction:
		code, err := d.string()
		return Function(code), err
	case opFunctionOld:
		code, err := d.oldFunction()
		return Function(code), err
	}
	name, err := d.string()
	if err != nil {
		return nil, err
	}
	key.DB, key.Key = r.db, bytes.Clone(name)
	key.Value, err = d.value(op, &r.lim)
	return key, err
}

// end checks the checksum. Versions below 5 have none; in others it may be 0.
func (r *Reader) end() error {
	if r.Version >= 5 {
		want := r.d.sum()
		b, err := r.d.fixed(8)
		if err != nil {
			return err
		}
		if sum := binary.LittleEndian.Uint64(b); sum != 0 && sum != want && !r.lim.SkipChecksum {
			return fmt.Errorf("%w: the checksum of the file is %#x and not %#x", ErrCorrupt, want, sum)
		}
	}
	r.ended = true
	return io.EOF
}

// Begin writes the head of a file of a version with information about its origin.
func (e *Encoder) Begin(version int, aux ...Aux) {
	e.buf = fmt.Appendf(e.buf, "%s%04d", magic, version)
	e.about(aux)
}

// BeginValkey is Begin for a file in the form of Valkey 9, in which hashes with fields that expire have another form. A Valkey reads
// no newer file of Redis.
func (e *Encoder) BeginValkey(aux ...Aux) {
	e.valkey = true
	e.buf = fmt.Appendf(e.buf, "%s%03d", magicValkey, OldestValkey)
	e.about(aux)
}

func (e *Encoder) about(aux []Aux) {
	for _, a := range aux {
		e.buf = append(e.buf, opAux)
		e.string([]byte(a.Name))
		e.string([]byte(a.Value))
	}
}

// Function writes the source of a library.
func (e *Encoder) Function(code string) {
	e.buf = append(e.buf, opFunction)
	e.string([]byte(code))
	e.written()
}

// SelectDB starts a database, and writes its numbers of keys and of expiring keys.
func (e *Encoder) SelectDB(db, keys, expires int) {
	e.buf = append(e.buf, opSelectDB)
	e.length(uint64(db))
	e.buf = append(e.buf, opResize)
	e.length(uint64(keys))
	e.length(uint64(expires))
}

// Key writes a key with its value and deadline. A value without a form is an error of the file.
func (e *Encoder) Key(entry *engine.Entry) {
	k, form, err := kindOf(entry)
	if err != nil {
		e.err = cmp.Or(e.err, err)
		return
	}
	if at := entry.Deadline(); at != 0 {
		e.buf = append(e.buf, opExpireMillis)
		e.millis(at)
	}
	if entry.Blessed() {
		e.buf = append(e.buf, opBlessed)
	}
	if e.valkey && form.number == typeHashExpire {
		e.buf = append(e.buf, typeHashValkey)
		e.string([]byte(entry.Key()))
		e.valkeyHash(entry.Hash())
		return
	}
	e.buf = append(e.buf, form.number)
	e.string([]byte(entry.Key()))
	k.write(e, entry)
	e.written()
}

// Err returns the first error so far, of the io.Writer or of Key.
func (e *Encoder) Err() error { return e.err }

// End writes the end of a file, and returns the first error, as Err does.
func (e *Encoder) End() error {
	e.buf = append(e.buf, opEOF)
	e.flush()
	e.buf = binary.LittleEndian.AppendUint64(e.buf, e.crc)
	e.flush()
	return e.err
}
