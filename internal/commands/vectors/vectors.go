// Package vectors has the commands on vector sets. This file has the table and shared functions, add.go and sim.go
// have VADD and VSIM, members.go the others, kind.go registers vector sets for commands on keys of any type.
//
// The commands are journalled unchanged: their effect follows from the set and their arguments.
package vectors

import (
	"encoding/binary"
	"math"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/vectors"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

func init() { command.Register(commands) }

const (
	reads  = command.ReadOnly | command.Module
	looks  = reads | command.Fast
	writes = command.Write | command.Module
)

var commands = []*command.Command{
	{Name: "vadd", Capital: true, Group: "vector_set", Since: "8.0.0", Arity: -5, Flags: writes | command.DenyOOM,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Adds an element with a vector, or gives it another vector",
		Syntax: "key [REDUCE dim] <FP32 vector | VALUES num value [value ...]> element [CAS] [<NOQUANT | Q8 | BIN>] " +
			"[EF build-exploration-factor] [SETATTR attributes] [M numlinks]",
		Complexity: "O(EF*log(N)), where EF is the exploration factor and N the number of elements", Do: cmdAdd},
	{Name: "vcard", Capital: true, Group: "vector_set", Since: "8.0.0", Arity: 2, Flags: looks,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Returns the number of elements of a vector set", Syntax: "key", Complexity: "O(1)", Do: cmdCard},
	{Name: "vdim", Capital: true, Group: "vector_set", Since: "8.0.0", Arity: 2, Flags: looks,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Returns the number of dimensions of the vectors", Syntax: "key", Complexity: "O(1)", Do: cmdDim},
	{Name: "vemb", Capital: true, Group: "vector_set", Since: "8.0.0", Arity: -3, Flags: looks,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Returns the vector of an element", Syntax: "key element [RAW]",
		Complexity: "O(D), where D is the number of dimensions", Do: cmdEmb},
	{Name: "vgetattr", Capital: true, Group: "vector_set", Since: "8.0.0", Arity: 3, Flags: looks,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Returns the attributes of an element", Syntax: "key element", Complexity: "O(log(N))", Do: cmdGetAttr},
	{Name: "vinfo", Capital: true, Group: "vector_set", Since: "8.0.0", Arity: 2, Flags: looks,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Describes a vector set", Syntax: "key", Complexity: "O(1)", Do: cmdInfo},
	{Name: "vismember", Capital: true, Group: "vector_set", Since: "8.2.0", Arity: 3, Flags: reads,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Tells whether a vector set has an element", Syntax: "key element", Complexity: "O(log(N))",
		Do: cmdIsMember},
	{Name: "vlinks", Capital: true, Group: "vector_set", Since: "8.0.0", Arity: -3, Flags: looks,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Returns the neighbours of an element in the graph, level by level", Syntax: "key element [WITHSCORES]",
		Complexity: "O(M), where M is the number of links", Do: cmdLinks},
	{Name: "vrandmember", Capital: true, Group: "vector_set", Since: "8.0.0", Arity: -2, Flags: reads,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Returns random elements", Syntax: "key [count]",
		Complexity: "O(N), where N is the absolute value of count", Do: cmdRandMember},
	{Name: "vrange", Capital: true, Group: "vector_set", Since: "8.4.0", Arity: -4, Flags: reads,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Returns elements in a range of names, in their order", Syntax: "key start end [count]",
		Complexity: "O(log(N)+M), where N is the number of elements and M of those returned", Do: cmdRange},
	{Name: "vrem", Capital: true, Group: "vector_set", Since: "8.0.0", Arity: 3, Flags: writes,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Removes an element", Syntax: "key element",
		Complexity: "O(M*M), where M is the number of links of an element", Do: cmdRem},
	{Name: "vsetattr", Capital: true, Group: "vector_set", Since: "8.0.0", Arity: 4, Flags: writes | command.Fast,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Sets or removes the attributes of an element", Syntax: "key element json", Complexity: "O(log(N))",
		Do: cmdSetAttr},
	{Name: "vsim", Capital: true, Group: "vector_set", Since: "8.0.0", Arity: -4, Flags: reads,
		Keys:    command.Keys("i1+r0/1/0[RW,ACCESS,UPDATE]"),
		Summary: "Returns the elements that are most similar to a vector",
		Syntax: "key <ELE element | FP32 vector | VALUES num value [value ...]> [WITHSCORES] [WITHATTRIBS] [COUNT num] " +
			"[EPSILON max_distance] [EF search-exploration-factor] [FILTER expression] " +
			"[FILTER-EF max-filtering-effort] [TRUTH] [NOTHREAD]",
		Complexity: "O(EF*log(N)), with TRUTH O(N), where EF is the exploration factor and N the number of elements",
		Do:         cmdSim},
}

// Errors that several commands share.
const (
	errVector command.Error = "ERR invalid vector specification"
	errEF     command.Error = "ERR invalid EF"
)

// set returns the set under the key that the command reads, nil if there is none. If the key is of another type, it
// writes an error and ok is false.
func set(c *command.Ctx) (s *vectors.Set, ok bool) {
	e, ok := c.ReadAs(c.Args[1], engine.VectorSet)
	if e == nil {
		return nil, ok
	}
	return e.Vectors(), ok
}

// member returns the set under the key that the command reads, and the node of the element that the next argument
// names; s is nil if there is no such element. If the key is of another type, it writes an error and ok is false.
func member(c *command.Ctx) (s *vectors.Set, id uint32, ok bool) {
	s, ok = set(c)
	if s == nil {
		return nil, 0, ok
	}
	id, found := s.Find(c.Args[2])
	if !found {
		return nil, 0, ok
	}
	return s, id, ok
}

// parseVector reads a vector from arguments that begin with FP32 or VALUES, and returns the other arguments.
func parseVector(args [][]byte) (v []float32, rest [][]byte, ok bool) {
	switch {
	case len(args) < 2:
		return nil, nil, false
	case command.EqualFold(args[0], "fp32"):
		b := args[1]
		if len(b) == 0 || len(b)%4 != 0 {
			return nil, nil, false
		}
		v = make([]float32, len(b)/4)
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
		return v, args[2:], vectors.Finite(v)
	case command.EqualFold(args[0], "values"):
		n, ok := resp.ParseInt(args[1])
		args = args[2:]
		if !ok || n <= 0 || n > int64(len(args)) {
			return nil, nil, false
		}
		v = make([]float32, n)
		for i := range v {
			x, ok := resp.ParseFloat(args[i])
			if !ok {
				return nil, nil, false
			}
			v[i] = float32(x)
		}
		return v, args[n:], true
	}
	return nil, nil, false
}

// natural reads an integer from least to most.
func natural(arg []byte, least, most int64) (int, bool) {
	n, ok := resp.ParseInt(arg)
	return command.AsInt(n), ok && n >= least && n <= most
}
