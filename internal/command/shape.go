package command

import (
	"bytes"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/engine"
)

// This file derives facts from the entry of a command.

// LockSet says which shards a command's guard takes.
type LockSet uint8

// The sets of shards.
const (
	LockNone  LockSet = iota // the command uses no keys
	LockFirst                // its only key is argument 1
	LockKeys                 // the keys that its specs find, and its derived keys
	LockAll                  // the whole keyspace
	LockOne                  // the first shard
)

// sub returns the sub-command of that name, in any case, or nil.
func (cmd *Command) sub(name []byte) *Command {
	for _, sub := range cmd.Subs {
		if EqualFold(name, sub.Name[len(cmd.Name)+1:]) {
			return sub
		}
	}
	return nil
}

// derive fills in the derived fields of the entry.
func (cmd *Command) derive() {
	for i := range cmd.Keys {
		k := &cmd.Keys[i]
		if k.ByNumber || k.Keyword != "" || k.Index == 0 {
			cmd.Flags |= MovableKeys
		}
	}
	if cmd.Flags&ListsCategories == 0 {
		cmd.imply()
	}
	cmd.Slow = cmd.mayBeSlow()
	incomplete := func(k KeySpec) bool { return slices.Contains(k.Flags, "incomplete") }
	cmd.Incomplete = cmd.KeyIndices != nil && slices.ContainsFunc(cmd.Keys, incomplete)
	realKeys := slices.ContainsFunc(cmd.Keys, func(k KeySpec) bool { return !slices.Contains(k.Flags, "not_key") })
	switch {
	case cmd.Flags&OwnGuard != 0:
		cmd.Lock = LockNone
	case cmd.OneShard:
		cmd.Lock = LockOne
	case cmd.Flags&WholeKeyspace != 0:
		cmd.Lock = LockAll
	case cmd.DerivedKeys != nil:
		cmd.Lock = LockKeys
	case !realKeys:
		cmd.Lock = LockNone
	case len(cmd.Keys) == 1 && cmd.Keys[0].Index == 1 && cmd.Keys[0].LastKey == 0 && cmd.Flags&MovableKeys == 0:
		cmd.Lock = LockFirst
	default:
		cmd.Lock = LockKeys
	}
}

// imply adds the ACL categories that follow from the flags.
func (cmd *Command) imply() {
	implied := map[Flag]Category{Write: CatWrite, Admin: CatAdmin | CatDangerous, PubSub: CatPubSub, Fast: CatFast,
		Blocking: CatBlocking}
	for flag, category := range implied {
		if cmd.Flags&flag != 0 && (cmd.Flags&Module == 0 || flag == Write) {
			cmd.ACL |= category
		}
	}
	if cmd.Flags&ReadOnly != 0 && cmd.ACL&CatScripting == 0 {
		cmd.ACL |= CatRead
	}
	if cmd.Flags&(Fast|Module) == 0 {
		cmd.ACL |= CatSlow
	}
}

// among is the last step of a lookup: args[0] names cmd, which may be nil.
func (cmd *Command) among(args [][]byte) (found, container *Command) {
	if cmd == nil || cmd.Subs == nil || len(args) < 2 {
		return cmd, nil
	}
	if sub := cmd.sub(args[1]); sub != nil {
		return sub, nil
	}
	return nil, cmd
}

// ArityOK reports whether n arguments, names included, fit the command.
func (cmd *Command) ArityOK(n int) bool {
	if cmd.Arity < 0 {
		return n >= -cmd.Arity
	}
	return n == cmd.Arity
}

