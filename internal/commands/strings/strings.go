// Package strings has the commands on strings.
package strings

import (
	"math"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
)

func init() { command.Register(stringCommands) }

var stringCommands = []*command.Command{
	{Name: "append", Group: "string", Since: "2.0.0", Arity: 3, Flags: command.Write | command.DenyOOM | command.Fast,
		ACL: command.CatString, Keys: command.Keys("i1+r0/1/0[RW,INSERT]"),
		Summary: "Appends to a string", Syntax: "key value",
		Complexity: "O(1), amortized over the growth of the string", Do: cmdAppend},
	{Name: "decr", Group: "string", Since: "1.0.0", Arity: 2, Flags: command.Write | command.DenyOOM | command.Fast,
		ACL: command.CatString, Keys: command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Decrements an integer by one", Syntax: "key", Complexity: "O(1)", Do: cmdDecr},
	{Name: "decrby", Group: "string", Since: "1.0.0", Arity: 3, Flags: command.Write | command.DenyOOM | command.Fast,
		ACL: command.CatString, Keys: command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Decrements an integer", Syntax: "key decrement", Complexity: "O(1)", Do: cmdDecrby},
	{Name: "get", Group: "string", Since: "1.0.0", Arity: 2, Flags: command.ReadOnly | command.Fast,
		ACL:     command.CatString,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns the value of a key", Syntax: "key", Complexity: "O(1)", Do: cmdGet},
	{Name: "getdel", Group: "string", Since: "6.2.0", Arity: 2, Flags: command.Write | command.Fast,
		ACL:     command.CatString,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,DELETE]"),
		Summary: "Returns the value of a key and deletes the key", Syntax: "key", Complexity: "O(1)", Do: cmdGetdel},
	{Name: "getex", Group: "string", Since: "6.2.0", Arity: -2, Flags: command.Write | command.Fast,
		ACL:        command.CatString,
		Keys:       command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary:    "Returns the value of a key and sets its time to live",
		Syntax:     "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST]",
		Complexity: "O(1)", Do: cmdGetex},
	{Name: "getrange", Group: "string", Since: "2.4.0", Arity: 4, Flags: command.ReadOnly, ACL: command.CatString,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns a part of a string",
		Syntax:  "key start end", Complexity: "O(N), where N is the length of the part", Do: cmdGetrange},
	{Name: "getset", Group: "string", Since: "1.0.0", Deprecated: "6.2.0", Instead: "`SET` with the `GET` argument",
		Arity: 3,
		Flags: command.Write | command.DenyOOM | command.Fast, ACL: command.CatString,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Sets the value of a key and returns the old one",
		Syntax:  "key value", Complexity: "O(1)", Do: cmdGetset},
	{Name: "incr", Group: "string", Since: "1.0.0", Arity: 2, Flags: command.Write | command.DenyOOM | command.Fast,
		ACL: command.CatString, Keys: command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Increments an integer by one", Syntax: "key", Complexity: "O(1)", Do: cmdIncr},
	{Name: "incrby", Group: "string", Since: "1.0.0", Arity: 3, Flags: command.Write | command.DenyOOM | command.Fast,
		ACL: command.CatString, Keys: command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Increments an integer", Syntax: "key increment", Complexity: "O(1)", Do: cmdIncrby},
	{Name: "incrbyfloat", Group: "string", Since: "2.6.0", Arity: 3, Flags: command.Write | command.DenyOOM | command.Fast,
		ACL: command.CatString, Keys: command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Increments a floating-point number", Syntax: "key increment",
		Complexity: "O(1)", Do: cmdIncrbyfloat},
	{Name: "lcs", Group: "string", Since: "7.0.0", Arity: -3, Flags: command.ReadOnly, ACL: command.CatString,
		Keys:       command.Keys("i1+r1/1/0[RO,ACCESS]"),
		Summary:    "Finds the longest common subsequence of two strings",
		Syntax:     "key1 key2 [LEN] [IDX] [MINMATCHLEN len] [WITHMATCHLEN]",
		Complexity: "O(N*M), where N and M are the lengths of the strings", Do: cmdLcs},
	{Name: "mget", Group: "string", Since: "1.0.0", Arity: -2, Flags: command.ReadOnly | command.Fast,
		ACL:     command.CatString,
		Keys:    command.Keys("i1+r-1/1/0[RO,ACCESS]"),
		Summary: "Returns the values of several keys",
		Syntax:  "key [key ...]", Complexity: "O(N), where N is the number of keys", Do: cmdMget},
	{Name: "mset", Group: "string", Since: "1.0.1", Arity: -3, Flags: command.Write | command.DenyOOM,
		ACL:     command.CatString,
		Keys:    command.Keys("i1+r-1/2/0[OW,UPDATE]"),
		Summary: "Sets the values of several keys", Syntax: "key value [key value ...]",
		Complexity: "O(N), where N is the number of keys", Do: cmdMset},
	{Name: "msetnx", Group: "string", Since: "1.0.1", Arity: -3, Flags: command.Write | command.DenyOOM,
		ACL:     command.CatString,
		Keys:    command.Keys("i1+r-1/2/0[OW,INSERT]"),
		Summary: "Sets the values of several keys if none of them exists", Syntax: "key value [key value ...]",
		Complexity: "O(N), where N is the number of keys", Do: cmdMsetnx},
	{Name: "psetex", Group: "string", Since: "2.6.0", Arity: 4, Flags: command.Write | command.DenyOOM,
		ACL:     command.CatString,
		Keys:    command.Keys("i1+r0/1/0[OW,UPDATE]"),
		Summary: "Sets the value of a key and its time to live in milliseconds",
		Syntax:  "key milliseconds value", Complexity: "O(1)", Do: cmdPsetex},
	{Name: "set", Group: "string", Since: "1.0.0", Arity: -3, Flags: command.Write | command.DenyOOM,
		ACL:     command.CatString,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE,VARIABLE_FLAGS]"),
		KeyUse:  setUse,
		Summary: "Sets the value of a key",
		Syntax: "key value [NX | XX | IFEQ ifeq-value | IFNE ifne-value | IFDEQ ifdeq-digest | IFDNE " +
			"ifdne-digest] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT " +
			"unix-time-milliseconds | KEEPTTL]",
		Complexity: "O(1)", Do: Set},
	{Name: "setex", Group: "string", Since: "2.0.0", Arity: 4, Flags: command.Write | command.DenyOOM,
		ACL:     command.CatString,
		Keys:    command.Keys("i1+r0/1/0[OW,UPDATE]"),
		Summary: "Sets the value of a key and its time to live in seconds",
		Syntax:  "key seconds value", Complexity: "O(1)", Do: cmdSetex},
	{Name: "setnx", Group: "string", Since: "1.0.0", Arity: 3, Flags: command.Write | command.DenyOOM | command.Fast,
		ACL: command.CatString, Keys: command.Keys("i1+r0/1/0[OW,INSERT]"),
		Summary: "Sets the value of a key that does not exist", Syntax: "key value", Complexity: "O(1)", Do: cmdSetnx},
	{Name: "setrange", Group: "string", Since: "2.2.0", Arity: 4, Flags: command.Write | command.DenyOOM,
		ACL:     command.CatString,
		Keys:    command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Overwrites a part of a string, padding it with zero bytes", Syntax: "key offset value",
		Complexity: "O(M), where M is the length of the value, and of the growth of the string", Do: cmdSetrange},
	{Name: "strlen", Group: "string", Since: "2.2.0", Arity: 2, Flags: command.ReadOnly | command.Fast,
		ACL:     command.CatString,
		Keys:    command.Keys("i1+r0/1/0[RO]"),
		Summary: "Returns the length of a string", Syntax: "key", Complexity: "O(1)", Do: cmdStrlen},
	{Name: "substr", Group: "string", Since: "1.0.0", Deprecated: "2.0.0", Instead: "`GETRANGE`", Arity: 4,
		Flags: command.ReadOnly,
		ACL:   command.CatString, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns a part of a string",
		Syntax:  "key start end", Complexity: "O(N), where N is the length of the part", Do: cmdGetrange},
}

// setUse returns how SET uses its key: without an option that reads the old value it only writes.
func setUse(args [][]byte) []string {
	compares := false
	for _, option := range args[min(3, len(args)):] {
		if command.EqualFold(option, "get") {
			return nil
		}
		for _, word := range [...]string{"ifeq", "ifne", "ifdeq", "ifdne"} {
			compares = compares || command.EqualFold(option, word)
		}
	}
	if compares {
		return []string{"RW", "update"}
	}
	return []string{"OW", "update"}
}

const (
	errDecrOverflow command.Error = "ERR decrement would overflow"
	errOffset       command.Error = "ERR offset is out of range"
)

func cmdAppend(c *command.Ctx) {
	key, tail := c.Args[1], c.Args[2]
	e, ok := c.WriteAs(key, engine.String)
	if !ok {
		return
	}
	if e == nil {
		e = c.G.CreateString(c.DB, key, tail)
	} else {
		if !c.LengthAllowed(len(e.Bytes()), len(tail)) {
			return
		}
		n := len(e.Bytes())
		copy(e.Resize(n + len(tail))[n:], tail)
	}
	c.G.Changed(e, engine.EventString, "append")
	c.W.Int(int64(len(e.Bytes())))
}

func cmdIncr(c *command.Ctx) { increment(c, 1) }
func cmdDecr(c *command.Ctx) { increment(c, -1) }

func cmdIncrby(c *command.Ctx) {
	if by, ok := c.Int(c.Args[2]); ok {
		increment(c, by)
	}
}

func cmdDecrby(c *command.Ctx) {
	by, ok := c.Int(c.Args[2])
	switch {
	case !ok:
	case by == math.MinInt64: // it cannot be negated in 64 bits
		c.Err(errDecrOverflow)
	default:
		increment(c, -by)
	}
}

// increment adds to the integer under key argument 1.
func increment(c *command.Ctx, by int64) {
	key := c.Args[1]
	e, ok := c.WriteAs(key, engine.String)
	if !ok {
		return
	}
	n := int64(0)
	if e != nil {
		if n, ok = c.Int(e.Bytes()); !ok {
			return
		}
	}
	if by > 0 && n > math.MaxInt64-by || by < 0 && n < math.MinInt64-by {
		c.Err(command.ErrOverflow)
		return
	}
	n += by
	var scratch [20]byte
	c.Store(e, key, strconv.AppendInt(scratch[:0], n, 10), "incrby")
	c.W.Int(n)
}

func cmdIncrbyfloat(c *command.Ctx) {
	key := c.Args[1]
	e, ok := c.WriteAs(key, engine.String)
	if !ok {
		return
	}
	current := []byte("0")
	if e != nil {
		current = e.Bytes()
	}
	x, ok := command.ParseLongDouble(current)
	if !ok {
		c.Err(command.ErrNotFloat)
		return
	}
	y, ok := command.ParseLongDouble(c.Args[2])
	if !ok {
		c.Err(command.ErrNotFloat)
		return
	}
	sum, ok := command.AddLongDouble(x, y)
	if !ok {
		c.Err(command.ErrNaN)
		return
	}
	text := command.AppendLongDouble(nil, sum)
	c.Store(e, key, text, "incrbyfloat").SetStringForm(engine.FormText)
	c.Journal(setWord, key, text, keepTTLWord)
	c.W.Bulk(text)
}

func cmdGet(c *command.Ctx) {
	if e, ok := c.ReadAs(c.Args[1], engine.String); ok {
		c.ReplyString(e)
	}
}

// replyOldString replies with the string under key argument 1 and returns its entry, which may then be changed. If
// the key is of another type, it writes an error and ok is false.
func replyOldString(c *command.Ctx) (e *engine.Entry, ok bool) {
	if e, ok = c.ReadToWriteAs(c.Args[1], engine.String); ok {
		c.ReplyString(e)
	}
	return e, ok
}

func cmdGetdel(c *command.Ctx) {
	if e, ok := replyOldString(c); ok && e != nil {
		c.G.Remove(e, engine.EventGeneric, "del")
		c.JournalDelete(c.Args[1])
	}
}

func cmdGetex(c *command.Ctx) {
	o, ok := readSetOptions(c, 2, setPersist)
	if !ok {
		return
	}
	e, ok := c.ReadToWriteAs(c.Args[1], engine.String)
	if !ok {
		return
	}
	if e == nil { // a bad time is no error for a missing key
		c.W.Null()
		return
	}
	at, ok := setDeadline(c, &o)
	if !ok {
		return
	}
	c.Bulk(e)
	switch {
	case o.flags&setPersist != 0:
		if e.Deadline() != 0 {
			c.G.SetDeadline(e, 0)
			c.G.Changed(e, engine.EventGeneric, "persist")
			c.Journal([]byte("PERSIST"), c.Args[1])
		}
	case o.flags&setExpire == 0:
	case c.Over(at):
		c.G.Remove(e, engine.EventGeneric, "del")
		c.JournalDelete(c.Args[1])
	default:
		c.G.SetDeadline(e, at)
		c.G.Changed(e, engine.EventGeneric, "expire")
		c.JournalDeadline(c.Args[1], at)
	}
}

func cmdGetrange(c *command.Ctx) {
	start, ok := c.Int(c.Args[2])
	if !ok {
		return
	}
	end, ok := c.Int(c.Args[3])
	if !ok {
		return
	}
	e, ok := c.ReadAs(c.Args[1], engine.String)
	if !ok {
		return
	}
	if e == nil {
		c.W.Bulk(nil)
		return
	}
	v := e.Bytes()
	n := int64(len(v))
	if start < 0 && end < 0 && start > end {
		c.W.Bulk(nil)
		return
	}
	if start < 0 {
		start += n
	}
	if end < 0 {
		end += n
	}
	start, end = max(start, 0), min(max(end, 0), n-1) // an end before the first byte means the first byte
	if start > end {
		c.W.Bulk(nil)
		return
	}
	c.W.Bulk(v[start : end+1])
}

func cmdGetset(c *command.Ctx) {
	if e, ok := replyOldString(c); ok {
		c.SetString(e, c.Args[1], c.Args[2])
	}
}

func cmdMget(c *command.Ctx) {
	c.LongKeys(len(c.Args) - 1)
	c.W.Array(len(c.Args) - 1)
	for i := 1; i < len(c.Args); i++ {
		c.WarmKeys(i, 1)
		if e := c.Read(c.Args[i]); e != nil && e.Type() == engine.String {
			c.Bulk(e)
		} else {
			c.W.Null()
		}
	}
}

func cmdMset(c *command.Ctx) {
	if len(c.Args)%2 == 0 {
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	setPairs(c)
	c.W.OK()
}

func cmdMsetnx(c *command.Ctx) {
	if len(c.Args)%2 == 0 {
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	for i := 1; i < len(c.Args); i += 2 {
		c.WarmKeys(i, 2)
		if c.G.Write(c.DB, c.Args[i]) != nil {
			c.W.Int(0)
			return
		}
	}
	setPairs(c)
	c.W.Int(1)
}

// setPairs writes the pairs of keys and values that are the arguments.
func setPairs(c *command.Ctx) {
	for i := 1; i < len(c.Args); i += 2 {
		c.WarmKeys(i, 2)
		c.SetString(c.G.Write(c.DB, c.Args[i]), c.Args[i], c.Args[i+1])
	}
}

// Set is the handler of SET. Other commands call it too.
func Set(c *command.Ctx) {
	key, v := c.Args[1], c.Args[2]
	if len(c.Args) == 3 {
		c.SetString(c.G.Write(c.DB, key), key, v)
		c.W.OK()
		return
	}
	if o, ok := readSetOptions(c, 3, setNX|setXX|setMatch|setGet|setKeepTTL); ok {
		set(c, key, v, &o)
	}
}

func cmdSetex(c *command.Ctx) {
	set(c, c.Args[1], c.Args[3], &setOptions{flags: setExpire, time: c.Args[2], unit: command.InSeconds})
}

func cmdPsetex(c *command.Ctx) {
	set(c, c.Args[1], c.Args[3], &setOptions{flags: setExpire, time: c.Args[2], unit: command.InMillis})
}

func cmdSetnx(c *command.Ctx) {
	if c.G.Write(c.DB, c.Args[1]) != nil {
		c.W.Int(0)
		return
	}
	c.SetString(nil, c.Args[1], c.Args[2])
	c.W.Int(1)
}

// setOptions are the options of SET and GETEX.
type setOptions struct {
	flags setFlags
	time  []byte // the time argument, with setExpire; a view
	unit  command.TimeUnit
	match condition // what the old value must be
}

type setFlags uint8

const (
	setNX setFlags = 1 << iota
	setXX
	setGet
	setKeepTTL
	setPersist
	setExpire
	setMatch
)

// readSetOptions reads the options from argument from on: those in allowed and the times. If they are wrong, it
// writes an error and ok is false.
func readSetOptions(c *command.Ctx, from int, allowed setFlags) (o setOptions, ok bool) {
	for p := c.Options(from); p.Next(); {
		var flag, excluded setFlags
		var unit command.TimeUnit
		switch {
		case p.Is("nx"):
			flag, excluded = setNX, setXX|setMatch
		case p.Is("xx"):
			flag, excluded = setXX, setNX|setMatch
		case p.Is("get"):
			flag = setGet
		case p.Is("keepttl"):
			flag, excluded = setKeepTTL, setExpire|setPersist
		case p.Is("persist"):
			flag, excluded = setPersist, setExpire|setKeepTTL
		case p.Is("ex"):
			unit = command.InSeconds
		case p.Is("px"):
			unit = command.InMillis
		case p.Is("exat"):
			unit = command.AtSeconds
		case p.Is("pxat"):
			unit = command.AtMillis
		}
		if unit.MS != 0 && p.More() {
			flag, excluded = setExpire, setKeepTTL|setPersist
			if o.unit != unit { // the same unit may be repeated, and the last one counts
				excluded |= setExpire
			}
		}
		if flag == 0 && allowed&setMatch != 0 && o.match.option(&p) {
			flag, excluded = setMatch, setNX|setXX|setMatch
		}
		if flag&(allowed|setExpire) == 0 || o.flags&excluded != 0 {
			c.Err(command.ErrSyntax)
			return o, false
		}
		if flag == setExpire {
			o.time, o.unit = p.Arg(), unit
		}
		o.flags |= flag
	}
	return o, true
}

// setDeadline returns the deadline in the options, 0 if none; if it is invalid, it writes an error and ok is false.
func setDeadline(c *command.Ctx, o *setOptions) (at int64, ok bool) {
	if o.flags&setExpire == 0 {
		return 0, true
	}
	n, ok := c.Int(o.time)
	if !ok {
		return 0, false
	}
	if at, ok = o.unit.Deadline(c.Now(), n); !ok || n <= 0 {
		c.Err(c.BadExpireTime())
		return 0, false
	}
	return at, true
}

// set executes SET with options.
func set(c *command.Ctx, key, v []byte, o *setOptions) {
	at, ok := setDeadline(c, o)
	if !ok {
		return
	}
	var e *engine.Entry
	switch {
	case o.flags&setGet != 0:
		e, ok = c.ReadToWriteAs(key, engine.String)
	case o.flags&setMatch != 0:
		e, ok = c.WriteAs(key, engine.String)
	default:
		e = c.G.Write(c.DB, key)
	}
	if !ok || e != nil && !o.match.check(c) { // a missing key matches no digest, so the digest is not checked
		return
	}
	if o.flags&setGet != 0 {
		c.ReplyString(e)
	}
	if o.flags&setNX != 0 && e != nil || o.flags&setXX != 0 && e == nil || o.flags&setMatch != 0 && !o.match.holds(e) {
		if o.flags&setGet == 0 {
			c.W.Null()
		}
		return
	}
	put(c, e, key, v, o, at)
	if o.flags&setGet == 0 {
		c.W.OK()
	}
}

// put makes v the value of e, or of a new entry if e is nil, with the deadline at unless the options keep the old
// one, and reports the change.
func put(c *command.Ctx, e *engine.Entry, key, v []byte, o *setOptions, at int64) {
	e = c.Overwrite(e, key, v)
	if o.flags&setKeepTTL == 0 {
		c.G.SetDeadline(e, at)
	}
	c.G.Changed(e, engine.EventString, "set")
	if at != 0 {
		c.G.Notify(engine.EventGeneric, "expire", c.DB, e.Key())
	}
	switch {
	case at != 0:
		var room [20]byte
		c.Journal(setWord, key, v, pxatWord, strconv.AppendInt(room[:0], at, 10))
	case o.flags&setKeepTTL != 0:
		c.Journal(setWord, key, v, keepTTLWord)
	default:
		c.Journal(setWord, key, v)
	}
}

// Words of a journalled SET.
var setWord, keepTTLWord, pxatWord = []byte("SET"), []byte("KEEPTTL"), []byte("PXAT")

func cmdSetrange(c *command.Ctx) {
	key, v := c.Args[1], c.Args[3]
	offset, ok := c.Int(c.Args[2])
	if !ok {
		return
	}
	if offset < 0 {
		c.Err(errOffset)
		return
	}
	e, ok := c.WriteAs(key, engine.String)
	if !ok {
		return
	}
	var old []byte
	if e != nil {
		old = e.Bytes()
	}
	if len(v) == 0 {
		c.W.Int(int64(len(old)))
		return
	}
	if !c.LengthAllowed(command.AsInt(offset), len(v)) {
		return
	}
	if e == nil {
		e = c.G.CreateString(c.DB, key, nil)
	}
	n := max(len(old), int(offset)+len(v))
	copy(e.Resize(n)[offset:], v)
	c.G.Changed(e, engine.EventString, "setrange")
	c.W.Int(int64(n))
}

func cmdStrlen(c *command.Ctx) {
	e, ok := c.ReadAs(c.Args[1], engine.String)
	switch {
	case !ok:
	case e == nil:
		c.W.Int(0)
	default:
		c.W.Int(int64(len(e.Bytes())))
	}
}
