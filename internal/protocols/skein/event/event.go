// Package event has the messages about changes of a Skein application. A message is a word, the revision and
// netstrings:
//
//	PUT 12 6:apples,4:1.22,7:owner_0,
//	DELETE 13 6:apples,8:apricots,
//	FINISH 14 9:SUCCEEDED,5:done.,
//
// A PUT has the key, its value, and its owner if any; a DELETE has all keys that one operation has removed, in
// order; FINISH has the final status of the application, and a message.
package event

import (
	"bytes"
	"errors"
	"strconv"
)

// Type is what has happened.
type Type uint8

// The types of events.
const (
	Put Type = iota
	Delete
	Finish
)

var words = [...]string{Put: "PUT", Delete: "DELETE", Finish: "FINISH"}

// String returns the word for the type.
func (t Type) String() string { return words[t] }

// Event is a change.
type Event struct {
	Type Type
	// Revision counts the events of the application since the server started, from 1 on.
	Revision int64
	// Keys are the key that was put, or those that were deleted, in their order.
	Keys [][]byte
	// Value and Owner are those of the key that was put, after the change; Owner is nil if it has none.
	Value, Owner []byte
	// Status and Message are those with which the application has finished.
	Status, Message []byte
}

// Append appends the message.
func (e *Event) Append(dst []byte) []byte {
	dst = append(append(dst, words[e.Type]...), ' ')
	dst = append(strconv.AppendInt(dst, e.Revision, 10), ' ')
	switch e.Type {
	case Put:
		dst = appendText(appendText(dst, e.Keys[0]), e.Value)
		if e.Owner != nil {
			dst = appendText(dst, e.Owner)
		}
	case Delete:
		for _, key := range e.Keys {
			dst = appendText(dst, key)
		}
	case Finish:
		dst = appendText(appendText(dst, e.Status), e.Message)
	}
	return dst
}

func appendText(dst, text []byte) []byte {
	dst = append(strconv.AppendInt(dst, int64(len(text)), 10), ':')
	return append(append(dst, text...), ',')
}

// errMalformed is the error for an invalid message.
var errMalformed = errors.New("event: malformed message")

// Decode reads a message. The event is a view of it.
func Decode(message []byte) (e Event, err error) {
	word, rest, _ := bytes.Cut(message, []byte(" "))
	revision, rest, ok := bytes.Cut(rest, []byte(" "))
	if !ok {
		return Event{}, errMalformed
	}
	if e.Revision, ok = number(revision); !ok {
		return Event{}, errMalformed
	}
	var texts [][]byte
	for len(rest) > 0 {
		var one []byte
		if one, rest, ok = text(rest); !ok {
			return Event{}, errMalformed
		}
		texts = append(texts, one)
	}
	switch {
	case string(word) == words[Put] && (len(texts) == 2 || len(texts) == 3):
		e.Type, e.Keys, e.Value = Put, texts[:1:1], texts[1]
		if len(texts) == 3 {
			e.Owner = texts[2]
		}
	case string(word) == words[Delete]:
		e.Type, e.Keys = Delete, texts
	case string(word) == words[Finish] && len(texts) == 2:
		e.Type, e.Status, e.Message = Finish, texts[0], texts[1]
	default:
		return Event{}, errMalformed
	}
	return e, nil
}

// number reads a number without leading zeros.
func number(b []byte) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, err == nil && n >= 0 && string(strconv.AppendInt(nil, n, 10)) == string(b)
}

// text reads a netstring.
func text(b []byte) (text, rest []byte, ok bool) {
	size, _, ok := bytes.Cut(b[:min(len(b), maxHeader)], []byte(":"))
	if !ok {
		return nil, nil, false
	}
	n, ok := number(size)
	rest = b[len(size)+1:]
	if !ok || n >= int64(len(rest)) || rest[n] != ',' {
		return nil, nil, false
	}
	return rest[:n:n], rest[n+1:], true
}

// maxHeader is the length of the longest length with its colon.
const maxHeader = len("9223372036854775807:")
