package hashes

import (
	"math"
	"strconv"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/hashes"
)

// This file has the commands on the deadlines of fields. Fields whose time has come are gone before a command sees
// the hash: see engine/expire.go.

var hashExpireCommands = []*command.Command{
	{Name: "hexpire", Group: "hash", Since: "7.4.0", Arity: -6, Flags: command.Write | command.Fast,
		ACL: command.CatHash, Keys: command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary:    "Sets the time to live of fields in seconds",
		Syntax:     "key seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
		Complexity: "O(N), where N is the number of fields named", Do: cmdHexpire},
	{Name: "hexpireat", Group: "hash", Since: "7.4.0", Arity: -6, Flags: command.Write | command.Fast,
		ACL: command.CatHash, Keys: command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary:    "Sets when fields expire, as a Unix time in seconds",
		Syntax:     "key unix-time-seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
		Complexity: "O(N), where N is the number of fields named", Do: cmdHexpireat},
	{Name: "hexpiretime", Group: "hash", Since: "7.4.0", Arity: -5, Flags: command.ReadOnly | command.Fast,
		ACL:        command.CatHash,
		Keys:       command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary:    "Returns when fields expire, as a Unix time in seconds",
		Syntax:     "key FIELDS numfields field [field ...]",
		Complexity: "O(N), where N is the number of fields named", Do: cmdHexpiretime},
	{Name: "hgetdel", Group: "hash", Since: "8.0.0", Arity: -5, Flags: command.Write | command.Fast, ACL: command.CatHash,
		Keys:       command.Keys("i1+r0/1/0[RW,ACCESS,DELETE]"),
		Summary:    "Returns the values of fields and deletes the fields",
		Syntax:     "key FIELDS numfields field [field ...]",
		Complexity: "O(N), where N is the number of fields named", Do: cmdHgetdel},
	{Name: "hgetex", Group: "hash", Since: "8.0.0", Arity: -5, Flags: command.Write | command.Fast, ACL: command.CatHash,
		Keys:       command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary:    "Returns the values of fields and sets their time to live",
		Syntax:     "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST] FIELDS numfields field [field ...]",
		Complexity: "O(N), where N is the number of fields named", Do: cmdHgetex},
	{Name: "hpersist", Group: "hash", Since: "7.4.0", Arity: -5, Flags: command.Write | command.Fast, ACL: command.CatHash,
		Keys:    command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Removes the time to live of fields", Syntax: "key FIELDS numfields field [field ...]",
		Complexity: "O(N), where N is the number of fields named", Do: cmdHpersist},
	{Name: "hpexpire", Group: "hash", Since: "7.4.0", Arity: -6, Flags: command.Write | command.Fast,
		ACL: command.CatHash, Keys: command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary:    "Sets the time to live of fields in milliseconds",
		Syntax:     "key milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
		Complexity: "O(N), where N is the number of fields named", Do: cmdHpexpire},
	{Name: "hpexpireat", Group: "hash", Since: "7.4.0", Arity: -6, Flags: command.Write | command.Fast,
		ACL: command.CatHash, Keys: command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary:    "Sets when fields expire, as a Unix time in milliseconds",
		Syntax:     "key unix-time-milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
		Complexity: "O(N), where N is the number of fields named", Do: cmdHpexpireat},
	{Name: "hpexpiretime", Group: "hash", Since: "7.4.0", Arity: -5, Flags: command.ReadOnly | command.Fast,
		ACL:        command.CatHash,
		Keys:       command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary:    "Returns when fields expire, as a Unix time in milliseconds",
		Syntax:     "key FIELDS numfields field [field ...]",
		Complexity: "O(N), where N is the number of fields named", Do: cmdHpexpiretime},
	{Name: "hpttl", Group: "hash", Since: "7.4.0", Arity: -5, Flags: command.ReadOnly | command.Fast, ACL: command.CatHash,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns the time to live of fields in milliseconds", Syntax: "key FIELDS numfields field [field ...]",
		Complexity: "O(N), where N is the number of fields named", Do: cmdHpttl},
	{Name: "hsetex", Group: "hash", Since: "8.0.0", Arity: -6, Flags: command.Write | command.DenyOOM | command.Fast,
		ACL: command.CatHash, Keys: command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Sets the values of fields and their time to live",
		Syntax: "key [FNX | FXX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL] " +
			"FIELDS numfields field value [field value ...]",
		Complexity: "O(N), where N is the number of fields to set", Do: cmdHsetex},
	{Name: "httl", Group: "hash", Since: "7.4.0", Arity: -5, Flags: command.ReadOnly | command.Fast, ACL: command.CatHash,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns the time to live of fields in seconds", Syntax: "key FIELDS numfields field [field ...]",
		Complexity: "O(N), where N is the number of fields named", Do: cmdHttl},
}

