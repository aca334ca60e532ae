// Package sketches has the commands on Bloom filters (BF), cuckoo filters (CF), count-min sketches (CMS), top-k lists
// (TOPK) and t-digests (TDIGEST).
package sketches

import (
	"bytes"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/paged"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/persist/rdb"
	"github.com/atomredis/atomredis/resp"
)

// In Redis modules have these types and commands.
const (
	writes   = command.Write | command.DenyOOM | command.Module
	reads    = command.ReadOnly | command.Module
	fastRead = reads | command.Fast
)

// Errors of several groups. Many have no code word, as in Redis.
const (
	errExists    command.Error = "ERR item exists"
	errNotFound  command.Error = "ERR not found"
	errUnknown   command.Error = "Unknown argument received"
	errIterator  command.Error = "ERR Second argument must be numeric"
	errChunk     command.Error = "ERR received bad data"
	maxExpansion               = 32768
	maxCapacity                = 1 << 30
)

// kindOf returns the command.Kind of a type of sketches. Redis gives the types of all modules the same number.
func kindOf(value func(e *engine.Entry) *paged.Value) command.Kind {
	return command.Kind{
		Number:   5,
		Encoding: func(*engine.Entry) string { return "raw" },
		Rebuild: func(r *command.Rebuilder, key []byte, e *engine.Entry) {
			if payload, err := rdb.Dump(e); err == nil { // cannot fail: every sketch can be dumped
				r.Command([]byte("RESTORE"), key, []byte("0"), payload)
			}
		},
		Digest: func(d *command.Digest, e *engine.Entry) {
			v := value(e)
			var data []byte
			for c, more := (delta.Cursor{}), true; more; {
				c, more = v.Walk(c, 64, func(name string) {
					data, _ = v.AppendPart(append(data[:0], name...), name)
					if part := data[len(name):]; len(part) > 0 && len(bytes.TrimLeft(part, "\x00")) == 0 {
						return // a page of zeros is as none
					}
					d.Mix(data)
				})
			}
		},
	}
}

// chunked is a value that is given away, and loaded, in pieces.
type chunked interface {
	// Header returns what a value without content is made of.
	Header() []byte
	// Chunk returns the piece at a place, and the place behind it, 0 if there is no piece. Places begin with 1.
	Chunk(from uint64) (data []byte, next uint64)
}

// rebuildInChunks encodes a value as commands that load it piece by piece.
func rebuildInChunks(r *command.Rebuilder, loadChunk string, key []byte, v chunked) {
	r.Command([]byte(loadChunk), key, []byte("1"), v.Header())
	for data, at := v.Chunk(1); at != 0; data, at = v.Chunk(at) {
		if len(bytes.TrimLeft(data, "\x00")) == 0 {
			continue // a new filter has only zeros
		}
		r.Command([]byte(loadChunk), key, strconv.AppendUint(nil, at, 10), data)
	}
}

// scanDump replies to a call of SCANDUMP: with the header if at is 0, and then with the chunks. end writes the data
// of the last reply.
func scanDump(c *command.Ctx, at int64, v chunked, end func()) {
	c.W.Array(2)
	if at == 0 {
		c.W.Int(1)
		c.W.Bulk(v.Header())
		return
	}
	var data []byte
	var next uint64
	if at > 0 {
		data, next = v.Chunk(uint64(at))
	}
	c.W.Int(int64(next))
	if next == 0 {
		end()
		return
	}
	c.W.Bulk(data)
}

// lacksRoom reports whether a value of so many bytes exceeds maxmemory by itself. It is false for accepted commands.
func lacksRoom(c *command.Ctx, bytes uint64) bool {
	limit, ok := resp.ParseInt([]byte(c.Host.Directive("maxmemory")))
	return ok && limit > 0 && bytes > uint64(limit) && !c.Origin.In(command.Accepted)
}

// of returns the entry of a key if it is of a type, otherwise nil: for some commands another type counts as a
// missing key.
func of(c *command.Ctx, key []byte, typ engine.Type) *engine.Entry {
	if e := c.Read(key); e != nil && e.Type() == typ {
		return e
	}
	return nil
}

// existing is ReadAs for a key that must exist; otherwise it writes the error missing.
func existing(c *command.Ctx, typ engine.Type, missing command.Error) *engine.Entry {
	e, ok := c.ReadAs(c.Args[1], typ)
	if ok && e == nil {
		c.Err(missing)
	}
	return e
}

// toChange is WriteAs for a key that must exist; otherwise it writes the error missing.
func toChange(c *command.Ctx, typ engine.Type, missing command.Error) *engine.Entry {
	e, ok := c.WriteAs(c.Args[1], typ)
	if ok && e == nil {
		c.Err(missing)
	}
	return e
}

// changed reports that the command has changed an entry.
func changed(c *command.Ctx, e *engine.Entry) { c.G.Changed(e, engine.EventModule, c.Cmd.Name) }

// field is a field of INFO.
type field struct {
	name  string
	value func(w *resp.Writer)
}

func number[T int | int64 | uint64](name string, n T) field {
	return field{name, func(w *resp.Writer) { w.Int(int64(n)) }}
}

// info replies with fields. Their names are status replies.
func info(c *command.Ctx, fields []field) {
	c.W.Map(len(fields))
	for _, f := range fields {
		c.W.Simple(f.name)
		f.value(c.W)
	}
}
