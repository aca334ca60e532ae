package command

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
	// MaxCustom is the largest number of custom commands of a server: their statistics are allocated at the start.
	MaxCustom = 256
	// MaxCommandName is the length of the longest name of a command, in bytes; see Table.findIn.
	MaxCommandName = 32
)

// Table is the command table as the dispatcher uses it.
type Table struct {
	ByName map[string]*Command // built-in commands, and sub-commands ("config|get"), by their original names
	List   []*Command          // top-level commands in order of their names
	Count  int                 // commands and sub-commands, the size of per-command statistics

	// Changed by rename-command; see Rename.
	called  map[string]*Command // top-level commands by the names that clients use; ByName without renamed commands
	visible []*Command          // the commands of List that clients can use
	real    map[*Command][]byte // original names of renamed commands; nil without any
	longest int                 // the length of the longest name that clients use, if real is not nil

	extending sync.Mutex                // held by extend
	custom    atomic.Pointer[extension] // nil if there are no custom commands
}

// extension holds the custom commands. It is immutable: adding a command makes a new one. It is consulted only for
// names that no built-in command has, so those are found without synchronisation.
type extension struct {
	byName map[string]*Command
	list   []*Command // all top-level commands, including the built-in ones, in order of their names
}

// registered are the built-in commands.
var registered []*Command

// Register adds entries to the built-in commands. It is called by init functions only.
func Register(entries []*Command) { registered = append(registered, entries...) }

// NewTable returns a table without custom commands. All servers of the process share the built-in commands, which
// must not be changed.
func NewTable() *Table {
	t := builtin()
	return &Table{ByName: t.ByName, List: t.List, Count: t.Count, called: t.ByName, visible: t.List}
}

var builtin = sync.OnceValue(BuildTable)

// BuildTable joins the groups and fills in the derived fields of each entry.
func BuildTable() *Table {
	t := &Table{ByName: map[string]*Command{}}
	for _, entry := range registered {
		cmd := *entry // a copy, because Index and Parent are filled in
		t.List = append(t.List, &cmd)
	}
	slices.SortFunc(t.List, func(a, b *Command) int { return compare(a.Name, b.Name) })
	for _, cmd := range t.List {
		t.add(cmd, cmd.Name)
		subs := cmd.Subs
		cmd.Subs = nil
		for _, entry := range subs {
			sub := *entry
			sub.Parent = cmd
			cmd.Subs = append(cmd.Subs, &sub)
			t.add(&sub, sub.Name)
		}
	}
	t.called, t.visible = t.ByName, t.List
	return t
}

func (t *Table) add(cmd *Command, name string) {
	cmd.derive()
	cmd.Index = t.Count
	t.Count++
	t.ByName[name] = cmd
}

// Extend adds a custom command.
func (t *Table) Extend(cmd *Command) error {
	t.extending.Lock()
	defer t.extending.Unlock()
	next := extension{byName: map[string]*Command{}}
	if old := t.custom.Load(); old != nil {
		maps.Copy(next.byName, old.byName)
	}
	switch {
	case t.Original(cmd.Name) != nil || t.Named([]byte(cmd.Name)) != nil:
		return fmt.Errorf("there is a command %q already", cmd.Name)
	case len(next.byName) == MaxCustom:
		return fmt.Errorf("there are %d custom commands already", MaxCustom)
	}
	cmd.derive()
	cmd.Index = t.Count + len(next.byName)
	next.byName[cmd.Name] = cmd
	next.list = append(slices.Clone(t.Commands()), cmd)
	slices.SortFunc(next.list, func(a, b *Command) int { return compare(a.Name, b.Name) })
	t.custom.Store(&next)
	return nil
}

// Errors of Rename.
var (
	ErrNoCommandToRename = errors.New("No such command in rename-command")
	ErrCommandNameTaken  = errors.New("Target command name already exists")
)

