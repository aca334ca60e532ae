package server

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// maxCustom is how many custom commands a server can have: their statistics have a place from the start.
	maxCustom = 256
	// maxCommandName is how long the name of a command can be, in bytes; see table.find.
	maxCommandName = 32
)

// table is the command table in the form in which the dispatcher uses it.
type table struct {
	byName map[string]*Command
	list   []*Command // top-level commands in order of their names
	count  int        // commands and sub-commands, the size of per-command statistics

	// What rename-command changes; see rename.
	called  map[string]*Command // top-level commands by the names that clients use; byName if all have their own
	visible []*Command          // those of list that clients can use
	real    map[*Command][]byte // the own names of those that have others; nil if none has
	longest int                 // the length of the longest name that clients use, if real is not nil

	extending sync.Mutex                // held by extend
	custom    atomic.Pointer[extension] // nil if there are no custom commands
}

// extension is the custom commands. It never changes: adding a command makes a new one. It is looked at only when there is no
// built-in command of a name, so that those are found without any synchronisation.
type extension struct {
	byName map[string]*Command
	list   []*Command // all top-level commands, the built-in ones too, in order of their names
}

// registered are the built-in commands.
var registered []*Command

// Register adds entries to the built-in commands. It is called by init functions only.
func Register(entries []*Command) { registered = append(registered, entries...) }

// newTable returns a table without custom commands. The others are the same for all servers of the process, and must not be changed.
func newTable() *table {
	t := builtin()
	return &table{byName: t.byName, list: t.list, count: t.count, called: t.byName, visible: t.list}
}

var builtin = sync.OnceValue(buildTable)

// buildTable puts the groups together and derives what follows from each entry.
func buildTable() *table {
	t := &table{byName: map[string]*Command{}}
	for _, entry := range registered {
		cmd := *entry // index and parent are filled in
		t.list = append(t.list, &cmd)
	}
	slices.SortFunc(t.list, func(a, b *Command) int { return compare(a.Name, b.Name) })
	for _, cmd := range t.list {
		t.add(cmd, cmd.Name)
		subs := cmd.Subs
		cmd.Subs = nil
		for _, entry := range subs {
			sub := *entry
			sub.parent = cmd
			cmd.Subs = append(cmd.Subs, &sub)
			t.add(&sub, sub.Name)
		}
	}
	t.called, t.visible = t.byName, t.list
	return t
}

func (t *table) add(cmd *Command, name string) {
	cmd.derive()
	cmd.index = t.count
	t.count++
	t.byName[name] = cmd
}

// extend adds a custom command.
func (t *table) extend(cmd *Command) error {
	t.extending.Lock()
	defer t.extending.Unlock()
	next := extension{byName: map[string]*Command{}}
	if old := t.custom.Load(); old != nil {
		maps.Copy(next.byName, old.byName)
	}
	switch {
	case t.original(cmd.Name) != nil || t.named([]byte(cmd.Name)) != nil:
		return fmt.Errorf("there is a command %q already", cmd.Name)
	case len(next.byName) == maxCustom:
		return fmt.Errorf("there are %d custom commands already", maxCustom)
	}
	cmd.derive()
	cmd.index = t.count + len(next.byName)
	next.byName[cmd.Name] = cmd
	next.list = append(slices.Clone(t.commands()), cmd)
	slices.SortFunc(next.list, func(a, b *Command) int { return compare(a.Name, b.Name) })
	t.custom.Store(&next)
	return nil
}

var (
	errNoCommandToRename = errors.New("No such command in rename-command")
	errCommandNameTaken  = errors.New("Target command name already exists")
)

