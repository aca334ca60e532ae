package forward

import (
	"encoding/binary"
	"encoding/json"
	"io"

	"github.com/atomredis/atomredis/internal/buffers"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

// The kinds of frames on a connection of peer.Forward. The first two go to the leader. It answers with peer.Failed if it does
// not lead.
const (
	frameClient   peer.Kind = 'I' // a session.Identity in JSON
	frameCommands peer.Kind = 'C' // commands as clients send them
	frameAnswer   peer.Kind = 'A' // an answer: flags, a byte; database; frames done; replies
)

const (
	maxFrame  = 1 << 30 // bytes of commands in one frame
	maxClient = 1 << 20 // the longest frameClient, in bytes
)

// answer precedes replies.
type answer struct {
	flags byte
	db    int    // the client's
	done  uint64 // how many frames of commands have been answered, with these replies
}

const (
	answerBound = 2 << iota // see forwarder.bound
	answerRESP3             // the client uses it
	answerEnd               // the leader has closed the connection as it does with one of its own clients
)

// queue sends the answer and its replies with the next Flush.
func (a *answer) queue(c *peer.Conn, replies []byte) error {
	var b [1 + 2*binary.MaxVarintLen64]byte
	head := binary.AppendUvarint(append(b[:0], a.flags), uint64(a.db))
	return c.Queue(frameAnswer, binary.AppendUvarint(head, a.done), replies)
}

// readAnswer returns the next answer, with its replies.
func readAnswer(c *peer.Conn) (a answer, replies []byte, err error) {
	kind, err := c.Next()
	switch {
	case err != nil:
		return a, nil, err
	case kind == peer.Failed:
		payload, err := c.Rest()
		if err == nil {
			err = peer.AsFailure(payload)
		}
		return a, nil, err
	case kind != frameAnswer:
		return a, nil, peer.ErrFrame
	}
	a.flags, err = c.ReadByte()
	var db uint64
	if err == nil {
		db, err = binary.ReadUvarint(c)
		a.db = int(uint32(db))
	}
	if err == nil {
		a.done, err = binary.ReadUvarint(c)
	}
	for err == nil && c.Size() > 0 {
		n := int(min(c.Size(), maxUnread)) // memory is taken as bytes arrive, not by the announced length
		replies = buffers.Grow(replies, n)
		if _, err = io.ReadFull(c, replies[len(replies):len(replies)+n]); err == nil {
			replies = replies[:len(replies)+n]
		}
	}
	if err != nil {
		return a, nil, err
	}
	return a, replies, nil
}

// sendClient sends the frame that describes the client to the leader, with the next Flush.
func sendClient(c *peer.Conn, client session.Identity) error {
	text, err := json.Marshal(client)
	if err != nil {
		return err
	}
	return c.Send(frameClient, text)
}
