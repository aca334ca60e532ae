package old

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"

	"github.com/atomredis/atomredis/internal/wire/peer"
)

// message is the kind of a published message: the channel and the message, as parts.
const message = 'm'

// messages is the old form of published messages: channels and messages, each after its length.
type messages struct{}

// Head implements peer.Form.
func (messages) Head(r *bufio.Reader, limit int64) (kind peer.Kind, payload []byte, rest int64, err error) {
	if payload, err = readPart(r, nil, limit); err == nil {
		if payload, err = readPart(r, payload, limit); err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
	}
	return message, payload, 0, err
}

// readPart appends a part to a payload that must not exceed limit.
func readPart(r *bufio.Reader, payload []byte, limit int64) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	switch {
	case err != nil:
		return nil, err
	case n > uint64(max(limit-int64(len(payload)), 0)):
		return nil, peer.ErrTooLong
	}
	b := bytes.NewBuffer(binary.AppendUvarint(payload, n)) // it grows as bytes arrive
	if _, err = io.CopyN(b, r, int64(n)); err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return b.Bytes(), err
}

// Append implements peer.Form.
func (messages) Append(b []byte, kind peer.Kind, parts [][]byte) ([]byte, [][]byte, error) {
	if kind != message {
		return b, nil, errKind
	}
	return b, parts, nil
}

// The kinds of frames between a follower and its leader, as in package forward.
const (
	client   = 'I'
	commands = 'C'
	answer   = 'A' // flags, database, frames done, replies
)

const (
	// commandsHead and answerHead are the lengths of what precedes commands and replies, in bytes.
	commandsHead = 5
	answerHead   = 17
	// refused is the flag of an old answer by a server that does not lead.
	refused = 16
)

// follower is the form of a connection to an old leader.
type follower struct{}

// Head implements peer.Form.
func (follower) Head(r *bufio.Reader, limit int64) (kind peer.Kind, begin []byte, rest int64, err error) {
	var head [answerHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, 0, err
	}
	if head[4]&refused != 0 {
		return peer.Failed, append(peer.AppendPart(nil, []byte(peer.NotLeading)), "the server does not lead"...), 0, nil
	}
	begin = binary.AppendUvarint([]byte{head[4]}, uint64(binary.BigEndian.Uint32(head[5:])))
	begin = binary.AppendUvarint(begin, binary.BigEndian.Uint64(head[9:]))
	if rest = int64(binary.BigEndian.Uint32(head[:])); rest > limit {
		err = peer.ErrTooLong
	}
	return answer, begin, rest, err
}

// Append implements peer.Form.
func (follower) Append(b []byte, kind peer.Kind, parts [][]byte) ([]byte, [][]byte, error) {
	if kind != client && kind != commands {
		return b, nil, errKind
	}
	return binary.BigEndian.AppendUint32(append(b, byte(kind)), uint32(length(parts))), parts, nil
}

func length(parts [][]byte) (n int) {
	for _, p := range parts {
		n += len(p)
	}
	return n
}

// leader is the form of a connection from an old follower.
type leader struct{}

// Head implements peer.Form.
func (leader) Head(r *bufio.Reader, limit int64) (kind peer.Kind, begin []byte, rest int64, err error) {
	var head [commandsHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, 0, err
	}
	if rest = int64(binary.BigEndian.Uint32(head[1:])); rest > limit {
		err = peer.ErrTooLong
	}
	return peer.Kind(head[0]), nil, rest, err
}

// Append implements peer.Form. The first part of an answer is the head before the replies.
func (leader) Append(b []byte, kind peer.Kind, parts [][]byte) ([]byte, [][]byte, error) {
	var flags byte
	var db, done uint64
	switch {
	case kind == peer.Failed:
		flags, parts = refused, nil
	case kind == answer && len(parts) > 0 && len(parts[0]) > 0:
		flags = parts[0][0]
		rest, err := parts[0][1:], error(nil)
		if db, rest, err = peer.Number(rest); err == nil {
			done, _, err = peer.Number(rest)
		}
		if err != nil {
			return b, nil, err
		}
		parts = parts[1:]
	default:
		return b, nil, errKind
	}
	b = binary.BigEndian.AppendUint32(b, uint32(length(parts)))
	b = binary.BigEndian.AppendUint32(append(b, flags), uint32(db))
	return binary.BigEndian.AppendUint64(b, done), parts, nil
}
