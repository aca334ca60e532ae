package hashes

import (
	"math"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/internal/command"
)

// This file has the commands on the deadlines of fields. Expired fields are removed before a command sees the hash:
// see engine/expire.go.

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
	errGetexExpirations   command.Error = "ERR Only one of EX, PX, EXAT, PXAT or PERSIST arguments can be specified"
	errFieldsTwice        command.Error = "ERR FIELDS keyword specified multiple times"
	errFieldsShort        command.Error = "ERR FIELDS requires at least numfields and one field argument"
	errNoFields           command.Error = "ERR missing FIELDS argument"
	errFieldArguments     command.Error = "ERR wrong number of arguments"
	errUnknownArgument    command.Error = "ERR unknown argument"

	errFieldManyConditions command.Error = "ERR Multiple condition flags specified"
)

// Replies for a field.
const (
	fieldMissing    = -2
	fieldPersistent = -1
	fieldUnchanged  = 0
	fieldChanged    = 1
	fieldDeleted    = 2
)

// maxFieldDeadline is the last time at which a field can expire, in ms since 1970. Redis keeps it in 46 bits.
const maxFieldDeadline = 1<<46 - 1

// fieldDeadline reads an argument as the deadline of fields; if it is invalid, it writes an error and ok is false.
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

// fieldArgs returns the fields among the arguments: the word FIELDS at index i, their number, and the fields. If the
// arguments are invalid, it writes an error and ok is false; notPositive is the error for a wrong number.
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

// replyForEach replies with the same number for each field.
func replyForEach(c *command.Ctx, fields [][]byte, n int64) {
	c.W.Array(len(fields))
	for range fields {
		c.W.Int(n)
	}
}

// expireField gives a field a deadline, or removes the field if the deadline has passed, and returns HEXPIRE's reply
// for it.
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

// expired are fields that got a deadline, or were removed because it had passed.
type expired struct{ changed, deleted [][]byte }

// note adds a field with the result of expireField.
func (x *expired) note(field []byte, result int64) {
	switch result {
	case fieldChanged:
		x.changed = append(x.changed, field)
	case fieldDeleted:
		x.deleted = append(x.deleted, field)
	}
}

// tell reports and journals the changes of the fields.
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

// Words of journalled commands on fields.
var (
	hsetWord       = []byte("HSET")
	hdelWord       = []byte("HDEL")
	hpexpireatWord = []byte("HPEXPIREAT")
	hpersistWord   = []byte("HPERSIST")
	fieldsWord     = []byte("FIELDS")
)

// journalFields journals the values and deadlines of fields. pairs are fields and values in turn.
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

// journalDeadline journals the deadline of fields.
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

// fieldsDeleted reports that fields of a hash were removed, and removes the key with the last one.
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

// readFieldConditions reads the fields of HEXPIRE and its variants, and the condition before or after them; if they
// are wrong, it writes an error and ok is false.
func readFieldConditions(c *command.Ctx) (fields [][]byte, cond command.ExpireConditions, ok bool) {
	for o := c.Options(3); o.Next(); {
		switch {
		case o.Is("fields"):
			if fields != nil {
				c.Err(errFieldsTwice)
				return nil, cond, false
			}
			if o.Left() < 2 {
				c.Err(errFieldsShort)
				return nil, cond, false
			}
			n, ok := c.IntIn(o.Arg(), 1, math.MaxInt32, errNumFields)
			if !ok {
				return nil, cond, false
			}
			if n > int64(o.Left()) {
				c.Err(errFieldArguments)
				return nil, cond, false
			}
			fields = o.Take(int(n))
		case o.Is("nx"):
			cond.NX = true
		case o.Is("xx"):
			cond.XX = true
		case o.Is("gt"):
			cond.GT = true
		case o.Is("lt"):
			cond.LT = true
		default:
			c.Err(unknownArgument(o.Word()))
			return nil, cond, false
		}
	}
	conditions := 0
	for _, given := range [...]bool{cond.NX, cond.XX, cond.GT, cond.LT} {
		if given {
			conditions++
		}
	}
	switch {
	case fields == nil:
		c.Err(errNoFields)
		return nil, cond, false
	case conditions > 1:
		c.Err(errFieldManyConditions)
		return nil, cond, false
	}
	return fields, cond, true
}

func unknownArgument(word []byte) command.Error {
	return command.Error("ERR unknown argument: " + string(command.UntilNUL(word)))
}

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
	fields, cond, ok := readFieldConditions(c)
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

// replyFieldDeadlines replies with the deadlines of fields of the key argument 1, rounded up to the unit.
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
	x, ok := readFieldOptions(c, 1, errGetexExpirations)
	if !ok {
		return
	}
	if x.flags&(fieldKeepTTL|fieldFNX|fieldFXX) != 0 {
		c.Err(errUnknownArgument)
		return
	}
	fields, persist, expire, at := x.fields, x.flags&fieldPersist != 0, x.flags&fieldExpire != 0, x.at
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

