package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// The format of records. Numbers are those of encoding/binary.Uvarint, and bytes follow their length, except at the end
// of a record.
//
//	entry   kind (1), type (1), index, term, commit index or 0, extensions, data
//	value   kind (1), key, value
//	state   kind (1), commit index, for each stable value its key and value with its length
//	cut     kind (1), index: the entries from it on are gone
//
// The time of an entry's record is the time when the leader appended it, in ns since 1970, 0 if unknown.
const (
	kindEntry = iota + 1
	kindValue
	kindState
	kindCut
)

const (
	maxEntry = 1 << 30  // limit of an entry's data and extensions, in bytes
	maxState = 16 << 10 // limit of a state, in bytes
	pairSize = 8        // maximum overhead of a key and its value in a state
)

var errRecord = errors.New("unknown or malformed record")

// state is the record at the start of a segment.
type state struct {
	commit uint64
	values map[string][]byte
}

// size returns an upper bound of the values' size in a record, in bytes.
func (s state) size() int {
	n := 0
	for key, value := range s.values {
		n += len(key) + len(value) + pairSize
	}
	return n
}

// appendEntry appends the record of an entry, without its data, to dst.
func appendEntry(dst []byte, e *raft.Log, commit uint64) []byte {
	dst = append(dst, kindEntry, byte(e.Type))
	dst = binary.AppendUvarint(dst, e.Index)
	dst = binary.AppendUvarint(dst, e.Term)
	dst = binary.AppendUvarint(dst, commit)
	return appendBytes(dst, e.Extensions)
}

func appendValue(dst, key, value []byte) []byte {
	return append(appendBytes(append(dst, kindValue), key), value...)
}

func appendState(dst []byte, s state) []byte {
	dst = binary.AppendUvarint(append(dst, kindState), s.commit)
	for _, key := range slices.Sorted(maps.Keys(s.values)) {
		dst = appendBytes(appendBytes(dst, []byte(key)), s.values[key])
	}
	return dst
}

func appendCut(dst []byte, index uint64) []byte {
	return binary.AppendUvarint(append(dst, kindCut), index)
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// decodeEntry decodes the record of an entry; now is the record's time. The entry's data shares the record's memory.
func decodeEntry(record []byte, now int64) (e raft.Log, commit uint64, err error) {
	if len(record) < 2 || record[0] != kindEntry {
		return raft.Log{}, 0, errRecord
	}
	d := decoder{rest: record[2:]}
	e.Type = raft.LogType(record[1])
	e.Index, e.Term, commit = d.number(), d.number(), d.number()
	e.Extensions, e.Data = d.bytes(), d.rest
	if d.bad || e.Index == 0 {
		return raft.Log{}, 0, errRecord
	}
	if len(e.Data) == 0 {
		e.Data = nil
	}
	if now != 0 {
		e.AppendedAt = time.Unix(0, now).UTC()
	}
	return e, commit, nil
}

func decodeValue(record []byte) (key, value []byte, err error) {
	d := decoder{rest: record[1:]}
	key = d.bytes()
	return key, d.rest, d.err()
}

func decodeState(record []byte) (s state, err error) {
	d := decoder{rest: record[1:]}
	s = state{commit: d.number(), values: map[string][]byte{}}
	for len(d.rest) > 0 && !d.bad {
		key := string(d.bytes())
		s.values[key] = slices.Clone(d.bytes())
	}
	return s, d.err()
}

func decodeCut(record []byte) (index uint64, err error) {
	d := decoder{rest: record[1:]}
	index = d.number()
	if len(d.rest) > 0 {
		d.bad = true
	}
	return index, d.err()
}

// decoder decodes the fields of a record. Its results are invalid once bad is set.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) number() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.bad, n = true, len(d.rest)
	}
	d.rest = d.rest[n:]
	return v
}

// bytes returns nil for an empty field.
func (d *decoder) bytes() []byte {
	n := d.number()
	if n > uint64(len(d.rest)) {
		d.bad, n = true, 0
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	if n == 0 {
		return nil
	}
	return b
}

func (d *decoder) err() error {
	if d.bad {
		return errRecord
	}
	return nil
}

// checkEntries returns why entries cannot be stored after index last, which is 0 if the log is empty.
func checkEntries(logs []*raft.Log, last uint64) error {
	for _, e := range logs {
		switch {
		case e.Index == 0 || last != 0 && e.Index != last+1:
			return fmt.Errorf("entry %d cannot be stored behind entry %d", e.Index, last)
		case len(e.Data)+len(e.Extensions) > maxEntry:
			return fmt.Errorf("entry %d of %d bytes is too long", e.Index, len(e.Data)+len(e.Extensions))
		}
		last = e.Index
	}
	return nil
}

// stamp returns the time for an entry's record.
func stamp(e *raft.Log) int64 {
	if e.AppendedAt.IsZero() {
		return 0
	}
	return e.AppendedAt.UnixNano()
}