const (
	errFieldsMissing      command.Error = "ERR Mandatory argument FIELDS is missing or not at the right position"
	errFieldCount         command.Error = "ERR The `numfields` parameter must match the number of arguments"
	errFieldsNotPositive  command.Error = "ERR Number of fields must be a positive integer"
	errNumFields          command.Error = "ERR Parameter `numFields` should be greater than 0"
	errInvalidFieldCount  command.Error = "ERR invalid number of fields"
	errNegativeExpireTime command.Error = "ERR invalid expire time, must be >= 0"
	errMissingExpireTime  command.Error = "ERR missing expire time"
	errFieldConditions    command.Error = "ERR Only one of FXX or FNX arguments can be specified"
	errFieldExpirations   command.Error = "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified"
)

// What commands reply for a field.
const (
	fieldMissing    = -2
	fieldPersistent = -1
	fieldUnchanged  = 0
	fieldChanged    = 1
	fieldDeleted    = 2
)

// maxFieldDeadline is the last time at which a field can expire, in ms since 1970. Redis keeps it in 46 bits.
const maxFieldDeadline = 1<<46 - 1

// fieldDeadline reads the time that an argument means as the deadline of fields; if it is none an error is written
// and ok is false.
func fieldDeadline(c *command.Ctx, arg []byte, unit command.TimeUnit) (at int64, ok bool) {
	n, ok := c.Int(arg)
	if !ok {
		return 0, false
	}
	if n < 0 {
		c.Err(errNegativeExpireTime)
		return 0, false
	}
	if at, ok = unit.Deadline(c.Now(), n); !ok || at > maxFieldDeadline {
		c.Err(c.BadExpireTime())
		return 0, false
	}
	return at, true
}

// fieldArgs returns the fields among the arguments: the word FIELDS stands at index i, their number behind it, and
// then they follow. If that is not so an error is written and ok is false; notPositive is that for a wrong number.
func fieldArgs(c *command.Ctx, i int, notPositive command.Error) (fields [][]byte, ok bool) {
	switch {
	case i >= len(c.Args) || !command.EqualFold(c.Args[i], "fields"):
		c.Err(errFieldsMissing)
		return nil, false
	case i+1 >= len(c.Args):
		c.Err(command.WrongArity(c.Cmd))
		return nil, false
	}
	n, ok := c.IntIn(c.Args[i+1], 1, math.MaxInt64, notPositive)
	if !ok {
		return nil, false
	}
	fields = c.Args[i+2:]
	if n != int64(len(fields)) {
		c.Err(errFieldCount)
		return nil, false
	}
	return fields, true
}

// replyForEach replies with the same number for each of some fields.
func replyForEach(c *command.Ctx, fields [][]byte, n int64) {
	c.W.Array(len(fields))
	for range fields {
		c.W.Int(n)
	}
}

// expireField gives a field a deadline, or removes it if that has passed, and returns what HEXPIRE replies for it.
func expireField(c *command.Ctx, h *hashes.Hash, field []byte, at int64, cond command.ExpireConditions) int64 {
	old, ok := h.Deadline(field)
	switch {
	case !ok:
		return fieldMissing
	case !cond.Allow(old, at):
		return fieldUnchanged
	case c.Over(at):
		h.Delete(field)
		return fieldDeleted
	}
	h.SetDeadline(field, at)
	return fieldChanged
}

// expired are fields that have got a deadline, or were removed because it had passed.
type expired struct{ changed, deleted [][]byte }