// fieldOptions are the options of HSETEX and HGETEX.
type fieldOptions struct {
	flags  fieldFlags
	at     int64    // the deadline of the fields, with fieldExpire
	fields [][]byte // for HSETEX, fields and values in turn
}

type fieldFlags uint8

const (
	fieldExpire fieldFlags = 1 << iota
	fieldKeepTTL
	fieldPersist
	fieldFNX
	fieldFXX
)

// readFieldOptions reads the arguments of HSETEX and HGETEX after the key, in any order; each field has perField
// arguments. If they are wrong, it writes an error and ok is false; exclusive is the error for times that exclude
// each other.
func readFieldOptions(c *command.Ctx, perField int, exclusive command.Error) (x fieldOptions, ok bool) {
	refuse := func(e command.Error) (fieldOptions, bool) {
		c.Err(e)
		return x, false
	}
	for o := c.Options(2); o.Next(); {
		var unit command.TimeUnit
		var flag, excluded fieldFlags
		switch {
		case o.Is("fields"):
			if x.fields != nil {
				return refuse(errFieldsTwice)
			}
			if !o.More() {
				return refuse(command.WrongArity(c.Cmd))
			}
			n, ok := c.IntIn(o.Arg(), 1, math.MaxInt32, errInvalidFieldCount)
			if !ok {
				return x, false
			}
			if n*int64(perField) > int64(o.Left()) {
				return refuse(errFieldArguments)
			}
			x.fields = o.Take(int(n) * perField)
			continue
		case o.Is("ex"):
			unit = command.InSeconds
		case o.Is("px"):
			unit = command.InMillis
		case o.Is("exat"):
			unit = command.AtSeconds
		case o.Is("pxat"):
			unit = command.AtMillis
		case o.Is("keepttl"):
			flag, excluded = fieldKeepTTL, fieldExpire|fieldKeepTTL
		case o.Is("persist"):
			flag, excluded = fieldPersist, fieldExpire|fieldPersist
		case o.Is("fxx"):
			flag = fieldFXX
		case o.Is("fnx"):
			flag = fieldFNX
		default:
			return refuse(unknownArgument(o.Word()))
		}
		if unit.MS != 0 {
			flag, excluded = fieldExpire, fieldExpire|fieldKeepTTL|fieldPersist
		}
		if x.flags&excluded != 0 {
			return refuse(exclusive)
		}
		if flag&(fieldFXX|fieldFNX) != 0 && x.flags&(fieldFXX|fieldFNX) != 0 {
			return refuse(errFieldConditions)
		}
		if x.flags |= flag; unit.MS == 0 {
			continue
		}
		if !o.More() {
			return refuse(errMissingExpireTime)
		}
		if x.at, ok = fieldDeadline(c, o.Arg(), unit); !ok {
			return x, false
		}
	}
	if x.fields == nil {
		return refuse(errNoFields)
	}
	return x, true
}

func cmdHsetex(c *command.Ctx) {
	x, ok := readFieldOptions(c, 2, errFieldExpirations)
	if !ok {
		return
	}
	if x.flags&fieldPersist != 0 {
		c.Err(errUnknownArgument)
		return
	}
	pairs := x.fields
	e, ok := c.WriteAs(c.Args[1], engine.Hash)
	if !ok {
		return
	}
	var h *hashes.Hash
	if e != nil {
		h = e.Elements(pairs, 2).Hash()
	}
	if x.flags&(fieldFNX|fieldFXX) != 0 {
		for i := 0; i < len(pairs); i += 2 {
			if exists := h != nil && h.Has(pairs[i]); exists != (x.flags&fieldFXX != 0) {
				c.W.Int(0)
				return
			}
		}
	}
	e, h = orNew(c, e, h)
	lim := c.Host.HashLimits()
	for i := 0; i < len(pairs); i += 2 {
		if x.flags&(fieldKeepTTL|fieldExpire) != 0 {
			h.Update(pairs[i], pairs[i+1], lim)
		} else {
			h.Set(pairs[i], pairs[i+1], lim)
		}
	}
	c.G.ChangedFields(e, "hset", pairs, 2)
	if x.flags&fieldExpire != 0 {
		c.Journal(append([][]byte{hsetWord, c.Args[1]}, pairs...)...)
		var done expired
		for i := 0; i < len(pairs); i += 2 {
			done.note(pairs[i], expireField(c, h, pairs[i], x.at, command.ExpireConditions{}))
		}
		done.tell(c, e, x.at)
	} else {
		journalFields(c, h, pairs)
	}
	c.W.Int(1)
}