// Shards returns the shard set that a guard for the command must hold.
func (cmd *Command) Shards(ks *engine.Keyspace, args [][]byte) uint64 {
	switch cmd.Lock {
	case LockFirst:
		return ks.ShardOf(args[1])
	case LockAll:
		return engine.AllShards
	case LockOne:
		return 1
	case LockKeys:
		if ks.Shards() == 1 {
			return 1
		}
		var set uint64
		cmd.EachKey(args, func(i int, _ *KeySpec) bool {
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

// ShardsAmong is Shards for a command that shares its guard with others. Such a guard cannot be extended when values
// lead to further keys.
func (cmd *Command) ShardsAmong(ks *engine.Keyspace, args [][]byte) uint64 {
	if cmd.Flags&FollowsKeys != 0 {
		return engine.AllShards
	}
	return cmd.Shards(ks, args)
}

// MaxHints is how many keys are warmed before commands use them: more would leave the cache again.
const MaxHints = 256

// AppendHints appends the keys that the command will use, until there are MaxHints. A command with more keys warms
// them as it goes through them: Ctx.WarmKeys.
func (cmd *Command) AppendHints(hints []engine.Hint, args [][]byte) []engine.Hint {
	switch cmd.Lock {
	case LockFirst:
		h := engine.Hint{Key: args[1]}
		if i := cmd.Element; i != 0 && i < len(args) {
			h.Element = args[i]
		} else if n := len(hints); n > 0 && bytes.Equal(hints[n-1].Key, h.Key) {
			return hints // the common case in pipelines
		}
		hints = append(hints, h)
	case LockKeys, LockAll:
		cmd.EachKey(args, func(i int, _ *KeySpec) bool {
			hints = append(hints, engine.Hint{Key: args[i]})
			return len(hints) < MaxHints
		})
	}
	return hints
}

// EachKey calls fn with the index of every key among args, in the order of the specs, until fn returns false. It
// reports false if the arguments do not fit the specs.
func (cmd *Command) EachKey(args [][]byte, fn func(i int, spec *KeySpec) bool) bool {
	if cmd.Incomplete {
		for _, i := range cmd.KeyIndices(args) {
			if !fn(i, &cmd.Keys[0]) {
				break
			}
		}
		return true
	}
	fit := true
	for s := range cmd.Keys {
		spec := &cmd.Keys[s]
		if !spec.positions(args, func(i int) bool { return fn(i, spec) }) {
			fit = false
		}
	}
	return fit
}

// UseOfKey returns the flags of a key that spec finds among args: how the command uses it.
func (cmd *Command) UseOfKey(spec *KeySpec, args [][]byte) []string {
	if !slices.Contains(spec.Flags, variableFlags) {
		return spec.Flags
	}
	if cmd.KeyUse != nil {
		if flags := cmd.KeyUse(args); flags != nil {
			return flags
		}
	}
	return slices.DeleteFunc(slices.Clone(spec.Flags), func(f string) bool { return f == variableFlags })
}

// variableFlags is the flag of a spec whose other flags depend on the arguments.
const variableFlags = "variable_flags"

// MayReplicate reports whether the command may write or publish. A script or function that declares no-writes counts
// as a reader; the server enforces that when it runs.
func (cmd *Command) MayReplicate(host Host, args [][]byte) bool {
	if cmd.Flags&MayReplicate == 0 || cmd.Script == nil {
		return cmd.Flags&(Write|MayReplicate) != 0
	}
	script := cmd.Script(host, args)
	return !script.Declared || !script.ReadOnly
}

// NeedsMemory reports whether the command may need more memory. A script without a declaration counts as false; its
// commands are checked when it runs them.
func (cmd *Command) NeedsMemory(host Host, args [][]byte) bool {
	if cmd.Script == nil {
		return cmd.Flags&DenyOOM != 0
	}
	script := cmd.Script(host, args)
	return script.Declared && !script.ReadOnly && !script.AllowOOM
}

// MayNeedMemory is NeedsMemory for callers that make a command wait, but not fail. Here a script without a
// declaration counts as true, because nothing stops it once it has begun to write.
func (cmd *Command) MayNeedMemory(host Host, args [][]byte) bool {
	if cmd.Script == nil || cmd.Flags&MayReplicate == 0 {
		return cmd.NeedsMemory(host, args)
	}
	script := cmd.Script(host, args)
	return !script.Declared || !script.ReadOnly && !script.AllowOOM
}

// mayBeSlow reports whether a command may take longer than a few lookups.
func (cmd *Command) mayBeSlow() bool {
	constant := strings.HasPrefix(cmd.Complexity, "O(1)") ||
		strings.HasPrefix(cmd.Complexity, "O(log") && !strings.ContainsAny(cmd.Complexity, "+*")
	return cmd.Flags&Blocking != 0 || cmd.Flags&Fast == 0 && !constant
}
