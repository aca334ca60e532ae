package pathhash

import (
	"bytes"
	"encoding/hex"

	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/internal/command"
)

func cmdCard(c *command.Ctx) {
	if t, ok := tree(c); ok {
		c.W.Int(int64(t.Len()))
	}
}

func cmdExists(c *command.Ctx) {
	t, ok := tree(c)
	switch {
	case !ok:
	case t.Get(c.Args[2]) != nil:
		c.W.Int(1)
	default:
		c.W.Int(0)
	}
}

func cmdGet(c *command.Ctx) {
	if t, ok := tree(c); ok {
		c.W.Array(len(c.Args) - 3)
		writeFields(c, t.Get(c.Args[2]), c.Args[3:])
	}
}

func cmdMget(c *command.Ctx) {
	list, ok := groups(c, 1)
	if !ok {
		return
	}
	t, ok := tree(c)
	if !ok {
		return
	}
	n := 0
	for _, g := range list {
		n += len(g.args)
	}
	c.W.Array(n)
	for _, g := range list {
		writeFields(c, t.Get(g.path), g.args)
	}
}

// writeFields writes the values of some fields of a path, nil for those that it lacks; h is nil if there is no such
// path.
func writeFields(c *command.Ctx, h *hashes.Hash, fields [][]byte) {
	for _, field := range fields {
		if h != nil {
			if value, ok := h.Get(field); ok {
				c.W.Bulk(value)
				continue
			}
		}
		c.W.Null()
	}
}

func cmdGetAll(c *command.Ctx) {
	t, ok := tree(c)
	if !ok {
		return
	}
	if h := t.Get(c.Args[2]); h != nil {
		c.Long(h.Len(), t.Len())
		writeAll(c, h)
		return
	}
	c.W.Map(0)
}

// writeAll writes the fields of a path with their values.
func writeAll(c *command.Ctx, h *hashes.Hash) {
	c.W.Map(h.Len())
	for field, value := range h.All() {
		c.W.Bulk(field)
		c.W.Bulk(value)
	}
}

// show says how found paths are written.
type show struct {
	lengths bool // their lengths in place of them
	values  bool // with all fields
	fields  [][]byte
}

// option reads WITHVALUES or FIELDS, the present argument. If it is wrong, it writes an error and ok is false.
func (s *show) option(c *command.Ctx, o *command.OptionArgs) (ok bool) {
	switch {
	case s.values || s.fields != nil:
	case o.Is("withvalues"):
		s.values = true
		return true
	case o.Is("fields"):
		s.fields, ok = fieldArgs(c, o, 1)
		return ok
	}
	c.Err(command.ErrSyntax)
	return false
}

// write writes a path and what is asked for of its fields.
func (s *show) write(c *command.Ctx, path []byte, h *hashes.Hash) {
	if s.values || s.fields != nil {
		c.W.Array(2)
	}
	if s.lengths {
		c.W.Int(int64(len(path)))
	} else {
		c.W.Bulk(path)
	}
	switch {
	case s.values:
		writeAll(c, h)
	case s.fields != nil:
		c.W.Array(len(s.fields))
		writeFields(c, h, s.fields)
	}
}

func cmdLongest(c *command.Ctx) {
	var s show
	for o := c.Options(3); o.Next(); {
		if o.Is("length") && !s.lengths {
			s.lengths = true
		} else if !s.option(c, &o) {
			return
		}
	}
	t, ok := tree(c)
	if !ok {
		return
	}
	query, longest := c.Args[2], -1
	var found *hashes.Hash
	t.Prefixes(query, func(n int, h *hashes.Hash) bool {
		longest, found = n, h
		return true
	})
	if found == nil {
		c.W.Null()
		return
	}
	s.write(c, query[:longest], found)
}

func cmdPrefixes(c *command.Ctx) {
	var s show
	count, most, ok := int64(0), int64(-1), false
	for o := c.Options(3); o.Next(); {
		switch {
		case o.Is("lengths") && !s.lengths:
			s.lengths = true
		case o.Is("count") && count == 0 && o.More():
			if count, ok = number(c, o.Arg(), 1); !ok {
				return
			}
		case o.Is("maxpathlen") && most < 0 && o.More():
			if most, ok = number(c, o.Arg(), 0); !ok {
				return
			}
		default:
			if !s.option(c, &o) {
				return
			}
		}
	}
	t, ok := tree(c)
	if !ok {
		return
	}
	type match struct {
		length int
		fields *hashes.Hash
	}
	var found []match
	t.Prefixes(c.Args[2], func(n int, h *hashes.Hash) bool {
		if most >= 0 && int64(n) > most {
			return false
		}
		found = append(found, match{n, h})
		return true
	})
	if count > 0 && int64(len(found)) > count { // the deepest ones
		found = found[len(found)-int(count):]
	}
	c.W.Array(len(found))
	for _, m := range found {
		s.write(c, c.Args[2][:m.length], m.fields)
	}
}

// scanned is the default of COUNT.
const scanned = 10

// cursorMark begins a cursor, which has the next path behind it in hexadecimal digits. 0 is the beginning and the end.
const cursorMark = 'p'

func cmdScan(c *command.Ctx) {
	from, ok := cursor(c.Args[2])
	if !ok {
		c.Err(command.ErrInvalidCursor)
		return
	}
	var s show
	var prefix []byte
	count := int64(0)
	for o := c.Options(3); o.Next(); {
		switch {
		case o.Is("prefix") && prefix == nil && o.More():
			prefix = o.Arg()
		case o.Is("count") && count == 0 && o.More():
			if count, ok = number(c, o.Arg(), 1); !ok {
				return
			}
		case o.Is("withvalues") && !s.values:
			s.values = true
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	t, ok := tree(c)
	if !ok {
		return
	}
	if count == 0 {
		count = scanned
	}
	n := int(min(count, int64(t.Len())))
	c.Long(n, t.Len())
	if bytes.Compare(from, prefix) < 0 {
		from = prefix
	}
	var next []byte
	var paths [][]byte
	var found []*hashes.Hash
	for path, h := range t.Ascend(from) {
		if !bytes.HasPrefix(path, prefix) {
			break
		}
		if len(paths) == n {
			next = append([]byte{cursorMark}, hex.AppendEncode(nil, path)...)
			break
		}
		paths, found = append(paths, bytes.Clone(path)), append(found, h)
	}
	if next == nil {
		next = []byte("0")
	}
	c.W.Array(2)
	c.W.Bulk(next)
	c.W.Array(len(paths))
	for i, path := range paths {
		s.write(c, path, found[i])
	}
}

// cursor returns the path at which a cursor goes on.
func cursor(arg []byte) (from []byte, ok bool) {
	if string(arg) == "0" {
		return nil, true
	}
	if len(arg) == 0 || arg[0] != cursorMark {
		return nil, false
	}
	from, err := hex.AppendDecode(nil, arg[1:])
	return from, err == nil
}
