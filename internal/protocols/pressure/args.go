package pressure

import (
	"cmp"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/pressure/keys"
)

// This file reads the arguments of the commands on pressure queues.

// pressureOption is an option of these commands; all of them take one argument.
type pressureOption uint8

const (
	optPrefix pressureOption = iota
	optClient
	optTimeout
	optBound
	optCount
	optReserve
	optDelay
	optAt
	optAttempts
	optBackoff
	optDedup
	optWithin
	optState
	optMinutes
	optPriority
	pressureOptions // number of options
)

// pressureWords are the words of the options, in lower case.
var pressureWords = [pressureOptions]string{"prefix", "client", "timeout", "bound", "count", "reserve",
	"delay", "at", "attempts", "backoff", "dedup", "within", "state", "minutes", "priority"}

// pressureGrammar is the form of a command's arguments.
type pressureGrammar struct {
	options []pressureOption
	// unnamed says that the command names no queue.
	unnamed bool
	// list says that one or more values are between the name and the options. Options are then read from the end,
	// each at most once, so values may look like options if all options are given, or those of last.
	list bool
	// last ends the reading of options after values: once all of these have been read, what stands before is values.
	last []pressureOption
}

var (
	pressureCreate = pressureGrammar{options: []pressureOption{optBound, optAttempts, optBackoff, optPrefix}}
	pressurePut    = pressureGrammar{options: []pressureOption{optTimeout, optClient, optPrefix, optDelay, optAt,
		optAttempts, optBackoff, optDedup, optWithin, optPriority}, list: true, last: []pressureOption{optTimeout, optClient, optPrefix}}
	pressureGet    = pressureGrammar{options: []pressureOption{optCount, optTimeout, optClient, optPrefix, optReserve}}
	pressureAck    = pressureGrammar{options: []pressureOption{optPrefix}, list: true}
	pressureClose  = pressureGrammar{options: []pressureOption{optClient, optTimeout, optPrefix}}
	pressureDelete = pressureGrammar{options: []pressureOption{optTimeout, optPrefix}}
	pressureInfo   = pressureGrammar{options: []pressureOption{optPrefix}}
	pressureFail   = pressureGrammar{options: []pressureOption{optDelay, optPrefix}, list: true}
	pressurePeek   = pressureGrammar{options: []pressureOption{optState, optCount, optPrefix}}
	pressurePurge  = pressureGrammar{options: []pressureOption{optState, optPrefix}}
	pressureStats  = pressureGrammar{options: []pressureOption{optMinutes, optPrefix}}
	pressureList   = pressureGrammar{options: []pressureOption{optPrefix}, unnamed: true}
)

// pressureArgs are parsed arguments.
type pressureArgs struct {
	name    []byte
	values  [][]byte
	all     [][]byte               // the words of the command, which the options are among
	options [pressureOptions]int32 // the indexes of their arguments; 0 if they are not given
}

// option returns the argument of an option, nil if it is not given.
func (a *pressureArgs) option(o pressureOption) []byte {
	i := a.options[o]
	if i == 0 {
		return nil
	}
	if v := a.all[i]; v != nil {
		return v
	}
	return []byte{}
}

// defaultPressurePrefix is the default prefix of the keys of queues.
var defaultPressurePrefix = []byte(keys.DefaultPrefix)

func (a *pressureArgs) prefix() []byte {
	if p := a.option(optPrefix); p != nil {
		return p
	}
	return defaultPressurePrefix
}

// read parses the arguments of a command. ok is false if they do not fit the grammar.
func (g *pressureGrammar) read(args [][]byte) (a pressureArgs, ok bool) {
	rest := args[1:]
	a.all = args
	if !g.unnamed {
		a.name, rest = rest[0], rest[1:]
	}
	first := len(args) - len(rest)
	if g.list {
		for len(rest) >= 3 && !g.complete(&a) && g.take(&a, first+len(rest)-2) {
			rest = rest[:len(rest)-2]
		}
		a.values = rest
		return a, true
	}
	for len(rest) >= 2 && g.take(&a, len(args)-len(rest)) {
		rest = rest[2:]
	}
	return a, len(rest) == 0
}

// complete reports whether all options that end the reading have been read.
func (g *pressureGrammar) complete(a *pressureArgs) bool {
	for _, o := range g.last {
		if a.options[o] == 0 {
			return false
		}
	}
	return len(g.last) > 0
}

// take reads an option that has not been given yet. i is the index of its word.
func (g *pressureGrammar) take(a *pressureArgs, i int) bool {
	for _, o := range g.options {
		if command.EqualFold(a.all[i], pressureWords[o]) && a.options[o] == 0 {
			a.options[o] = int32(i + 1)
			return true
		}
	}
	return false
}

// keys is the DerivedKeys of commands with this grammar.
func (g *pressureGrammar) keys(args [][]byte, fn func(key []byte)) {
	a, _ := g.read(args) // with wrong arguments no key is used
	base := queueBase(&a)
	for _, suffix := range queueSuffixes {
		fn(append(base, suffix...))
	}
}

// readPressureArgs reads the arguments of the command; if they are wrong, it writes an error and ok is false.
func readPressureArgs(c *command.Ctx, g *pressureGrammar) (a *pressureArgs, ok bool) {
	read, ok := g.read(c.Args)
	if !ok {
		c.Err(command.ErrSyntax)
	}
	return &read, ok
}

// wait reads the option TIMEOUT in ms; 0, the default, is for ever. If it is wrong, it writes an error and ok is
// false.
func (a *pressureArgs) wait(c *command.Ctx) (ms int64, ok bool) {
	v := a.option(optTimeout)
	if v == nil {
		return 0, true
	}
	return c.IntTimeout(v)
}

// client returns the name that the command stores for the client in a role: the option CLIENT, or the name of the
// connection, or its address. Only the session's own goroutine may call it.
func (a *pressureArgs) client(c *command.Ctx) []byte {
	if v := a.option(optClient); v != nil {
		return append([]byte(nil), v...)
	}
	who := c.Client.(interface {
		Name() string
		Addr() string
	})
	return []byte(cmp.Or(who.Name(), who.Addr()))
}