// Rename applies the rename-command lines of a configuration: a name, and the name that clients must use instead, or
// "" for none. Inside the server, in users' rules and in the journal, commands keep their original names.
func (t *Table) Rename(lines [][]string) error {
	if len(lines) == 0 {
		return nil
	}
	called := map[string]*Command{}
	for _, cmd := range t.List {
		called[cmd.Name] = cmd
	}
	for _, line := range lines {
		from, to := strings.ToLower(line[0]), strings.ToLower(line[1])
		cmd := called[from]
		if cmd == nil {
			return ErrNoCommandToRename
		}
		delete(called, from)
		if called[to] != nil {
			return ErrCommandNameTaken
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

// Called returns the name by which clients call a top-level command; "" if they cannot.
func (t *Table) Called(cmd *Command) string {
	if t.real == nil || cmd.Custom {
		return cmd.Name
	}
	for name, c := range t.called {
		if c == cmd {
			return name
		}
	}
	return ""
}

// Commands returns all top-level commands that clients can use, in order of their original names.
func (t *Table) Commands() []*Command {
	if x := t.custom.Load(); x != nil {
		return x.list
	}
	return t.visible
}

// Everything returns all top-level commands in order of their original names.
func (t *Table) Everything() []*Command {
	x := t.custom.Load()
	switch {
	case x == nil:
		return t.List
	case t.real == nil:
		return x.list
	}
	all := slices.AppendSeq(slices.Clone(t.List), maps.Values(x.byName))
	slices.SortFunc(all, func(a, b *Command) int { return compare(a.Name, b.Name) })
	return all
}

// Original returns the command or sub-command ("config|get") with that original name, in any case, or nil.
func (t *Table) Original(name string) *Command {
	name = strings.ToLower(name)
	if cmd := t.ByName[name]; cmd != nil {
		return cmd
	}
	if x := t.custom.Load(); x != nil {
		return x.byName[name]
	}
	return nil
}

// Named returns the command or sub-command ("config|get") that clients call by that name, in any case, or nil.
func (t *Table) Named(name []byte) *Command {
	name, sub, isSub := bytes.Cut(name, []byte("|"))
	cmd := t.Find(name)
	if cmd != nil && isSub {
		return cmd.sub(sub)
	}
	return cmd
}

// Lookup finds the command that a client's args name; for a container, the sub-command. cmd is nil if it is unknown;
// container is not nil if only the sub-command is unknown. A renamed command's original name is put into args[0].
func (t *Table) Lookup(args [][]byte) (cmd, container *Command) {
	cmd = t.Find(args[0])
	if t.real != nil && cmd != nil {
		if name := t.real[cmd]; name != nil {
			args[0] = name
		}
	}
	return cmd.among(args)
}

// LookupOriginal is Lookup by original names.
func (t *Table) LookupOriginal(args [][]byte) (cmd, container *Command) {
	return t.findIn(t.ByName, args[0]).among(args)
}

// LookupEither is Lookup for callers that may use both names.
func (t *Table) LookupEither(args [][]byte) (cmd, container *Command) {
	if cmd, container = t.Lookup(args); cmd == nil && container == nil && t.real != nil {
		return t.LookupOriginal(args)
	}
	return cmd, container
}

// Find returns the top-level command that clients call by that name, in any case.
func (t *Table) Find(name []byte) *Command { return t.findIn(t.called, name) }

// findIn returns the top-level command that has the name in names, or the custom command of that name, in any case.
// It allocates only for long names from rename-command.
func (t *Table) findIn(names map[string]*Command, name []byte) *Command {
	var scratch [MaxCommandName]byte
	if len(name) > len(scratch) {
		if len(name) <= t.longest {
			return names[Lower(name)]
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
	case cmd.Parent != nil:
		return nil // clients cannot call a command "config|get"
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

// All calls fn for all commands and sub-commands until it returns false.
func (t *Table) All(fn func(*Command) bool) {
	for _, cmd := range t.Commands() {
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
