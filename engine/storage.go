package engine

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/lists"
)

// This file is the keyspace's view of storage; package persist has the implementations.

// Journal receives the record of each guard.
type Journal interface {
	// Append takes the commands that repeat the changes of one guard at time now, in ms since 1970: RESP arrays of bulk
	// strings, starting in database 0 and with SELECT between databases. It is called while the guard's shards are
	// locked, so that the journal has the order of the changes. If commands is longer than maxKeptRecord it never
	// changes, and may be kept.
	Append(now int64, commands []byte)
}

// Head is the stored state of a key without a large value.
type Head struct {
	Type     Type
	Deadline int64 // ms since 1970; 0 is never
	// FieldDeadline is a time in ms since 1970 before which no field of a hash and no member of a set expires; 0 if none
	// ever does.
	FieldDeadline int64
	// Parts is the number under which the value's parts are stored, 0 if the value is stored whole.
	Parts uint64
	// Length is the length in bytes of a string with Parts.
	Length uint64
	// Count is the number of elements of a collection with Parts, 0 if unknown.
	Count uint64
	// FieldParts is the number under which the deadlines of fields or members of a value with Parts are stored, 0 if it
	// has none.
	FieldParts uint64
	// Blessed says that the key is never evicted.
	Blessed bool
	// External says that a value stored whole is outside the head. Reading a Head then does not return Blob.
	External bool
	// Blob is the stored form of a value stored whole.
	Blob []byte
}

// AllParts returns the numbers of all stored parts of the value.
func (h *Head) AllParts() []uint64 {
	switch {
	case h.FieldParts != 0:
		return []uint64{h.Parts, h.FieldParts}
	case h.Parts != 0:
		return []uint64{h.Parts}
	}
	return nil
}

// InlineLimit is the length in bytes of the longest stored form that is kept in a key's head.
const InlineLimit = 256

// Source has the values that are not in memory. Its methods may be called from any goroutine, under any guard.
type Source interface {
	// Head returns the stored head of a key; ok is false if the key is not stored.
	Head(space uint32, key string) (h Head, ok bool, err error)
	// Blob returns a value that is stored whole outside its head. The caller owns it.
	Blob(space uint32, key string) ([]byte, error)
	// Parts calls fn with the parts of a value in the byte order of their names, until fn fails. fn must not keep its
	// arguments.
	Parts(id uint64, fn func(name, data []byte) error) error
	// Part returns one part of a value; ok is false if no part has this name. The caller owns data.
	Part(id uint64, name []byte) (data []byte, ok bool, err error)
	// PartsBetween calls fn with consecutive parts of a value: from the last one not after from (if there is none, from
	// the first), up to to, until fn returns false; in reverse order if reverse is set. fn must not keep its arguments.
	PartsBetween(id uint64, from, to []byte, reverse bool, fn func(name, data []byte) bool) error
	// Snapshot returns a view of the present stored data. It does not change until it is closed, whatever checkpoints
	// write meanwhile.
	Snapshot() (SourceSnapshot, error)
}

// SourceSnapshot is a Source at one instant, for use by one goroutine.
type SourceSnapshot interface {
	Head(space uint32, key string) (h Head, ok bool, err error)
	Blob(space uint32, key string) ([]byte, error)
	Parts(id uint64, fn func(name, data []byte) error) error
	Close() error
}

// LoadError is the value of a Guard's panic when a stored value cannot be read. The callers of handlers recover it, so
// that handlers need no checks.
type LoadError struct {
	Key string
	Err error
}

func (e *LoadError) Error() string {
	return fmt.Sprintf("read the stored value of key %s: %v", strconv.Quote(e.Key), e.Err)
}

func (e *LoadError) Unwrap() error { return e.Err }

// value is a collection's interface for storage.
type value interface {
	// Large reports whether the value must be stored in parts.
	Large() bool
	// Track makes the value record its changes; all its parts count as changed.
	Track(l *delta.Log)
	walker
	// Log returns the log of a value stored in parts, nil if it is stored whole.
	Log() *delta.Log
	// AppendBlob appends the stored form of the whole value.
	AppendBlob(dst []byte) []byte
	// MemoryUsage returns how many bytes of memory the value takes, in constant time except for the groups of a stream.
	MemoryUsage() int
}