// note adds a field of which expireField has returned the result.
func (x *expired) note(field []byte, result int64) {
	switch result {
	case fieldChanged:
		x.changed = append(x.changed, field)
	case fieldDeleted:
		x.deleted = append(x.deleted, field)
	}
}

// tell reports and journals what has been done to fields of a hash.
func (x *expired) tell(c *command.Ctx, e *engine.Entry, at int64) {
	if len(x.changed) > 0 {
		journalDeadline(c, at, x.changed...)
	}
	switch {
	case len(x.deleted) > 0:
		c.Journal(append([][]byte{hdelWord, c.Args[1]}, x.deleted...)...)
		fieldsDeleted(c, e, x.deleted)
	case len(x.changed) > 0:
		c.G.ChangedFields(e, "hexpire", x.changed, 1)
	}
}

// Words that the commands on fields are journalled with.
var (
	hsetWord       = []byte("HSET")
	hdelWord       = []byte("HDEL")
	hpexpireatWord = []byte("HPEXPIREAT")
	hpersistWord   = []byte("HPERSIST")
	fieldsWord     = []byte("FIELDS")
)

// journalFields has the values of fields journalled, and their deadlines. pairs are fields and values in turn.
func journalFields(c *command.Ctx, h *hashes.Hash, pairs [][]byte) {
	if !c.G.Journals() {
		return
	}
	c.Journal(append([][]byte{hsetWord, c.Args[1]}, pairs...)...)
	for i := 0; i < len(pairs); i += 2 {
		if at, ok := h.Deadline(pairs[i]); ok && at != 0 {
			journalDeadline(c, at, pairs[i])
		}
	}
}

// journalDeadline has the deadline of fields journalled.
func journalDeadline(c *command.Ctx, at int64, fields ...[]byte) {
	if !c.G.Journals() {
		return
	}
	args := append(make([][]byte, 0, 5+len(fields)), hpexpireatWord, c.Args[1], strconv.AppendInt(nil, at, 10))
	c.Journal(append(appendFields(args, len(fields)), fields...)...)
}

// appendFields appends the word FIELDS and a number.
func appendFields(args [][]byte, n int) [][]byte {
	return append(args, fieldsWord, strconv.AppendInt(nil, int64(n), 10))
}

// fieldsDeleted tells that fields of a hash have gone, and with the last one the key.
func fieldsDeleted(c *command.Ctx, e *engine.Entry, fields [][]byte) {
	c.G.ChangedFields(e, "hdel", fields, 1)
	if e.Count() == 0 {
		c.G.Remove(e, engine.EventGeneric, "del")
	}
}

func cmdHexpire(c *command.Ctx)    { hexpire(c, command.InSeconds) }
func cmdHexpireat(c *command.Ctx)  { hexpire(c, command.AtSeconds) }
func cmdHpexpire(c *command.Ctx)   { hexpire(c, command.InMillis) }
func cmdHpexpireat(c *command.Ctx) { hexpire(c, command.AtMillis) }

// hexpire gives fields of the key argument 1 the deadline argument 2.
func hexpire(c *command.Ctx, unit command.TimeUnit) {
	e, ok := c.WriteAs(c.Args[1], engine.Hash)
	if !ok {
		return
	}
	at, ok := fieldDeadline(c, c.Args[2], unit)
	if !ok {
		return
	}
	cond, next := command.ExpireConditions{}, 4
	switch word := c.Args[3]; {
	case command.EqualFold(word, "nx"):
		cond.NX = true
	case command.EqualFold(word, "xx"):
		cond.XX = true
	case command.EqualFold(word, "gt"):
		cond.GT = true
	case command.EqualFold(word, "lt"):
		cond.LT = true
	default:
		next = 3
	}
	fields, ok := fieldArgs(c, next, errNumFields)
	if !ok {
		return
	}
	if e == nil {
		replyForEach(c, fields, fieldMissing)
		return
	}
	h := e.Elements(fields, 1).Hash()
	var done expired
	c.W.Array(len(fields))
	for _, field := range fields {
		result := expireField(c, h, field, at, cond)
		done.note(field, result)
		c.W.Int(result)
	}
	done.tell(c, e, at)
}

