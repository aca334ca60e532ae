package engine

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/lists"
)

// This file is how the keyspace sees what stores it; package persist has the implementations.

// Journal takes the record of each guard.
type Journal interface {
	// Append takes the commands that repeat the changes of one guard at time now, in ms since 1970: RESP arrays of bulk
	// strings one after the other, beginning in database 0 and with SELECT between databases. It is called while the
	// guard's shards are locked, so that the order of the journal is that of the changes. If commands is longer than
	// maxKeptRecord it never changes, and may be kept.
	Append(now int64, commands []byte)
}

// Head is the stored state of a key without a large value.
type Head struct {
	Type     Type
	Deadline int64 // ms since 1970; 0 is never
	// FieldDeadline is a time in ms since 1970 before which no field of a hash expires; 0 if none ever does.
	FieldDeadline int64
	// Parts is the number under which the parts of the value are stored, 0 if the value is stored whole.
	Parts uint64
	// Length is the length in bytes of a string that has Parts.
	Length uint64
	// Count is how many elements a collection has that has Parts, 0 if that is not known.
	Count uint64
	// FieldParts is the number under which the deadlines of the fields of a hash are stored that has Parts, 0 if it has
	// none.
	FieldParts uint64
	// External says that a value that is stored whole is kept apart from the head. Reading a Head then does not give Blob.
	External bool
	// Blob is the stored form of a value that is stored whole.
	Blob []byte
}

// AllParts returns the numbers under which anything of the value is stored.
func (h *Head) AllParts() []uint64 {
	switch {
	case h.FieldParts != 0:
		return []uint64{h.Parts, h.FieldParts}
	case h.Parts != 0:
		return []uint64{h.Parts}
	}
	return nil
}

// InlineLimit is the length of the longest stored form, in bytes, that is kept in the head of its key.
const InlineLimit = 256

// Source is where values are that are not in memory. Its methods may be called from any goroutine, under any guard.
type Source interface {
	// Head returns the stored head of a key; ok is false if the key is not stored.
	Head(space uint32, key string) (h Head, ok bool, err error)
	// Blob returns a value that is stored whole and apart from its head. The caller owns it.
	Blob(space uint32, key string) ([]byte, error)
	// Parts calls fn with the parts of a value in the byte order of their names, until it fails. fn keeps neither
	// argument.
	Parts(id uint64, fn func(name, data []byte) error) error
	// Part returns one part of a value; ok is false if there is none of that name. The caller owns it.
	Part(id uint64, name []byte) (data []byte, ok bool, err error)
	// PartsBetween calls fn with the parts of a value from the last one that is not behind from (if there is none, from
	// the first one), up to to, until it returns false; with the last one first if reverse is set. fn keeps neither
	// argument.
	PartsBetween(id uint64, from, to []byte, reverse bool, fn func(name, data []byte) bool) error
	// Snapshot returns a view of the stored data at this moment. It does not change until it is closed, whatever checkpoints
	// write meanwhile.
	Snapshot() (SourceSnapshot, error)
}

// SourceSnapshot is what a Source had at one moment, for one goroutine.
type SourceSnapshot interface {
	Head(space uint32, key string) (h Head, ok bool, err error)
	Blob(space uint32, key string) ([]byte, error)
	Parts(id uint64, fn func(name, data []byte) error) error
	Close() error
}

// LoadError is the value of a Guard's panic if a stored value cannot be read. So no handler has to check for it; the caller
// of handlers recovers it.
type LoadError struct {
	Key string
	Err error
}

func (e *LoadError) Error() string {
	return fmt.Sprintf("read the stored value of key %s: %v", strconv.Quote(e.Key), e.Err)
}

func (e *LoadError) Unwrap() error { return e.Err }

// value is a collection as storage sees it.
type value interface {
	// Large reports whether the value must be stored in parts.
	Large() bool
	// Track makes the value note its changes; all its parts count as changed.
	Track(l *delta.Log)
	walker
	// Log returns the record of changes of a value that is stored in parts, nil if it is stored whole.
	Log() *delta.Log
	// AppendBlob appends the stored form of the whole value.
	AppendBlob(dst []byte) []byte
	// MemoryUsage returns how many bytes of memory the value takes, in constant time but for the groups of a stream.
	MemoryUsage() int
}

// walker is a value in parts, or a part of one, that can be copied piece by piece.
type walker interface {
	delta.Parts
	// Attach makes the value note its changes; no part counts as changed. nil ends that.
	Attach(l *delta.Log)
	// Walk calls fn with the names of about count parts from c on, and returns where to go on. Parts that are there from
	// the first call to the last are visited at least once, whatever changes between the calls.
	Walk(c delta.Cursor, count int, fn func(name string)) (next delta.Cursor, more bool)
}

