// Package event has the messages about changes of a cache, on the channel keys.Events.
package event

import (
	"encoding/binary"
	"errors"
)

// Kind is the kind of a change.
type Kind byte

// The kinds of events.
const (
	Created   Kind = 1 // the cache did not have the key
	Updated   Kind = 2
	Removed   Kind = 3
	Destroyed Kind = 4 // the cache with everything in it: the last event, without a key
	Expired   Kind = 5 // removed at its deadline
)

// Event is a change of a cache. Keys and values are encoded.
type Event struct {
	Kind Kind
	Key  []byte
	// Value is the new value, for Created and Updated.
	Value []byte
	// Old is the old value, for Updated, Removed and Expired.
	Old []byte
}

// Append appends a message.
func (e *Event) Append(dst []byte) []byte {
	dst = append(dst, byte(e.Kind))
	for _, part := range [][]byte{e.Key, e.Value, e.Old} {
		dst = append(binary.AppendUvarint(dst, uint64(len(part))), part...)
	}
	return dst
}

var errMalformed = errors.New("not an event of a cache")

// Parse reads a message, whose memory the event keeps.
func Parse(b []byte) (e Event, err error) {
	if len(b) == 0 || Kind(b[0]) < Created || Kind(b[0]) > Expired {
		return e, errMalformed
	}
	e.Kind, b = Kind(b[0]), b[1:]
	for _, part := range []*[]byte{&e.Key, &e.Value, &e.Old} {
		n, l := binary.Uvarint(b)
		if l <= 0 || n > uint64(len(b)-l) {
			return e, errMalformed
		}
		*part, b = b[l:l+int(n):l+int(n)], b[l+int(n):]
	}
	if len(b) > 0 {
		return e, errMalformed
	}
	return e, nil
}