// walker is a value in parts, or some of its parts, that can be copied piece by piece.
type walker interface {
	delta.Parts
	// Attach makes the value record its changes; no part counts as changed. nil ends that.
	Attach(l *delta.Log)
	// Walk calls fn with the names of about count parts from c on, and returns where to continue. Parts that exist from
	// the first call to the last are visited at least once, whatever changes between the calls.
	Walk(c delta.Cursor, count int, fn func(name string)) (next delta.Cursor, more bool)
}

// unloaded replaces a value in an Entry while the value is in the store but not in memory. A string in memory that
// equals its stored parts has one too. There may be very many, so they are small.
type unloaded struct {
	*particulars        // most share those of the keyspace: see own
	parts        uint64 // as Head.Parts
	length       uint64 // as Head.Length or Head.Count
}

// particulars are the fields that few unloaded values need.
type particulars struct {
	ks         *Keyspace
	fieldParts uint64      // as Head.FieldParts
	by         *checkpoint // the checkpoint that stores it under parts; nil if it was stored at the start
	head       bool        // the value is in the key's head
	overdue    bool        // fields were due, and the value could not be read
	coming     *coming     // the read under way, nil if none; see fetch.go

	// The parts in memory of a value stored in parts; see elements.go.
	some  *partial // nil if none
	whole bool     // a stream with too much data beside its entries: only reading all of it works
}

// standIn returns a stand-in for a value that is stored in parts, with nothing in memory.
func (ks *Keyspace) standIn(parts, fieldParts, length uint64) *unloaded {
	s := &unloaded{ks.inParts, parts, length}
	if fieldParts != 0 {
		s.own().fieldParts = fieldParts
	}
	return s
}

// own returns particulars that may be changed.
func (s *unloaded) own() *particulars {
	if s.particulars == s.ks.inParts {
		own := *s.particulars
		s.particulars = &own
	}
	return s.particulars
}

// copied returns a copy. Its address identifies the value: a later one has another stand-in.
func (s *unloaded) copied() *unloaded {
	c, own := *s, *s.particulars
	c.particulars = &own
	return &c
}

// checkpoint represents a checkpoint, for the strings that it stores in parts. failed is protected by the keyspace's
// shards.
type checkpoint struct{ failed bool }

// load brings the value of an entry into memory. It first calls the guard's OnAway function if the holder can wait.
func (e *Entry) load() {
	s := e.unloaded()
	if g := s.ks.shards[e.shard].waits; g != nil && g.canWait() {
		g.onAway(&Away{DB: s.ks.spaces[e.space].db, Key: e.Key()})
	}
	if err := e.loadFrom(s); err != nil {
		panic(&LoadError{e.Key(), err})
	}
}

func (e *Entry) loadFrom(s *unloaded) error {
	v, err := s.ks.readStored(s.ks.whereStored(e, s))
	if err == nil {
		err = e.comeBack(s, v)
	}
	return err
}

// stored says where an unloaded value is stored.
type stored struct {
	*unloaded
	typ   Type
	space uint32 // the number of its space
	key   string
	logs  [2]*delta.Log // for changes of the data stored under parts and fieldParts
}

// whereStored returns where the value that s replaces is stored. The entry's shard is held.
func (ks *Keyspace) whereStored(e *Entry, s *unloaded) stored {
	at := stored{unloaded: s, typ: e.typ, space: ks.spaces[e.space].number, key: e.Key()}
	if s.parts != 0 && e.typ != String {
		at.logs[0] = delta.NewLog(s.parts, &ks.epochs)
		if s.fieldParts != 0 {
			at.logs[1] = delta.NewLog(s.fieldParts, &ks.epochs)
		}
	}
	return at
}

// storedValue is a value read from the store: a string or a collection.
type storedValue struct {
	text  []byte
	value value
}

// readStored reads a value. It needs no lock.
func (ks *Keyspace) readStored(at stored) (v storedValue, err error) {
	var blob []byte
	switch {
	case at.parts != 0 && at.typ == String:
		v.text, err = loadText(at.parts, at.length, ks.source.Parts)
		return v, err
	case at.parts != 0:
		v.value, err = ks.load(at.typ, at.parts, at.fieldParts, ks.source.Parts, at.log)
		return v, err
	case at.head:
		blob, err = headBlob(ks.source.Head, at.space, at.key)
	default:
		blob, err = ks.source.Blob(at.space, at.key)
	}
	if err != nil {
		return v, err
	}
	if at.typ == String {
		v.text = blob
		return v, nil
	}
	v.value, err = ks.decode(at.typ, blob)
	return v, err
}