func cmdHexpiretime(c *command.Ctx)  { replyFieldDeadlines(c, command.AtSeconds) }
func cmdHpexpiretime(c *command.Ctx) { replyFieldDeadlines(c, command.AtMillis) }
func cmdHttl(c *command.Ctx)         { replyFieldDeadlines(c, command.InSeconds) }
func cmdHpttl(c *command.Ctx)        { replyFieldDeadlines(c, command.InMillis) }

// replyFieldDeadlines replies when fields of the key argument 1 expire, rounded up to the unit.
func replyFieldDeadlines(c *command.Ctx, unit command.TimeUnit) {
	e, ok := c.ReadAs(c.Args[1], engine.Hash)
	if !ok {
		return
	}
	fields, ok := fieldArgs(c, 2, errFieldsNotPositive)
	if !ok {
		return
	}
	h := new(hashes.Hash)
	if e != nil {
		h = e.Elements(fields, 1).Hash()
	}
	c.W.Array(len(fields))
	for _, field := range fields {
		at, ok := h.Deadline(field)
		switch {
		case !ok:
			at = fieldMissing
		case at == 0:
			at = fieldPersistent
		default:
			if !unit.Absolute {
				at -= c.Now()
			}
			at = (at + unit.MS - 1) / unit.MS
		}
		c.W.Int(at)
	}
}

func cmdHpersist(c *command.Ctx) {
	e, ok := c.WriteAs(c.Args[1], engine.Hash)
	if !ok {
		return
	}
	fields, ok := fieldArgs(c, 2, errFieldsNotPositive)
	if !ok {
		return
	}
	if e == nil {
		replyForEach(c, fields, fieldMissing)
		return
	}
	h := e.Elements(fields, 1).Hash()
	var changed [][]byte
	c.W.Array(len(fields))
	for _, field := range fields {
		switch at, ok := h.Deadline(field); {
		case !ok:
			c.W.Int(fieldMissing)
		case at == 0:
			c.W.Int(fieldPersistent)
		default:
			h.SetDeadline(field, 0)
			changed = append(changed, field)
			c.W.Int(fieldChanged)
		}
	}
	if len(changed) > 0 {
		c.G.ChangedFields(e, "hpersist", changed, 1)
	}
}

func cmdHgetdel(c *command.Ctx) {
	e, ok := c.WriteAs(c.Args[1], engine.Hash)
	if !ok {
		return
	}
	fields, ok := fieldArgs(c, 2, errFieldsNotPositive)
	if !ok {
		return
	}
	h := new(hashes.Hash)
	if e != nil {
		h = e.Elements(fields, 1).Hash()
	}
	deleted := [][]byte{hdelWord, c.Args[1]}
	c.W.Array(len(fields))
	for _, field := range fields {
		hget(c, h, field)
		if h.Delete(field) {
			deleted = append(deleted, field)
		}
	}
	if len(deleted) > 2 {
		c.Journal(deleted...)
		fieldsDeleted(c, e, deleted[2:])
	}
}

func cmdHgetex(c *command.Ctx) {
	e, ok := c.WriteAs(c.Args[1], engine.Hash)
	if !ok {
		return
	}
	var unit command.TimeUnit
	persist, next := false, 2
	switch word := c.Args[2]; {
	case command.EqualFold(word, "ex"):
		unit = command.InSeconds
	case command.EqualFold(word, "px"):
		unit = command.InMillis
	case command.EqualFold(word, "exat"):
		unit = command.AtSeconds
	case command.EqualFold(word, "pxat"):
		unit = command.AtMillis
	case command.EqualFold(word, "persist"):
		persist, next = true, 3
	}
	at, expire := int64(0), unit.MS != 0
	if expire {
		if at, ok = fieldDeadline(c, c.Args[3], unit); !ok {
			return
		}
		next = 4
	}
	fields, ok := fieldArgs(c, next, errFieldsNotPositive)
	if !ok {
		return
	}
	h := new(hashes.Hash)
	if e != nil {
		h = e.Elements(fields, 1).Hash()
	}
	var done expired
	c.W.Array(len(fields))
	for _, field := range fields {
		hget(c, h, field)
		if expire {
			done.note(field, expireField(c, h, field, at, command.ExpireConditions{}))
		} else if old, _ := h.Deadline(field); persist && old != 0 {
			h.SetDeadline(field, 0)
			done.note(field, fieldChanged)
		}
	}
	if !persist {
		done.tell(c, e, at)
	} else if len(done.changed) > 0 {
		c.G.ChangedFields(e, "hpersist", done.changed, 1)
		args := appendFields([][]byte{hpersistWord, c.Args[1]}, len(done.changed))
		c.Journal(append(args, done.changed...)...)
	}
}

