package skein

import (
	"unicode/utf8"

	"github.com/atomredis/atomredis/internal/command"
)

// This file reads the arguments of operations and transactions. Words and keys never share a position, so keys and
// values may be any bytes.

// operationKind is a kind of operation.
type operationKind uint8

const (
	rangeOperation operationKind = iota
	putOperation
	delOperation
)

// results is the kind of result of an operation on a range.
type results uint8

const (
	items results = iota // keys, values and owners
	onlyKeys
	count
)

// operation is an operation of a transaction, or a command of its own. Its texts are views of the arguments.
type operation struct {
	kind       operationKind
	start, end []byte  // of a range
	results    results // of a range

	// Of a put:
	key, value []byte
	owner      containerID // if ownerText is not nil
	ownerText  []byte
	hasValue   bool
	keepOwner  bool
	previous   bool // it returns what was there before
}

// condition is a condition of a transaction.
type condition struct {
	ofOwner  bool // it is about the owner, and not the value
	key      []byte
	operator operator
	set      bool // there is an operand:
	value    []byte
	owner    containerID
}

// operator compares.
type operator uint8

const (
	equal operator = iota
	notEqual
	less
	lessEqual
	greater
	greaterEqual
)

var operators = [...]string{equal: "=", notEqual: "!=", less: "<", lessEqual: "<=", greater: ">", greaterEqual: ">="}

// transaction is the arguments of SKEIN.TXN.
type transaction struct {
	conditions      []condition
	then, otherwise []operation
}

// parser takes arguments from the front.
type parser struct {
	args [][]byte      // what is left
	err  command.Error // the first error; nothing more is taken then
}

// fail notes an error.
func (p *parser) fail(err command.Error) {
	if p.err == "" {
		p.err = err
	}
	p.args = nil
}

// is takes the next argument if it is the word, given in lower case.
func (p *parser) is(word string) bool {
	if len(p.args) == 0 || !command.EqualFold(p.args[0], word) {
		return false
	}
	p.args = p.args[1:]
	return true
}

// arg takes an argument.
func (p *parser) arg() []byte {
	if len(p.args) == 0 {
		p.fail(command.ErrSyntax)
		return nil
	}
	arg := p.args[0]
	p.args = p.args[1:]
	return arg
}

// key takes a key, or a bound of a range.
func (p *parser) key() []byte {
	key := p.arg()
	if !utf8.Valid(key) {
		p.fail(errKey)
	}
	return key
}

// container takes the ID of a container.
func (p *parser) container() (id containerID, text []byte) {
	text = p.arg()
	id, ok := parseContainerID(text)
	if !ok {
		p.fail(errContainer)
	}
	return id, text
}

// operation takes what follows the word for an operation.
func (p *parser) operation(kind operationKind) operation {
	op := operation{kind: kind}
	if kind == putOperation {
		op.key = p.key()
		p.putOptions(&op)
		return op
	}
	op.start, op.end = p.key(), p.key()
	if kind == delOperation {
		op.results = count
	}
	switch {
	case p.is("items"):
		op.results = items
	case p.is("keys"):
		op.results = onlyKeys
	case p.is("none"):
		op.results = count
	}
	return op
}

func (p *parser) putOptions(op *operation) {
	for {
		switch {
		case !op.hasValue && p.is("value"):
			op.hasValue, op.value = true, p.arg()
		case op.ownerText == nil && !op.keepOwner && p.is("owner"):
			op.owner, op.ownerText = p.container()
		case op.ownerText == nil && !op.keepOwner && p.is("keepowner"):
			op.keepOwner = true
		case !op.previous && p.is("get"):
			op.previous = true
		default:
			return
		}
	}
}

// transaction takes all.
func (p *parser) transaction() (t transaction) {
	if p.is("if") {
		for {
			ofOwner, set, ok := p.conditionWord()
			if !ok {
				break
			}
			t.conditions = append(t.conditions, p.condition(ofOwner, set))
		}
	}
	if p.is("then") {
		t.then = p.operations()
	}
	if p.is("else") {
		t.otherwise = p.operations()
	}
	if len(p.args) > 0 {
		p.fail(command.ErrSyntax)
	}
	return t
}

// conditionWord takes the word for a condition, if it is next. It returns whether the condition is about the owner,
// and whether it has an operand. It takes at most one argument, because the next one is a key, which may be any
// word.
func (p *parser) conditionWord() (ofOwner, set, ok bool) {
	switch {
	case p.is("value"):
		return false, true, true
	case p.is("novalue"):
		return false, false, true
	case p.is("owner"):
		return true, true, true
	case p.is("noowner"):
		return true, false, true
	}
	return false, false, false
}

// condition takes what follows the word for a condition.
func (p *parser) condition(ofOwner, set bool) condition {
	cond := condition{ofOwner: ofOwner, key: p.key(), operator: p.operator(), set: set}
	switch {
	case set && ofOwner:
		cond.owner, _ = p.container()
	case set:
		cond.value = p.arg()
	}
	return cond
}

func (p *parser) operator() operator {
	word := p.arg()
	for i, o := range operators {
		if string(word) == o {
			return operator(i)
		}
	}
	p.fail(command.ErrSyntax)
	return equal
}

// operations takes operations as far as there are any.
func (p *parser) operations() (ops []operation) {
	for {
		switch {
		case p.is("range"):
			ops = append(ops, p.operation(rangeOperation))
		case p.is("put"):
			ops = append(ops, p.operation(putOperation))
		case p.is("del"):
			ops = append(ops, p.operation(delOperation))
		default:
			return ops
		}
	}
}
