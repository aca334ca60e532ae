package resp

import (
	"fmt"
	"io"
	"strconv"

	"github.com/atomredis/atomredis/internal/buffers"
)

// AnyBulk is a value of Parser.MaxBulk for commands that were accepted before: it is larger than any argument a client
// can have sent.
const AnyBulk = 1 << min(40, strconv.IntSize-2)

// readChunk is the least number of bytes that a CommandReader asks for at once.
const readChunk = 256 << 10

// CommandReader splits a stream of commands that were accepted before: an append-only file, or what a master sends.
type CommandReader struct {
	// Count is the number of commands that Next has returned. Consumed is the bytes of these commands, with empty lines
	// between them.
	Count    int
	Consumed int64
	// Received is the number of bytes read from the stream.
	Received int64
	// Keep has the bytes of each returned command appended to Raw. The caller empties Raw.
	Keep bool
	Raw  []byte

	r      io.Reader
	parser Parser
	buf    []byte
	pos    int // where the next command begins in buf
	err    error
	args   [][]byte
}

// NewCommandReader returns a CommandReader that reads from r.
func NewCommandReader(r io.Reader) *CommandReader {
	return &CommandReader{r: r, parser: Parser{MaxBulk: AnyBulk}}
}

// Next returns the next command, which is valid until the next call. It returns io.EOF at the end, and
// io.ErrUnexpectedEOF if the end is within a command.
func (c *CommandReader) Next() ([][]byte, error) {
	for {
		args, n, err := c.parser.Next(c.buf[c.pos:], c.args[:0])
		switch {
		case err != nil:
			return nil, fmt.Errorf("command %d: %w", c.Count+1, err)
		case n > 0:
			c.args = args
			if c.Keep {
				c.Raw = append(c.Raw, c.buf[c.pos:c.pos+n]...)
			}
			c.pos += n
			c.Consumed += int64(n)
			if len(args) == 0 || len(args[0]) == 0 {
				continue
			}
			c.Count++
			return args, nil
		case c.err == io.EOF && c.pos < len(c.buf):
			return nil, io.ErrUnexpectedEOF
		case c.err != nil:
			return nil, c.err
		}
		c.buf = c.buf[:copy(c.buf, c.buf[c.pos:])]
		c.pos = 0
		c.buf = buffers.Grow(c.buf, readChunk)
		n, c.err = c.r.Read(c.buf[len(c.buf):cap(c.buf)])
		c.buf = c.buf[:len(c.buf)+n]
		c.Received += int64(n)
	}
}

// CloneArgs copies arguments into new memory.
func CloneArgs(args [][]byte) [][]byte {
	size := 0
	for _, a := range args {
		size += len(a)
	}
	out, text := make([][]byte, len(args)), make([]byte, 0, size)
	for i, a := range args {
		from := len(text)
		text = append(text, a...)
		out[i] = text[from:len(text):len(text)]
	}
	return out
}
