package scripting

import (
	"strconv"
	"strings"
)

// names has the names of the operands of a chunk's expressions, by line, so that error messages can name them.
type names struct {
	lines map[int][]operand
}

// operand is an operand of one expression.
type operand struct {
	kind operation
	// distinguishes it from others of its kind on the line: the field, the operator, the type, the position
	key         string
	name, other string // other is the right operand of arithmetic
}

type operation uint8

const (
	indexing operation = iota
	calling
	arithmetic
	negating
	measuring
	concatenating
)

func (n *names) add(line int, o operand) {
	if n.lines == nil {
		n.lines = map[int][]operand{}
	}
	n.lines[line] = append(n.lines[line], o)
}

// find returns the name that all operands of that kind and key on the line have; empty if they differ.
func (n *names) find(line int, kind operation, key string) operand {
	if n == nil {
		return operand{}
	}
	o, ok := n.only(line, kind, func(k string) bool { return key == "" || k == key })
	if !ok {
		o, _ = n.only(line, kind, func(k string) bool { return k == "" })
	}
	return o
}

// only returns the operand that fits; an empty one if several with different names do. It also reports whether any
// fits.
func (n *names) only(line int, kind operation, fits func(key string) bool) (found operand, ok bool) {
	for _, o := range n.lines[line] {
		if o.kind != kind || !fits(o.key) {
			continue
		}
		if ok && (o.name != found.name || o.other != found.other) {
			return operand{}, true
		}
		found, ok = o, true
	}
	return found, ok
}

// reword gives a message of the interpreter the wording of Lua 5.1.
func (m *vm) reword(text string) string {
	source, line := position(text)
	if source == "" {
		return rewordPlain(text)
	}
	n := m.script
	if source != scriptName && source != functionsName {
		n = m.names[source]
	}
	prefix := text[:len(source)+1]
	rest := text[len(prefix):]
	digits := strings.IndexByte(rest, ':') + 2
	if digits > len(rest) {
		return text
	}
	prefix, rest = prefix+rest[:digits], rest[digits:]
	switch {
	case strings.HasPrefix(rest, "attempt to index a non-table object("):
		typ, key, _ := strings.Cut(rest[len("attempt to index a non-table object("):], ") with key '")
		o := n.find(line, indexing, strings.TrimSuffix(key, "'"))
		return prefix + "attempt to index " + describe(o.name, typ)
	case rest == "attempt to call a non-function object":
		return prefix + "attempt to call " + describe(n.find(line, calling, "").name, "nil")
	case strings.HasPrefix(rest, "cannot perform "):
		operator, types, _ := strings.Cut(rest[len("cannot perform "):], " operation between ")
		left, right, _ := strings.Cut(types, " and ")
		o := n.find(line, arithmetic, operators[operator])
		if left == "number" {
			left, o.name = right, o.other
		}
		return prefix + "attempt to perform arithmetic on " + describe(o.name, left)
	case rest == "__unm undefined":
		o := n.find(line, negating, "")
		return prefix + "attempt to perform arithmetic on " + describe(o.name, orNil(o.key))
	case rest == "__len undefined":
		o := n.find(line, measuring, "")
		return prefix + "attempt to get length of " + describe(o.name, orNil(o.key))
	case strings.HasPrefix(rest, "attempt to concatenate operand "):
		key, typ, _ := strings.Cut(rest[len("attempt to concatenate operand "):], " (a ")
		o := n.find(line, concatenating, key)
		return prefix + "attempt to concatenate " + describe(o.name, strings.TrimSuffix(typ, " value)"))
	case strings.HasPrefix(rest, "attempt to compare "):
		left, right, ok := strings.Cut(rest[len("attempt to compare "):], " with ")
		if ok && left == right {
			return prefix + "attempt to compare two " + left + " values"
		}
	case strings.HasPrefix(rest, "for statement "):
		what := strings.TrimSuffix(rest[len("for statement "):], " must be a number")
		if what == "init" {
			what = "initial value"
		}
		return prefix + "'for' " + what + " must be a number"
	case strings.HasPrefix(rest, "bad argument #"):
		return prefix + rewordArgument(n, line, rest)
	case rest == "registry overflow", rest == callOverflow:
		return prefix + "stack overflow"
	case rest == "can not yield from outside of a coroutine":
		return rewordPlain(rest)
	case rest == "can not resume a dead thread":
		return prefix + "cannot resume dead coroutine"
	}
	return text
}

// rewordArgument rewords a message about an argument of a function that was called as a method: Lua does not count the
// object as an argument.
func rewordArgument(n *names, line int, text string) string {
	number, rest, _ := strings.Cut(text[len("bad argument #"):], " to '")
	function, what, ok := strings.Cut(rest, "' ")
	i, err := strconv.Atoi(number)
	if !ok || err != nil || n == nil || !n.onlyMethod(line, function) {
		return text
	}
	if i == 1 {
		return "calling '" + function + "' on bad self " + what
	}
	return "bad argument #" + strconv.Itoa(i-1) + " to '" + function + "' " + what
}

// onlyMethod reports whether a name is called on a line, and only as a method.
func (n *names) onlyMethod(line int, name string) bool {
	found := false
	for _, o := range n.lines[line] {
		kind, called, _ := strings.Cut(o.name, " ")
		if o.kind != calling || called != "'"+name+"'" {
			continue
		}
		if kind != "method" {
			return false
		}
		found = true
	}
	return found
}

// rewordPlain rewords messages that do not begin with a position.
func rewordPlain(text string) string {
	if strings.TrimSpace(text) == "can not yield from outside of a coroutine" {
		return "attempt to yield across metamethod/C-call boundary"
	}
	return text
}

// operators maps the interpreter's names of operators.
var operators = map[string]string{"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "pow": "^"}

// describe puts a value in words: "local 'x' (a nil value)".
func describe(name, typ string) string {
	if name == "" {
		return "a " + typ + " value"
	}
	return name + " (a " + typ + " value)"
}

func orNil(typ string) string {
	if typ == "" {
		return "nil"
	}
	return typ
}
