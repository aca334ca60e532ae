// Package arrays has the commands on sparse arrays. This file has the table and shared functions; read.go and
// write.go have the commands on elements, op.go and grep.go those on ranges, and kind.go registers arrays for
// commands on keys of any type.
//
// All of them read all indices before they change anything. They are journalled unchanged, because their effect
// follows from their arguments and the array.
package arrays

import (
	"strconv"

	"github.com/atomredis/atomredis/engine/arrays"
	"github.com/atomredis/atomredis/internal/command"
)

func init() { command.Register(commands) }

const (
	quick = command.ReadOnly | command.Fast
	grows = command.Write | command.DenyOOM

	perElement = "O(N), where N is the number of elements in the range"
)

var (
	read   = command.Keys("i1+r0/1/0[RO,ACCESS]")
	update = command.Keys("i1+r0/1/0[RW,UPDATE]")
	remove = command.Keys("i1+r0/1/0[RW,DELETE]")
)

var commands = []*command.Command{
	{Name: "arcount", Group: "array", Since: "8.8.0", Arity: 2, Flags: quick, ACL: command.CatArray, Keys: read,
		Summary: "Counts the elements of an array", Syntax: "key", Complexity: "O(1)", Do: cmdCount},
	{Name: "ardel", Group: "array", Since: "8.8.0", Arity: -3, Flags: command.Write | command.Fast, ACL: command.CatArray,
		Keys: remove, Summary: "Removes elements of an array", Syntax: "key index [index ...]",
		Complexity: "O(N), where N is the number of indices", Do: cmdDel},
	{Name: "ardelrange", Group: "array", Since: "8.8.0", Arity: -4, Flags: command.Write, ACL: command.CatArray,
		Keys: remove, Summary: "Removes the elements of an array in ranges of indices",
		Syntax: "key start end [start end ...]", Complexity: "O(N), where N is the number of elements in the ranges",
		Do: cmdDelRange},
	{Name: "arget", Group: "array", Since: "8.8.0", Arity: 3, Flags: quick, ACL: command.CatArray, Keys: read,
		Summary: "Returns an element of an array", Syntax: "key index", Complexity: "O(1)", Do: cmdGet},
	{Name: "argetrange", Group: "array", Since: "8.8.0", Arity: 4, Flags: command.ReadOnly, ACL: command.CatArray,
		Keys: read, Summary: "Returns what is at each index of a range", Syntax: "key start end",
		Complexity: "O(N), where N is the length of the range", Do: cmdGetRange},
	{Name: "argrep", Group: "array", Since: "8.8.0", Arity: -6, Flags: command.ReadOnly, ACL: command.CatArray, Keys: read,
		Summary: "Finds the elements in a range whose text fulfils conditions",
		Syntax: "key start end <EXACT string | MATCH string | GLOB pattern | RE pattern> " +
			"[<EXACT string | MATCH string | GLOB pattern | RE pattern> ...] " +
			"[<AND | OR | LIMIT limit | WITHVALUES | NOCASE> [<AND | OR | LIMIT limit | WITHVALUES | NOCASE> ...]]",
		Complexity: perElement + ", times the cost of the conditions", Do: cmdGrep},
	{Name: "arinfo", Group: "array", Since: "8.8.0", Arity: -2, Flags: command.ReadOnly, ACL: command.CatArray, Keys: read,
		Summary: "Describes an array", Syntax: "key [FULL]",
		Complexity: "O(1), with FULL O(N), where N is the number of pages", Do: cmdInfo},
	{Name: "arinsert", Group: "array", Since: "8.8.0", Arity: -3, Flags: grows | command.Fast, ACL: command.CatArray,
		Keys: update, Summary: "Stores elements at the cursor of an array", Syntax: "key value [value ...]",
		Complexity: "O(N), where N is the number of values", Do: cmdInsert},
	{Name: "arlastitems", Group: "array", Since: "8.8.0", Arity: -3, Flags: command.ReadOnly, ACL: command.CatArray,
		Keys: read, Summary: "Returns the elements that were stored at the cursor last", Syntax: "key count [REV]",
		Complexity: "O(N), where N is the count", Do: cmdLastItems},
	{Name: "arlen", Group: "array", Since: "8.8.0", Arity: 2, Flags: quick, ACL: command.CatArray, Keys: read,
		Summary: "Returns the largest index of an element, plus one", Syntax: "key", Complexity: "O(1)", Do: cmdLen},
	{Name: "armget", Group: "array", Since: "8.8.0", Arity: -3, Flags: quick, ACL: command.CatArray, Keys: read,
		Summary: "Returns elements of an array", Syntax: "key index [index ...]",
		Complexity: "O(N), where N is the number of indices", Do: cmdMget},
	{Name: "armset", Group: "array", Since: "8.8.0", Arity: -4, Flags: grows | command.Fast, ACL: command.CatArray,
		Keys: update, Summary: "Stores elements of an array", Syntax: "key index value [index value ...]",
		Complexity: "O(N), where N is the number of values", Do: cmdMset},
	{Name: "arnext", Group: "array", Since: "8.8.0", Arity: 2, Flags: quick, ACL: command.CatArray, Keys: read,
		Summary: "Returns the index at the cursor of an array", Syntax: "key", Complexity: "O(1)", Do: cmdNext},
	{Name: "arop", Group: "array", Since: "8.8.0", Arity: -5, Flags: command.ReadOnly, ACL: command.CatArray, Keys: read,
		Summary:    "Calculates with the elements in a range, or counts them",
		Syntax:     "key start end <SUM | MIN | MAX | AND | OR | XOR | MATCH value | USED>",
		Complexity: perElement, Do: cmdOp},
	{Name: "arring", Group: "array", Since: "8.8.0", Arity: -4, Flags: grows, ACL: command.CatArray, Keys: update,
		Summary: "Stores elements in an array that is a ring of a given size", Syntax: "key size value [value ...]",
		Complexity: "O(M), where M is the number of values; O(N+M) if the size is another one, where N is the number of elements",
		Do:         cmdRing},
	{Name: "arscan", Group: "array", Since: "8.8.0", Arity: -4, Flags: command.ReadOnly, ACL: command.CatArray, Keys: read,
		Summary: "Returns the elements in a range, and their indices", Syntax: "key start end [LIMIT limit]",
		Complexity: perElement, Do: cmdScan},
	{Name: "arseek", Group: "array", Since: "8.8.0", Arity: 3, Flags: command.Write | command.Fast, ACL: command.CatArray,
		Keys: update, Summary: "Moves the cursor of an array", Syntax: "key index", Complexity: "O(1)", Do: cmdSeek},
	{Name: "arset", Group: "array", Since: "8.8.0", Arity: -4, Flags: grows | command.Fast, ACL: command.CatArray,
		Keys: update, Summary: "Stores elements of an array from an index on", Syntax: "key index value [value ...]",
		Complexity: "O(N), where N is the number of values", Do: cmdSet},
}

