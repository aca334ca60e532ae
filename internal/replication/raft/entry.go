package raft

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// An entry of Raft's log has a level, which is the version of its format, the term in which its commands were
// executed, and records: the time, the length of the commands, and the commands as the journal gets them.
const (
	entryLevel   = 1 // the highest level that this version knows
	entryHeader  = 1 + 8
	recordHeader = 8 + 4
)

var errEntry = errors.New("an entry of the group's journal has an unknown format")

// appendHeader begins an entry.
func appendHeader(dst []byte, term uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, entryLevel), term)
}

// appendRecord adds a record to an entry.
func appendRecord(dst []byte, now int64, commands []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(now))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(commands)))
	return append(dst, commands...)
}

// splitEntry returns the term of an entry and its records.
func splitEntry(data []byte) (term uint64, records []byte, err error) {
	switch {
	case bytes.Equal(data, withheld):
		return 0, nil, errWithheld
	case len(data) < entryHeader || data[0] == 0:
		return 0, nil, errEntry
	case data[0] > entryLevel:
		return 0, nil, fmt.Errorf("it is of level %d, and this server knows up to level %d: a newer version is needed",
			data[0], entryLevel)
	}
	return binary.BigEndian.Uint64(data[1:]), data[entryHeader:], nil
}

// eachRecord calls fn with the records of an entry in their order, until it fails.
func eachRecord(records []byte, fn func(now int64, commands []byte) error) error {
	for len(records) > 0 {
		if len(records) < recordHeader {
			return errEntry
		}
		now, n := int64(binary.BigEndian.Uint64(records)), uint64(binary.BigEndian.Uint32(records[8:]))
		records = records[recordHeader:]
		if n > uint64(len(records)) {
			return errEntry
		}
		if err := fn(now, records[:n:n]); err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}