var errNoValue = errors.New("its head in the store has no value")

// headBlob returns the value in the head of a key. read is like Source.Head. The caller owns the result.
func headBlob(read func(space uint32, key string) (Head, bool, error), space uint32, key string) ([]byte, error) {
	h, ok, err := read(space, key)
	if err == nil && (!ok || h.External || h.Parts != 0) {
		err = errNoValue
	}
	return slices.Clone(h.Blob), err
}

// comeBack gives an entry the value that s replaces.
func (e *Entry) comeBack(s *unloaded, v storedValue) error {
	ks := s.ks
	defer ks.resized(e, e.size())
	switch {
	case v.value != nil:
		if s.some != nil {
			var err error
			if v.value, err = s.some.complete(v.value); err != nil {
				return err
			}
		}
		e.setCollection(v.value)
	case s.parts != 0:
		e.flags &^= flagUnloaded
		e.trim()
		e.setLong(v.text)
		e.long().stored = s
	default:
		e.own(v.text)
	}
	ks.shards[e.shard].stats.Loaded++
	if ks.tiering {
		ks.enlist(e)
	}
	return nil
}

// load builds a value from its parts, which read returns for one or two numbers, as in Head. log returns the logs for
// its changes by these numbers.
func (ks *Keyspace) load(typ Type, parts, fieldParts uint64, read partsReader, log func(id uint64) *delta.Log) (value,
	error) {
	load := kinds[typ].load
	if load == nil {
		return nil, fmt.Errorf("a %s has no parts", typ)
	}
	return load(storedParts{parts, fieldParts, read, log, ks.storedListLimit()})
}

// decode gives an entry the value with the stored form blob, which it then owns.
func (e *Entry) decode(blob []byte, ks *Keyspace) error {
	if e.typ == String {
		e.own(blob)
		return nil
	}
	v, err := ks.decode(e.typ, blob)
	if err == nil {
		e.setCollection(v)
	}
	return err
}

// decode returns the collection with the stored form blob, which it then owns.
func (ks *Keyspace) decode(typ Type, blob []byte) (value, error) {
	if !typ.Known() {
		return nil, fmt.Errorf("unknown type %d", typ)
	}
	return kinds[typ].decode(blob, ks.storedListLimit())
}

func (ks *Keyspace) storedListLimit() lists.Limit { return lists.Limit(ks.listLimit.Load()) }

// appendBlob appends the stored form of a value that is in memory and stored whole.
func (e *Entry) appendBlob(dst []byte) []byte {
	if e.typ == String {
		return append(dst, e.Bytes()...)
	}
	return e.value().AppendBlob(dst)
}

// parts returns the number under which the value's parts are stored, 0 if it is stored whole.
func (e *Entry) parts() uint64 {
	switch {
	case e.flags&flagParts == 0:
		return 0
	case e.flags&flagUnloaded != 0:
		return e.unloaded().parts
	case e.typ == String:
		return e.long().stored.parts
	default:
		return e.value().Log().ID
	}
}

// fieldParts returns the number under which the field deadlines are stored, 0 if there is none.
func (e *Entry) fieldParts() uint64 {
	switch {
	case e.flags&flagParts == 0 || kinds[e.typ].fields == nil:
		return 0
	case e.flags&flagUnloaded != 0:
		return e.unloaded().fieldParts
	}
	if l := e.expiring().DeadlineIndex().Log(); l != nil {
		return l.ID
	}
	return 0
}

// appendCommand appends a command as a RESP array. For a long argument, the buffer grows by little more than needed.
func appendCommand(dst []byte, args [][]byte) []byte {
	dst = appendLength(dst, '*', len(args))
	for _, a := range args {
		if dst = appendLength(dst, '$', len(a)); len(a) > maxKeptRecord {
			dst = slices.Grow(dst, len(a)+len("\r\n"))
		}
		dst = append(dst, a...)
		dst = append(dst, '\r', '\n')
	}
	return dst
}

func appendLength(dst []byte, kind byte, n int) []byte {
	dst = strconv.AppendInt(append(dst, kind), int64(n), 10)
	return append(dst, '\r', '\n')
}