// Errors of these commands.
const (
	errIndex     command.Error = "ERR invalid array index"
	errOverflow  command.Error = "ERR array index overflow"
	errInsert    command.Error = "ERR insert index overflow"
	errRange     command.Error = "ERR range exceeds maximum of 1000000 items"
	errCount     command.Error = "ERR invalid COUNT"
	errTooMany   command.Error = "ERR count exceeds maximum of 1000000 items"
	errLimit     command.Error = "ERR LIMIT must be positive"
	errSize      command.Error = "ERR invalid size"
	errSizeSign  command.Error = "ERR size must be positive"
	errOperation command.Error = "ERR unknown operation"
	errMatch     command.Error = "ERR MATCH requires a value argument"
)

// maxItems is the largest number of indices, with or without elements, in a reply.
const maxItems = 1_000_000

// parseIndex reads an index up to max.
func parseIndex(arg []byte, max uint64) (index uint64, ok bool) {
	index, err := strconv.ParseUint(string(arg), 10, 64)
	return index, err == nil && index <= max && arg[0] != '+'
}

// index reads an index; if it is invalid, it writes an error and ok is false.
func index(c *command.Ctx, arg []byte) (index uint64, ok bool) {
	if index, ok = parseIndex(arg, arrays.MaxIndex); !ok {
		c.Err(errIndex)
	}
	return index, ok
}

// twoIndices reads the ends of a range, in any order.
func twoIndices(c *command.Ctx, args [][]byte) (from, to uint64, ok bool) {
	if from, ok = index(c, args[0]); ok {
		to, ok = index(c, args[1])
	}
	return from, to, ok
}

// indicesIn reads the first of every each arguments as an index.
func indicesIn(c *command.Ctx, args [][]byte, each int) (indices []uint64, ok bool) {
	indices = make([]uint64, 0, len(args)/each)
	for i := 0; i < len(args); i += each {
		at, ok := index(c, args[i])
		if !ok {
			return nil, false
		}
		indices = append(indices, at)
	}
	return indices, true
}

// limit reads a positive number; if it is invalid, it writes an error and ok is false.
func limit(c *command.Ctx, arg []byte) (n int64, ok bool) {
	if n, ok = c.Int(arg); ok && n <= 0 {
		c.Err(errLimit)
		ok = false
	}
	return n, ok
}