// unloaded stands in an Entry for a value that is in the store and not in memory. A string that is in memory and as it
// is stored in parts has one too. There may be very many of them, so they are small.
type unloaded struct {
	*particulars        // most have those that are common to all values of the keyspace: see own
	parts        uint64 // as Head.Parts
	length       uint64 // as Head.Length or Head.Count
}

// particulars are what few values have that are not in memory.
type particulars struct {
	ks         *Keyspace
	fieldParts uint64      // as Head.FieldParts
	by         *checkpoint // that stores it under parts; nil if it was stored at the start
	head       bool        // the value is in the head of the key
	overdue    bool        // fields are due, and the value could not be read when they were
	coming     *coming     // who reads it, nil if nobody does; see fetch.go

	// The parts read so far of a value that is stored in parts; see elements.go.
	some  *partial // nil if there is none
	whole bool     // it is a stream with too much beside its entries: all of it must be read
}

// standIn returns what stands for a value of which nothing is known but where it is stored in parts.
func (ks *Keyspace) standIn(parts, fieldParts, length uint64) *unloaded {
	s := &unloaded{ks.inParts, parts, length}
	if fieldParts != 0 {
		s.own().fieldParts = fieldParts
	}
	return s
}

// own returns the particulars, to be changed.
func (s *unloaded) own() *particulars {
	if s.particulars == s.ks.inParts {
		own := *s.particulars
		s.particulars = &own
	}
	return s.particulars
}

// copied returns a copy, by which it is known whether an entry has got another value meanwhile.
func (s *unloaded) copied() *unloaded {
	c, own := *s, *s.particulars
	c.particulars = &own
	return &c
}

// checkpoint is one that has begun, as the strings know it that it stores in parts. failed is protected by the shards
// of the keyspace.
type checkpoint struct{ failed bool }

// load brings the value of an entry into memory. Before that it tells the holder of the guard, who may wait for it: see
// Guard.OnAway.
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

// stored says where the value of an entry is that is not in memory.
type stored struct {
	*unloaded
	typ   Type
	space uint32 // its number
	key   string
	logs  [2]*delta.Log // for the changes of what is stored under parts and fieldParts
}

// whereStored returns where the value of an entry is that s stands for. The entry's shard is held.
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

// storedValue is a value that was read: a string or a collection.
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

// headBlob returns the value that read, which is as Source.Head, finds in the head of a key. The caller owns it.
func headBlob(read func(space uint32, key string) (Head, bool, error), space uint32, key string) ([]byte, error) {
	h, ok, err := read(space, key)
	if err == nil && (!ok || h.External || h.Parts != 0) {
		err = errNoValue
	}
	return slices.Clone(h.Blob), err
}

// comeBack gives an entry the value that s stands for.
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

// load builds a value from the parts that read has under one or two numbers, as in Head. Its changes go to what log
// returns for the numbers.
func (ks *Keyspace) load(typ Type, parts, fieldParts uint64, read partsReader, log func(id uint64) *delta.Log) (value,
	error) {
	load := kinds[typ].load
	if load == nil {
		return nil, fmt.Errorf("a %s has no parts", typ)
	}
	return load(storedParts{parts, fieldParts, read, log, ks.storedListLimit()})
}

// decode gives an entry the value whose stored form is blob, which the entry owns from now on.
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

// decode returns the collection whose stored form is blob, which it owns from now on.
func (ks *Keyspace) decode(typ Type, blob []byte) (value, error) {
	if !typ.Known() {
		return nil, fmt.Errorf("unknown type %d", typ)
	}
	return kinds[typ].decode(blob, ks.storedListLimit())
}

func (ks *Keyspace) storedListLimit() lists.Limit { return lists.Limit(ks.listLimit.Load()) }

// appendBlob appends the stored form of a value that is in memory and is stored whole.
func (e *Entry) appendBlob(dst []byte) []byte {
	if e.typ == String {
		return append(dst, e.Bytes()...)
	}
	return e.value().AppendBlob(dst)
}

// parts returns the number under which the parts of the value are stored, 0 if it is stored whole.
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

// fieldParts returns the number under which the deadlines of the fields are stored, 0 if they are not stored in parts.
func (e *Entry) fieldParts() uint64 {
	switch {
	case e.flags&flagParts == 0 || e.typ != Hash:
		return 0
	case e.flags&flagUnloaded != 0:
		return e.unloaded().fieldParts
	}
	if d := e.Hash().DeadlineIndex(); d != nil && d.Log() != nil {
		return d.Log().ID
	}
	return 0
}

// appendCommand appends a command as a RESP array. A long argument does not make room for much more than itself.
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
