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

	"github.com/atomredis/atomredis/engine"
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

// lockSet says which shards a command's guard takes.
type lockSet uint8

const (
	lockNone  lockSet = iota // the command uses no keys
	lockFirst                // its only key is argument 1
	lockKeys                 // the keys that its specs find, and those that it derives
	lockAll                  // the whole keyspace
)

// newTable returns a table without custom commands. The others are the same for all servers of the process, and must not be changed.
func newTable() *table {
	t := builtin()
	return &table{byName: t.byName, list: t.list, count: t.count, called: t.byName, visible: t.list}
}

var builtin = sync.OnceValue(buildTable)

// buildTable puts the groups together and derives what follows from each entry.
func buildTable() *table {
	t := &table{byName: map[string]*Command{}}
	for _, group := range commandGroups() {
		for _, entry := range group {
			cmd := *entry // index and parent are filled in
			t.list = append(t.list, &cmd)
		}
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

// sub returns the sub-command of that name, in whatever case, or nil.
func (cmd *Command) sub(name []byte) *Command {
	for _, sub := range cmd.Subs {
		if equalFold(name, sub.Name[len(cmd.Name)+1:]) {
			return sub
		}
	}
	return nil
}

// derive fills in what follows from the facts of the entry.
func (cmd *Command) derive() {
	for i := range cmd.Keys {
		k := &cmd.Keys[i]
		if k.ByNumber || k.Keyword != "" || k.Index == 0 {
			cmd.Flags |= MovableKeys
		}
	}
	implied := map[Flag]Category{Write: CatWrite, Admin: CatAdmin | CatDangerous, PubSub: CatPubSub, Fast: CatFast, Blocking: CatBlocking}
	for flag, category := range implied {
		if cmd.Flags&flag != 0 {
			cmd.ACL |= category
		}
	}
	if cmd.Flags&ReadOnly != 0 && cmd.ACL&CatScripting == 0 {
		cmd.ACL |= CatRead
	}
	if cmd.Flags&Fast == 0 {
		cmd.ACL |= CatSlow
	}
	cmd.slow = cmd.mayBeSlow()
	realKeys := slices.ContainsFunc(cmd.Keys, func(k KeySpec) bool { return !slices.Contains(k.Flags, "not_key") })
	switch {
	case cmd.Flags&OwnGuard != 0:
		cmd.lock = lockNone
	case cmd.Flags&WholeKeyspace != 0:
		cmd.lock = lockAll
	case cmd.DerivedKeys != nil:
		cmd.lock = lockKeys
	case !realKeys:
		cmd.lock = lockNone
	case len(cmd.Keys) == 1 && cmd.Keys[0].Index == 1 && cmd.Keys[0].LastKey == 0 && cmd.Flags&MovableKeys == 0:
		cmd.lock = lockFirst
	default:
		cmd.lock = lockKeys
	}
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

// among is the end of lookup, for cmd, which args[0] names; cmd may be nil.
func (cmd *Command) among(args [][]byte) (found, container *Command) {
	if cmd == nil || cmd.Subs == nil || len(args) < 2 {
		return cmd, nil
	}
	if sub := cmd.sub(args[1]); sub != nil {
		return sub, nil
	}
	return nil, cmd
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

// arityOK reports whether n arguments, names included, fit the command.
func (cmd *Command) arityOK(n int) bool {
	if cmd.Arity < 0 {
		return n >= -cmd.Arity
	}
	return n == cmd.Arity
}

// shards returns the shard set that a guard for the command must hold.
func (cmd *Command) shards(ks *engine.Keyspace, args [][]byte) uint64 {
	switch cmd.lock {
	case lockFirst:
		return ks.ShardOf(args[1])
	case lockAll:
		return engine.AllShards
	case lockKeys:
		if ks.Shards() == 1 {
			return 1
		}
		var set uint64
		cmd.eachKey(args, func(i int, _ *KeySpec) bool {
			set |= ks.ShardOf(args[i])
			return true
		})
		if cmd.DerivedKeys != nil {
			cmd.DerivedKeys(args, func(key []byte) { set |= ks.ShardOf(key) })
		}
		return set
	}
	return 0
}

// appendHints appends what the command will use.
func (cmd *Command) appendHints(hints []engine.Hint, args [][]byte) []engine.Hint {
	switch cmd.lock {
	case lockFirst:
		h := engine.Hint{Key: args[1]}
		if i := cmd.Element; i != 0 && i < len(args) {
			h.Element = args[i]
		} else if n := len(hints); n > 0 && bytes.Equal(hints[n-1].Key, h.Key) {
			return hints // as in many pipelines
		}
		hints = append(hints, h)
	case lockKeys, lockAll:
		cmd.eachKey(args, func(i int, _ *KeySpec) bool {
			hints = append(hints, engine.Hint{Key: args[i]})
			return true
		})
	}
	return hints
}

// eachKey calls fn with the index of every key among args, in the order of the specs, until fn returns false. It
// reports false if the arguments do not fit the specs.
func (cmd *Command) eachKey(args [][]byte, fn func(i int, spec *KeySpec) bool) bool {
	fit := true
	for s := range cmd.Keys {
		spec := &cmd.Keys[s]
		if !spec.positions(args, func(i int) bool { return fn(i, spec) }) {
			fit = false
		}
	}
	return fit
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

// commandGroups returns the command table, by group.
func commandGroups() [][]*Command {
	return [][]*Command{
		stringCommands, stringDigestCommands, genericCommands, dumpCommands, replicationCommands, replicaCommands, sortCommands, listCommands, hashCommands, setCommands, zsetCommands, bitmapCommands, hyperloglogCommands, geoCommands, streamCommands, streamDeleteCommands, pubsubCommands, transactionCommands, scriptingCommands, functionCommands, clusterCommands,
		connectionCommands, clientCommands, aclCommands, keyspaceCommands, configCommands, commandCommands,
		serverCommands,
		persistenceCommands,
		atomCommands,
		pressureCommands,
	}
}
