package fanout

import (
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/atomredis/atomredis/internal/wire/peer"
)

const (
	// maxFrame is the longest question or part, in bytes. A document may have values of 512 MiB.
	maxFrame = 2 << 30
	// sendTimeout is how long a coordinator may take to receive a part.
	sendTimeout = time.Minute
)

// Serve answers the questions of another server until its connection ends.
func Serve(c *peer.Conn, answer func(q *Question) (Answer, error)) {
	c.SetLimit(maxFrame)
	c.SetDeadline(time.Time{})
	for {
		q := new(Question)
		if c.ReadRequest(q) != nil {
			return
		}
		a, err := answer(q)
		if err == nil {
			err = give(c, a)
			a.Close()
		} else {
			c.SetWriteDeadline(time.Now().Add(sendTimeout))
			err = c.Fail(err)
		}
		if err != nil {
			return
		}
	}
}

// give sends an answer. An error ends the connection.
func give(c *peer.Conn, a Answer) error {
	text, err := json.Marshal(a.View())
	if err == nil {
		err = send(c, viewFrame, text)
	}
	for more := true; more && err == nil; {
		var kind peer.Kind
		var payload []byte
		if kind, payload, err = c.Receive(); err != nil {
			return err
		}
		switch kind {
		case keepFrame:
			n, size := binary.Uvarint(payload)
			if size <= 0 || n > uint64(a.View().near()) {
				return peer.ErrFrame
			}
			err = a.Keep(int(n))
		case nextFrame:
			var part []byte
			var failed error
			if part, more, failed = a.Part(); failed != nil {
				c.SetWriteDeadline(time.Now().Add(sendTimeout))
				return c.Fail(failed)
			}
			err = send(c, partFrame, []byte{boolByte(more)}, part)
		case endFrame:
			return nil
		default:
			return peer.ErrFrame
		}
	}
	return err
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// send sends a frame at once.
func send(c *peer.Conn, kind peer.Kind, parts ...[]byte) error {
	c.SetWriteDeadline(time.Now().Add(sendTimeout))
	err := c.Send(kind, parts...)
	if err == nil {
		err = c.Flush()
	}
	return err
}
