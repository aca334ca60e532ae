package command

import (
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/resp"
)

// Rebuilder encodes keys as the commands that make them, in the form of an append-only file that Redis 7 loads.
type Rebuilder struct {
	// Emit gets encoded commands, always complete ones. It must not keep the bytes.
	Emit func(commands []byte)

	buf []byte
}

// RebuildElements is the largest number of elements in one command.
const RebuildElements = 64

const (
	rebuildBytes = 64 << 10 // about the largest size of the elements of one command
	rebuildChunk = 1 << 20  // Emit is called from so many bytes on
)

// Command encodes one command.
func (r *Rebuilder) Command(args ...[]byte) {
	r.buf = AppendRequest(r.buf, args)
	if len(r.buf) >= rebuildChunk {
		r.Flush()
	}
}

// Flush passes the encoded commands to Emit. It must be called at the end.
func (r *Rebuilder) Flush() {
	if len(r.buf) > 0 {
		r.Emit(r.buf)
		r.buf = r.buf[:0]
	}
}

// AppendRequest appends a command as a client sends it.
func AppendRequest(dst []byte, args [][]byte) []byte {
	w := resp.Writer{Buf: dst}
	w.Array(len(args))
	for _, arg := range args {
		w.Bulk(arg)
	}
	return w.Buf
}

// Select selects a database for the next commands.
func (r *Rebuilder) Select(db int) {
	r.Command([]byte("SELECT"), strconv.AppendInt(nil, int64(db), 10))
}

// Entry encodes a key with its value and deadline. A value that is not in memory is brought in.
func (r *Rebuilder) Entry(e *engine.Entry) {
	key := []byte(e.Key())
	kinds[e.Type()].Rebuild(r, key, e)
	if at := e.Deadline(); at != 0 {
		r.Command([]byte("PEXPIREAT"), key, strconv.AppendInt(nil, at, 10))
	}
	if e.Blessed() {
		r.Command([]byte("BLESS"), []byte("SET"), key, []byte("NO-EVICT"))
	}
}

// Elements distributes elements over commands.
type Elements struct {
	r        *Rebuilder
	head     int      // how many of args are not elements
	args     [][]byte // copies
	elements int
	bytes    int
}

// Collection returns an Elements whose commands begin with name and the key.
func (r *Rebuilder) Collection(name string, key []byte) *Elements {
	return &Elements{r: r, head: 2, args: [][]byte{[]byte(name), key}}
}

// Add adds an element, of one or more arguments, which are copied.
func (c *Elements) Add(element ...[]byte) {
	for _, arg := range element {
		c.args = append(c.args, append([]byte(nil), arg...))
		c.bytes += len(arg)
	}
	if c.elements++; c.elements == RebuildElements || c.bytes >= rebuildBytes {
		c.End()
	}
}

// End encodes the remaining elements.
func (c *Elements) End() {
	if c.elements > 0 {
		c.r.Command(c.args...)
	}
	c.args = c.args[:c.head]
	c.elements, c.bytes = 0, 0
}
