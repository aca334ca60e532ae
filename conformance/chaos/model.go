package chaos

import "github.com/anishathalye/porcupine"

// What clients do with a key.
const (
	opRead = iota
	opWrite
	opAppend // adds to what there is, and returns the last 40 bytes, which it leaves
)

type input struct {
	key, op int
	value   string
}

type output struct {
	value   string
	absent  bool
	unknown bool // whether it was done
}

// register is the state of a key.
type register struct {
	value string
	there bool
}

// registers is what the keys of a server that nobody else uses do.
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
		}
		v := s.value + "," + i.value
		v = v[max(len(v)-40, 0):]
		return o.unknown || o.value == v, register{v, true}
	},
	Equal: func(a, b any) bool { return a == b },
}
