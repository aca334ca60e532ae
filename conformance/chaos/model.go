package chaos

import (
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"
)

// The operations of clients on a key.
const (
	opRead = iota
	opWrite
	opAppend // appends to the value, keeps only its last 40 bytes, and returns them
	opPush   // appends a value to a list, and returns the list's length
	opPop    // removes and returns the first value
)

type input struct {
	key, op int
	value   string
}

type output struct {
	value   string
	absent  bool
	unknown bool // whether it was executed
}

// register is the state of a key. For a list it contains the values, each after a comma.
type register struct {
	value string
	there bool
}

// registers describes the keys of a server that nobody else uses.
var registers = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[int][]porcupine.Operation{}
		for _, op := range history {
			k := op.Input.(input).key
			byKey[k] = append(byKey[k], op)
		}
		var parts [][]porcupine.Operation
		for _, p := range byKey {
			parts = append(parts, p)
		}
		return parts
	},
	Init: func() any { return register{} },
	Step: func(state, in, out any) (bool, any) {
		s, i, o := state.(register), in.(input), out.(output)
		switch i.op {
		case opRead:
			return o.absent == !s.there && o.value == s.value, s
		case opWrite:
			return true, register{i.value, true}
		case opPush:
			s = register{s.value + "," + i.value, true}
			return o.unknown || o.value == strconv.Itoa(strings.Count(s.value, ",")), s
		case opPop:
			if !s.there {
				return o.unknown || o.absent, s
			}
			first, _, more := strings.Cut(s.value[1:], ",")
			fits := o.unknown || !o.absent && o.value == first
			return fits, register{s.value[1+len(first):], more}
		}
		v := s.value + "," + i.value
		v = v[max(len(v)-40, 0):]
		return o.unknown || o.value == v, register{v, true}
	},
	Equal: func(a, b any) bool { return a == b },
}