// hsetexOptions are the options of HSETEX.
type hsetexOptions struct {
	fnx, fxx, keepTTL bool
	expire            bool
	at                int64    // when the fields expire, if expire
	pairs             [][]byte // fields and values in turn
}

// readHsetexOptions reads the arguments of HSETEX behind the key; if they are wrong an error is written and ok is
// false.
func readHsetexOptions(c *command.Ctx) (x hsetexOptions, ok bool) {
	for o := c.Options(2); o.Next(); {
		var unit command.TimeUnit
		switch {
		case o.Is("fields"):
			if o.Left() < 3 {
				c.Err(command.WrongArity(c.Cmd))
				return x, false
			}
			n, ok := c.IntIn(o.Arg(), 1, math.MaxInt32, errInvalidFieldCount)
			if !ok {
				return x, false
			}
			x.pairs = o.Rest()
			if len(x.pairs)%2 != 0 || n != int64(len(x.pairs)/2) {
				c.Err(command.WrongArity(c.Cmd))
				return x, false
			}
			return x, true
		case o.Is("ex"):
			unit = command.InSeconds
		case o.Is("px"):
			unit = command.InMillis
		case o.Is("exat"):
			unit = command.AtSeconds
		case o.Is("pxat"):
			unit = command.AtMillis
		case o.Is("keepttl"):
			if x.expire || x.keepTTL {
				c.Err(errFieldExpirations)
				return x, false
			}
			x.keepTTL = true
		case o.Is("fxx"), o.Is("fnx"):
			if x.fxx || x.fnx {
				c.Err(errFieldConditions)
				return x, false
			}
			x.fxx, x.fnx = o.Is("fxx"), o.Is("fnx")
		default:
			c.Err(command.Error("ERR unknown argument: " + string(command.UntilNUL(o.Word()))))
			return x, false
		}
		if unit.MS == 0 {
			continue
		}
		switch {
		case x.expire || x.keepTTL:
			c.Err(errFieldExpirations)
			return x, false
		case !o.More():
			c.Err(errMissingExpireTime)
			return x, false
		}
		if x.at, ok = fieldDeadline(c, o.Arg(), unit); !ok {
			return x, false
		}
		x.expire = true
	}
	c.Err(command.WrongArity(c.Cmd))
	return x, false
}

func cmdHsetex(c *command.Ctx) {
	x, ok := readHsetexOptions(c)
	if !ok {
		return
	}
	e, ok := c.WriteAs(c.Args[1], engine.Hash)
	if !ok {
		return
	}
	var h *hashes.Hash
	if e != nil {
		h = e.Elements(x.pairs, 2).Hash()
	}
	if x.fnx || x.fxx {
		for i := 0; i < len(x.pairs); i += 2 {
			if exists := h != nil && h.Has(x.pairs[i]); exists != x.fxx {
				c.W.Int(0)
				return
			}
		}
	}
	e, h = orNew(c, e, h)
	lim := c.Host.HashLimits()
	for i := 0; i < len(x.pairs); i += 2 {
		if x.keepTTL || x.expire {
			h.Update(x.pairs[i], x.pairs[i+1], lim)
		} else {
			h.Set(x.pairs[i], x.pairs[i+1], lim)
		}
	}
	c.G.ChangedFields(e, "hset", x.pairs, 2)
	if x.expire {
		c.Journal(append([][]byte{hsetWord, c.Args[1]}, x.pairs...)...)
		var done expired
		for i := 0; i < len(x.pairs); i += 2 {
			done.note(x.pairs[i], expireField(c, h, x.pairs[i], x.at, command.ExpireConditions{}))
		}
		done.tell(c, e, x.at)
	} else {
		journalFields(c, h, x.pairs)
	}
	c.W.Int(1)
}
