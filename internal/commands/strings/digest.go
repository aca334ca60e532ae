package strings

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"

	"github.com/zeebo/xxh3"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
)

// This file has the conditions IFEQ, IFNE, IFDEQ and IFDNE of SET and DELEX, and DIGEST. Redis has them since 8.4.

func init() { command.Register(stringDigestCommands) }

var stringDigestCommands = []*command.Command{
	{Name: "delex", Group: "string", Since: "8.4.0", Arity: -2, Flags: command.Write | command.Fast,
		ACL:        command.CatString,
		Keys:       command.Keys("i1+r0/1/0[RW,DELETE,VARIABLE_FLAGS]"),
		KeyUse:     delexUse,
		Summary:    "Deletes a key depending on its value",
		Syntax:     "key [IFEQ ifeq-value | IFNE ifne-value | IFDEQ ifdeq-digest | IFDNE ifdne-digest]",
		Complexity: "O(1), with IFDEQ and IFDNE O(N), where N is the length of the string", Do: cmdDelex},
	{Name: "delifeq", Group: "string", Since: "9.0.0", Arity: 3, Flags: command.Write | command.Fast,
		ACL: command.CatString, Keys: command.Keys("i1+r0/1/0[RW,DELETE]"),
		Summary: "Deletes a key if it has a given value, as in Valkey", Syntax: "key value",
		Complexity: "O(1)", Do: cmdDelifeq},
	{Name: "digest", Group: "string", Since: "8.4.0", Arity: 2, Flags: command.ReadOnly | command.Fast,
		ACL:     command.CatString,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns the XXH3 hash of a string", Syntax: "key",
		Complexity: "O(N), where N is the length of the string", Do: cmdDigest},
	{Name: "msetex", Group: "string", Since: "8.4.0", Arity: -4, Flags: command.Write | command.DenyOOM,
		ACL:        command.CatString,
		Keys:       command.Keys("i1+n0/1/2[OW,UPDATE]"),
		Summary:    "Sets the values and the time to live of several keys, if all or none exist",
		Syntax:     "numkeys key value [key value ...] [NX | XX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
		Complexity: "O(N), where N is the number of keys", Do: cmdMsetex},
}

// delexUse returns how DELEX uses its key: without a condition it does not read the value.
func delexUse(args [][]byte) []string {
	if len(args) == 2 {
		return []string{"RM", "delete"}
	}
	return nil
}

const (
	errDigest         command.Error = "ERR must be exactly 16 hexadecimal characters"
	errDelexType      command.Error = "ERR Key should be of string type if conditions are specified"
	errDelexCondition command.Error = "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"
	errMsetexKeys     command.Error = "ERR invalid numkeys value"
	errMsetexValues   command.Error = "ERR wrong number of key-value pairs"
)

// condition is a value that a string must have or must not have; the zero value is no condition.
type condition struct {
	operand []byte // a view
	digest  bool   // operand is a digest, not a value
	not     bool
}

// option takes a condition, if o is at one.
func (q *condition) option(o *command.OptionArgs) bool {
	if !o.More() {
		return false
	}
	var next condition
	switch {
	case o.Is("ifeq"):
	case o.Is("ifne"):
		next.not = true
	case o.Is("ifdeq"):
		next.digest = true
	case o.Is("ifdne"):
		next.digest, next.not = true, true
	default:
		return false
	}
	next.operand = o.Arg()
	*q = next
	return true
}

// check reports whether the operand is valid; if not, it writes an error.
func (q *condition) check(c *command.Ctx) bool {
	if !q.digest {
		return true
	}
	if len(q.operand) != 2*8 { // other characters are allowed, but match no digest
		c.Err(errDigest)
		return false
	}
	return true
}

// holds reports whether a string meets the condition; a missing key differs from every value.
func (q *condition) holds(e *engine.Entry) bool {
	switch {
	case e == nil:
		return q.not
	case q.digest:
		return bytes.EqualFold(q.operand, appendDigest(nil, e.Bytes())) != q.not
	}
	return bytes.Equal(q.operand, e.Bytes()) != q.not
}

// appendDigest appends the digest of a string in hexadecimal.
func appendDigest(dst, v []byte) []byte {
	var sum [8]byte
	binary.BigEndian.PutUint64(sum[:], xxh3.Hash(v))
	return hex.AppendEncode(dst, sum[:])
}

func cmdDigest(c *command.Ctx) {
	e, ok := c.ReadAs(c.Args[1], engine.String)
	switch {
	case !ok:
	case e == nil:
		c.W.Null()
	default:
		c.W.Bulk(appendDigest(nil, e.Bytes()))
	}
}

func cmdDelex(c *command.Ctx) {
	conditional := len(c.Args) > 2
	if conditional && len(c.Args) != 4 {
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	e := c.G.Write(c.DB, c.Args[1])
	if e == nil { // with any condition
		c.W.Int(0)
		return
	}
	if conditional {
		if e.Type() != engine.String {
			c.Err(errDelexType)
			return
		}
		var q condition
		o := c.Options(2)
		o.Next()
		if !q.option(&o) {
			c.Err(errDelexCondition)
			return
		}
		if !q.check(c) {
			return
		}
		if !q.holds(e) {
			c.W.Int(0)
			return
		}
	}
	c.G.Remove(e, engine.EventGeneric, "del")
	c.JournalDelete(c.Args[1])
	c.W.Int(1)
}

func cmdDelifeq(c *command.Ctx) {
	e, ok := c.WriteAs(c.Args[1], engine.String)
	switch {
	case !ok:
	case e == nil || !bytes.Equal(e.Bytes(), c.Args[2]):
		c.W.Int(0)
	default:
		c.G.Remove(e, engine.EventGeneric, "del")
		c.JournalDelete(c.Args[1])
		c.W.Int(1)
	}
}

func cmdMsetex(c *command.Ctx) {
	n, ok := c.IntIn(c.Args[1], 1, math.MaxInt32, errMsetexKeys)
	if !ok {
		return
	}
	if 2*int(n) > len(c.Args)-2 {
		c.Err(errMsetexValues)
		return
	}
	pairs := c.Args[2 : 2+2*n]
	o, ok := readSetOptions(c, 2+2*int(n), setNX|setXX|setKeepTTL)
	if !ok {
		return
	}
	at, ok := setDeadline(c, &o)
	if !ok {
		return
	}
	for i := 0; o.flags&(setNX|setXX) != 0 && i < len(pairs); i += 2 {
		if exists := c.G.Write(c.DB, pairs[i]) != nil; exists != (o.flags&setXX != 0) {
			c.W.Int(0)
			return
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		put(c, c.G.Write(c.DB, pairs[i]), pairs[i], pairs[i+1], &o, at)
	}
	c.W.Int(1)
}