// rename carries out the lines rename-command of a configuration: a name, and the one that clients are to use instead, or "" for none. Within
// the server, in the rules of users and in the journal commands keep their own names.
func (t *table) rename(lines [][]string) error {
	if len(lines) == 0 {
		return nil
	}
	called := map[string]*Command{}
	for _, cmd := range t.list {
		called[cmd.Name] = cmd
	}
	for _, line := range lines {
		from, to := strings.ToLower(line[0]), strings.ToLower(line[1])
		cmd := called[from]
		if cmd == nil {
			return errNoCommandToRename
		}
		delete(called, from)
		if called[to] != nil {
			return errCommandNameTaken
		}
		if to != "" {
			called[to] = cmd
		}
	}
	t.called, t.visible, t.real, t.longest = called, nil, map[*Command][]byte{}, 0
	for name, cmd := range called {
		t.visible = append(t.visible, cmd)
		t.longest = max(t.longest, len(name))
		if name != cmd.Name {
			t.real[cmd] = []byte(cmd.Name)
		}
	}
	slices.SortFunc(t.visible, func(a, b *Command) int { return compare(a.Name, b.Name) })
	return nil
}

// commands returns all top-level commands that clients can use, in order of their own names.
func (t *table) commands() []*Command {
	if x := t.custom.Load(); x != nil {
		return x.list
	}
	return t.visible
}

// everything returns all top-level commands in order of their own names.
func (t *table) everything() []*Command {
	x := t.custom.Load()
	switch {
	case x == nil:
		return t.list
	case t.real == nil:
		return x.list
	}
	all := slices.AppendSeq(slices.Clone(t.list), maps.Values(x.byName))
	slices.SortFunc(all, func(a, b *Command) int { return compare(a.Name, b.Name) })
	return all
}

// original returns the command or sub-command ("config|get") that has the name, in whatever case, as its own, or nil.
func (t *table) original(name string) *Command {
	name = strings.ToLower(name)
	if cmd := t.byName[name]; cmd != nil {
		return cmd
	}
	if x := t.custom.Load(); x != nil {
		return x.byName[name]
	}
	return nil
}

// named returns the command or sub-command ("config|get") that clients call so, in whatever case, or nil.
func (t *table) named(name []byte) *Command {
	name, sub, isSub := bytes.Cut(name, []byte("|"))
	cmd := t.find(name)
	if cmd != nil && isSub {
		return cmd.sub(sub)
	}
	return cmd
}

// lookup finds the command that args of a client name; for a container the sub-command. cmd is nil if there is none, container then
// tells whether only the sub-command is unknown. If the command is called by another name than its own, args get its own.
func (t *table) lookup(args [][]byte) (cmd, container *Command) {
	cmd = t.find(args[0])
	if t.real != nil && cmd != nil {
		if name := t.real[cmd]; name != nil {
			args[0] = name
		}
	}
	return cmd.among(args)
}

// lookupOriginal is lookup for commands that are called by their own names.
func (t *table) lookupOriginal(args [][]byte) (cmd, container *Command) {
	return t.findIn(t.byName, args[0]).among(args)
}

// lookupEither is lookup for those who may use both names.
func (t *table) lookupEither(args [][]byte) (cmd, container *Command) {
	if cmd, container = t.lookup(args); cmd == nil && container == nil && t.real != nil {
		return t.lookupOriginal(args)
	}
	return cmd, container
}

// find returns the top-level command that clients call so, in whatever case.
func (t *table) find(name []byte) *Command { return t.findIn(t.called, name) }

// findIn returns the top-level command that has the name in names, or as a custom command, in whatever case. It does not allocate, but for the
// long names that rename-command may give.
func (t *table) findIn(names map[string]*Command, name []byte) *Command {
	var scratch [maxCommandName]byte
	if len(name) > len(scratch) {
		if len(name) <= t.longest {
			return names[lower(name)]
		}
		return nil
	}
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		scratch[i] = c
	}
	cmd := names[string(scratch[:len(name)])]
	switch {
	case cmd == nil:
		if x := t.custom.Load(); x != nil {
			return x.byName[string(scratch[:len(name)])]
		}
	case cmd.parent != nil:
		return nil // "config|get" is no name that a client can send
	}
	return cmd
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// all calls fn for all commands and sub-commands until it returns false.
func (t *table) all(fn func(*Command) bool) {
	for _, cmd := range t.commands() {
		if !fn(cmd) {
			return
		}
		for _, sub := range cmd.Subs {
			if !fn(sub) {
				return
			}
		}
	}
}
