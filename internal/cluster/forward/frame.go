package forward

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"io"

	"github.com/atomredis/atomredis/internal/buffers"
	"github.com/atomredis/atomredis/internal/session"
)

// Frames go to the leader: a kind, a length of four bytes, and that many bytes. Answers come back: an answer, and replies.
const (
	frameClient   = 'I' // a session.Identity in JSON
	frameCommands = 'C' // commands as clients send them
	frameHead     = 5
	maxFrame      = 1 << 30 // bytes of commands in one frame
	maxClient     = 1 << 20 // the longest frameClient, in bytes
)

// answer precedes replies.
type answer struct {
	size  uint32 // of the replies, in bytes
	flags byte
	db    uint32 // the client's
	done  uint64 // how many frames of commands have been answered, with these replies
}

const (
	answerHead = 17

	answerBound   = 1 << iota // see forwarder.bound
	answerRESP3               // the client uses it
	answerEnd                 // the leader has closed the connection as it does with one of its own clients
	answerRefused             // this server does not lead
)

// put writes the answer to the first answerHead bytes of b.
func (a *answer) put(b []byte) {
	binary.BigEndian.PutUint32(b, a.size)
	b[4] = a.flags
	binary.BigEndian.PutUint32(b[5:], a.db)
	binary.BigEndian.PutUint64(b[9:], a.done)
}

// readAnswer returns the next answer, with its replies.
func readAnswer(in *bufio.Reader) (a answer, replies []byte, err error) {
	var head [answerHead]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return a, nil, err
	}
	a = answer{size: binary.BigEndian.Uint32(head[:]), flags: head[4], db: binary.BigEndian.Uint32(head[5:]),
		done: binary.BigEndian.Uint64(head[9:])}
	for rest := int(a.size); rest > 0; {
		n := min(rest, maxUnread) // memory is taken as bytes arrive, not by the announced length
		replies = buffers.Grow(replies, n)
		if _, err := io.ReadFull(in, replies[len(replies):len(replies)+n]); err != nil {
			return a, nil, err
		}
		replies, rest = replies[:len(replies)+n], rest-n
	}
	return a, replies, nil
}

// appendClient appends the frame that describes the client to the leader.
func appendClient(b []byte, c session.Identity) []byte {
	text, _ := json.Marshal(c)
	b = append(b, frameClient)
	b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
	return append(b, text...)
}

// readFrameHead reads the kind and the length of a frame.
func readFrameHead(in io.Reader) (kind byte, size int, err error) {
	var head [frameHead]byte
	_, err = io.ReadFull(in, head[:])
	return head[0], int(binary.BigEndian.Uint32(head[1:])), err
}
