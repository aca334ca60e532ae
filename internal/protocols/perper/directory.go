package perper

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
	"github.com/atomredis/atomredis/internal/protocols/perper/keys"
)

// This file has the commands on whole caches, and on registered types.

// create replies with 1, or with 0 if the cache exists and IFMISSING is given.
func create(c *command.Ctx) {
	ifMissing, config, expiry := false, []byte{}, (*binary.Expiry)(nil)
	list, from := !unlisted(c.Args), 2
	if !list {
		from = 3
	}
	for o := c.Options(from); o.Next(); {
		switch {
		case o.Is("ifmissing"):
			ifMissing = true
		case o.Is("config") && o.More() && expiry == nil:
			config = o.Arg()
		case o.Is("expiry") && len(config) == 0:
			var args [][]byte
			for range 3 {
				if o.More() {
					args = append(args, o.Arg())
				}
			}
			e, ok := expiryOption(c, args)
			if !ok {
				return
			}
			expiry, config = &e, binary.AppendExpiring(nil, string(c.Args[1]), e)
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	ca := cacheOf(c, c.Args[1])
	switch {
	case len(ca.name) == 0:
		c.Err(errCacheName)
	case !ca.typesFit() || list && !effect.Is(c, cachesKey, engine.Hash):
	case ca.exists() && !ifMissing:
		c.Err(errCacheExists)
	case ca.exists():
		c.W.Int(0)
	case !list:
		ca.createUnlisted(config)
		c.W.Int(1)
	default:
		if err := ca.create(config); err != "" {
			c.Err(err)
			return
		}
		c.W.Int(1)
	}
}

func destroy(c *command.Ctx) {
	list := !unlisted(c.Args)
	switch ca := cacheOf(c, c.Args[1]); {
	case len(c.Args) > 3 || len(c.Args) == 3 && list:
		c.Err(command.ErrSyntax)
	case !ca.check() || list && !effect.Is(c, cachesKey, engine.Hash):
	case list:
		ca.destroy()
		c.W.OK()
	default:
		ca.destroyUnlisted()
		c.W.OK()
	}
}

func listCaches(c *command.Ctx) {
	if !effect.Is(c, cachesKey, engine.Hash) {
		return
	}
	var names []string
	if h := effect.Hash(c, cachesKey); h != nil {
		for _, name := range h.All() {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	c.W.Array(len(names))
	for _, name := range names {
		c.W.BulkString(name)
	}
}

// id32 reads a number of 32 bits; if it is invalid, it writes an error and ok is false.
func id32(c *command.Ctx, arg []byte) (field []byte, ok bool) {
	n, err := strconv.ParseInt(string(arg), 10, 32)
	if err != nil {
		c.Err(command.ErrNotInteger)
		return nil, false
	}
	return strconv.AppendInt(nil, n, 10), true
}

func nameOfID(c *command.Ctx) {
	id, ok := id32(c, c.Args[1])
	if !ok || !effect.Is(c, cachesKey, engine.Hash) {
		return
	}
	replyField(c, cachesKey, id)
}

// replyField replies with a field of a hash.
func replyField(c *command.Ctx, key, field []byte) {
	v, ok := effect.HGet(c, key, field)
	if !ok {
		c.W.Null()
		return
	}
	c.W.Bulk(v)
}

func showConfig(c *command.Ctx) {
	if ca := cacheOf(c, c.Args[1]); ca.check() {
		c.W.Bulk(ca.config())
	}
}

const errType command.Error = "BADTYPE not the definition of a type"

// putType merges a definition into the registered type.
func putType(c *command.Ctx) {
	t, err := binary.ParseType(c.Args[1])
	if err != nil {
		c.Err(errType)
		return
	}
	if !effect.Is(c, typesKey, engine.Hash) {
		return
	}
	if err := register(c, t); err != nil {
		c.Err(command.Error("BADTYPE " + err.Error()))
		return
	}
	c.W.OK()
}

// register merges a definition into the registered type.
func register(c *command.Ctx, t *binary.Type) error {
	id := strconv.AppendInt(nil, int64(t.ID), 10)
	stored, has := effect.HGet(c, typesKey, id)
	if known := registered(c)(t.ID); known != nil {
		if err := known.Merge(t); err != nil {
			return err
		}
		t = known
	}
	if b := t.Append(nil); !has || !bytes.Equal(b, stored) {
		effect.HSet(c, typesKey, id, b)
	}
	return nil
}

// codeName returns the name of the type of a field.
func codeName(code int32) string {
	if name, ok := binary.CodeNames[binary.Code(code)]; ok && code == int32(byte(code)) {
		return name
	}
	return strconv.Itoa(int(code))
}

// showType accepts an id or a name, which determines the id.
func showType(c *command.Ctx) {
	raw := len(c.Args) == 3 && command.EqualFold(c.Args[2], rawWord)
	if len(c.Args) > 2 && !raw {
		c.Err(command.ErrSyntax)
		return
	}
	id, err := strconv.ParseInt(string(c.Args[1]), 10, 32)
	if err != nil {
		id = int64(binary.ID(string(c.Args[1])))
	}
	if !effect.Is(c, typesKey, engine.Hash) {
		return
	}
	field := strconv.AppendInt(nil, id, 10)
	if raw {
		replyField(c, typesKey, field)
		return
	}
	t := registered(c)(int32(id))
	if t == nil {
		c.W.Null()
		return
	}
	c.W.Map(5)
	c.W.BulkString("id")
	c.W.Int(id)
	c.W.BulkString("name")
	c.W.BulkString(t.Name)
	c.W.BulkString("affinity")
	c.W.BulkString(t.Affinity)
	c.W.BulkString("fields")
	c.W.Map(len(t.Fields))
	for _, f := range t.Fields {
		c.W.BulkString(f.Name)
		c.W.BulkString(codeName(f.Code))
	}
	c.W.BulkString("values")
	c.W.Map(len(t.Values))
	for _, v := range t.Values {
		c.W.BulkString(v.Name)
		c.W.Int(int64(v.Ordinal))
	}
}

// listTypes replies with the names and ids of the types.
func listTypes(c *command.Ctx) {
	if !effect.Is(c, typesKey, engine.Hash) {
		return
	}
	ids := map[string]int32{}
	if h := effect.Hash(c, typesKey); h != nil {
		for _, b := range h.All() {
			if t, err := binary.ParseType(b); err == nil {
				ids[t.Name] = t.ID
			}
		}
	}
	c.W.Map(len(ids))
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		c.W.BulkString(name)
		c.W.Int(int64(ids[name]))
	}
}

// nameField returns the field of TypeNames for the arguments, a platform and an id; if one is no number, it writes
// an error and ok is false.
func nameField(c *command.Ctx) (field []byte, ok bool) {
	platform, ok := c.IntIn(c.Args[1], 0, 255, command.ErrOutOfRange)
	if !ok {
		return nil, false
	}
	id, ok := id32(c, c.Args[2])
	if !ok || !effect.Is(c, typeNamesKey, engine.Hash) {
		return nil, false
	}
	return append(append(strconv.AppendInt(nil, platform, 10), ':'), id...), true
}

func typeName(c *command.Ctx) {
	if field, ok := nameField(c); ok {
		replyField(c, typeNamesKey, field)
	}
}

func putTypeName(c *command.Ctx) {
	field, ok := nameField(c)
	if !ok {
		return
	}
	if known, has := effect.HGet(c, typeNamesKey, field); !has || !bytes.Equal(known, c.Args[3]) {
		effect.HSet(c, typeNamesKey, field, c.Args[3])
	}
	c.W.OK()
}

// state replies with the state of the caches for thin clients, which the argument changes.
func state(c *command.Ctx) {
	if len(c.Args) > 2 {
		c.Err(command.ErrSyntax)
		return
	}
	if !effect.Is(c, stateKey, engine.String) {
		return
	}
	if len(c.Args) == 2 && !setState(c, c.Args[1]) {
		c.Err(command.ErrSyntax)
		return
	}
	now := []byte(keys.Active)
	if e := c.G.Peek(c.DB, stateKey); e != nil {
		now = e.Bytes()
	}
	c.W.Bulk(now)
}

// setState sets the state, and reports whether it is one.
func setState(c *command.Ctx, word []byte) bool {
	if command.EqualFold(word, "active") {
		if c.G.Peek(c.DB, stateKey) != nil {
			effect.Del(c, stateKey)
		}
		return true
	}
	for _, s := range []string{keys.Inactive, keys.ReadOnly} {
		if strings.EqualFold(s, string(word)) {
			effect.Set(c, stateKey, []byte(s))
			return true
		}
	}
	return false
}
