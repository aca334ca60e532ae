package bitmaps

import (
	"encoding/binary"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/roaring"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/persist/rdb"
)

// Compressed bitmaps, as in Redis 8.12. Whether a command makes one depends on a directive, so that the journal has
// BITCONVERT before such a command, and BITROAROP in place of BITOP: replicas and recovery do not look at theirs.

// defaultRoaring says whether commands that change bits make compressed bitmaps.
const defaultRoaring = "bitmap-default-roaring"

func init() {
	config.Register(config.Directive{Name: defaultRoaring, Default: "no", Check: config.CheckYesNo})
	command.RegisterKind(engine.Bitmap, command.Kind{
		Number:   8,
		Encoding: func(*engine.Entry) string { return "bitmap-roaring" },
		Rebuild: func(r *command.Rebuilder, key []byte, e *engine.Entry) {
			if payload, err := rdb.Dump(e); err == nil { // cannot fail: every bitmap can be dumped
				r.Command([]byte("RESTORE"), key, []byte("0"), payload)
			}
		},
		Digest: func(d *command.Digest, e *engine.Entry) {
			b := e.Bitmap()
			d.Mix(binary.AppendUvarint(b.AppendPortable(nil), b.Len()))
		},
	})
}

// prefersBitmaps reports whether a command makes compressed bitmaps. On a server that follows another one, only the
// commands of that one do.
func prefersBitmaps(c *command.Ctx) bool {
	return !c.Origin.In(command.Accepted) && !c.Host.Follows() && c.Host.Directive(defaultRoaring) == "yes"
}

var (
	bitconvertWord = []byte("BITCONVERT")
	bitroaropWord  = []byte("BITROAROP")
)

// convert makes the string under key argument 1, or a new value if e is nil, a compressed bitmap, and journals that.
func convert(c *command.Ctx, e *engine.Entry) *engine.Entry {
	c.Journal(bitconvertWord, c.Args[1])
	if e == nil {
		return c.G.Create(c.DB, c.Args[1], roaring.New())
	}
	c.G.Replace(e, roaring.FromBytes(e.Bytes()))
	c.G.Changed(e, engine.EventTypeChanged, "type_changed")
	return e
}

// inJournal reports whether a command comes from a journal or another server. If it comes from a client, the reply is
// that there is no such command.
func inJournal(c *command.Ctx) bool {
	if !c.Origin.In(command.Accepted) {
		c.Err(command.UnknownCommand(c.Args))
		return false
	}
	return true
}

func cmdBitconvert(c *command.Ctx) {
	if !inJournal(c) {
		return
	}
	e := c.G.Write(c.DB, c.Args[1])
	if _, ok := bitsOf(c, e); !ok {
		return
	}
	if e == nil || e.Type() == engine.String {
		if e = convert(c, e); e.Bitmap().Len() == 0 {
			c.G.ChangedBookkeeping(e, 0, "")
		}
	}
	c.W.OK()
}

func cmdBitroarop(c *command.Ctx) {
	if !inJournal(c) {
		return
	}
	if op, ok := bitOperation(c); ok {
		bitop(c, op, true)
	}
}

// storeBitmap stores the result of BITOP, or removes the key if the result is empty, and replies. decided says that the
// type does not follow from the sources, so that the journal must say it.
func storeBitmap(c *command.Ctx, result *roaring.Bitmap, decided bool) {
	key := c.Args[2]
	e := c.G.Write(c.DB, key)
	switch {
	case result.Len() == 0 && e != nil:
		c.G.Remove(e, engine.EventGeneric, "del")
	case result.Len() == 0:
	default:
		if e == nil {
			e = c.G.Create(c.DB, key, result)
		} else {
			c.G.OverwriteCollection(e, result)
		}
		c.G.Changed(e, engine.EventBitmap, "set")
		if decided {
			args := append([][]byte{bitroaropWord}, c.Args[1:]...)
			c.Journal(args...)
		}
	}
	c.W.Int(int64(result.Len()))
}
