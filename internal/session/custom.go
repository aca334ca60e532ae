package session

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// This file lets a program that embeds the server add commands of its own. They are entries of the command table
// like all others. They use the data only by calling other commands, under their own guard.

const (
	// customGroup is the group of custom commands.
	customGroup = "module"
	// maxNesting is how deep custom commands can call one another.
	maxNesting = 16
)

// ErrInHandler means that the handler of a custom command uses the server in another way than by calling commands.
var ErrInHandler = errors.New("the handler of a command must use the Call of its Ctx, because the server waits for it")

// Handle adds a command to the table, with do as its handler; it may be called while commands are executed. Name,
// Summary, Complexity, Syntax, Arity, Flags and Keys of cmd are used. If the command has keys, its arity must
// include the first one. It fails if there is a command of that name.
//
// The command's guard holds the shards of its keys, or the whole keyspace if it has none or the flag WholeKeyspace.
// It is never journalled itself: the commands that it calls are.
func (sh *Shared) Handle(cmd command.Command, do func(c *Caller)) error {
	name := strings.ToLower(cmd.Name)
	if err := checkCommandName(name); err != nil {
		return err
	}
	entry := &command.Command{Name: name, Group: customGroup, Arity: cmd.Arity, Flags: cmd.Flags,
		Keys:    slices.Clone(cmd.Keys),
		Summary: cmd.Summary, Complexity: cmd.Complexity, Syntax: cmd.Syntax, Custom: true}
	if len(entry.Keys) == 0 {
		entry.Flags |= command.WholeKeyspace
	}
	if _, err := entry.Arguments(); err != nil {
		return err
	}
	entry.Do = func(c *command.Ctx) { runCustom(c, do) }
	if sh.Hook != nil {
		Fallible(entry, sh.Hook)
	}
	return sh.Table.Extend(entry)
}

// NotInHandler returns ErrInHandler if the calling goroutine is executing a handler of the server.
func (sh *Shared) NotInHandler() error {
	if sh.handlers.within() {
		return ErrInHandler
	}
	return nil
}

// checkCommandName returns an error if a command cannot have the name, which is in lower case.
func checkCommandName(name string) error {
	allowed := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.ContainsRune(".:_-", c)
	}
	switch {
	case name == "" || len(name) > command.MaxCommandName:
		return fmt.Errorf("the name %q of a command has not 1 to %d characters", name, command.MaxCommandName)
	case strings.ContainsFunc(name, func(c rune) bool { return !allowed(c) }):
		return fmt.Errorf("the name %q of a command has characters other than letters, digits and . : _ -", name)
	case isHTTP([]byte(name)):
		return fmt.Errorf("a command cannot be called %q: it is how clients are recognised that speak HTTP", name)
	}
	return nil
}

// Caller lets the handler of a custom command call other commands. It is valid only during the handler's call, and
// used by the handler's goroutine only.
type Caller struct {
	ctx   *command.Ctx // of the custom command
	inner command.Ctx  // of the commands that it calls
	w     resp.Writer  // takes one reply at a time
	keys  map[string]struct{}
	depth int  // how many other custom commands are running, each called by the one before
	ended bool // the handler has returned
}

// runCustom calls the handler of a custom command.
func runCustom(c *command.Ctx, do func(c *Caller)) {
	c.Journalled = true
	s := sessionOf(c)
	outer, db := s.custom, s.db
	h := &Caller{ctx: c}
	if outer != nil {
		h.depth = outer.depth + 1
	}
	if h.depth == maxNesting {
		c.Err("ERR custom commands call each other too deeply")
		return
	}
	h.inner = command.Ctx{W: &h.w, G: c.G, Client: s, Host: c.Host, NoBlock: true, Origin: c.Origin | command.FromCustom}
	s.custom = h
	defer func() {
		s.custom, s.db = outer, db
		h.ended = true
	}()
	sharedOf(c).handlers.call(func() { do(h) })
}

// Args are the name and the arguments of the custom command. They refer to the client's input.
func (h *Caller) Args() [][]byte { return h.ctx.Args }

// DB is the database that the client, or the script, has selected.
func (h *Caller) DB() int { return h.ctx.DB }

// Now returns the time of the command in ms since 1970.
func (h *Caller) Now() int64 { return h.ctx.Now() }

// Writer takes the reply of the custom command, exactly one.
func (h *Caller) Writer() *resp.Writer { return h.ctx.W }

// Call executes a command, args[0] being its name, under the guard of the custom command, and returns its reply in
// RESP3. The caller owns it. The effect of SELECT lasts until the custom command ends; blocking commands reply at
// once. Other commands that scripts must not call, and keys that the custom command does not declare, get an error
// reply. args are not kept.
func (h *Caller) Call(args [][]byte) []byte {
	c := &h.inner
	h.w = resp.Writer{Proto: 3}
	if h.ended || len(args) == 0 {
		c.Err("ERR a custom command can call commands only while it runs, and they have names")
		return h.w.Buf
	}
	s := sessionOf(c)
	cmd, _ := s.shared.Table.LookupEither(args)
	if e := s.admit(command.FromCustom, cmd, nil, args); e != "" {
		c.Err(e)
		return h.w.Buf
	}
	c.Cmd, c.Args, c.DB = cmd, args, s.db
	s.run(c)
	if s.modes.tracking.On() {
		s.rememberKeys(cmd, args)
	}
	return h.w.Buf
}

// refuseArguments returns the error for a command with an argument that is too long, or a key that the custom command
// does not declare.
func (h *Caller) refuseArguments(cmd *command.Command, args [][]byte) command.Error {
	limit := sharedOf(h.ctx).MaxBulk()
	if slices.ContainsFunc(args, func(a []byte) bool { return len(a) > limit }) {
		return command.Error(fmt.Sprintf("ERR an argument of '%s' is longer than proto-max-bulk-len allows", cmd.Name))
	}
	return h.undeclared(cmd, args)
}

// undeclared returns an error if a command uses keys that the custom command does not declare. It compares the names
// of the keys instead of their shards, so that the result does not depend on the number of shards. All declared keys
// are held: by the guard of the custom command itself, or by the guard of the transaction, script or other custom
// command that it runs in.
func (h *Caller) undeclared(cmd *command.Command, args [][]byte) (e command.Error) {
	own := h.ctx.Cmd
	if own.Lock == command.LockAll {
		return ""
	}
	if cmd.Lock == command.LockAll {
		return command.Error(fmt.Sprintf("ERR '%s' needs the whole keyspace, and '%s' declares keys", cmd.Name, own.Name))
	}
	check := func(key []byte) {
		if e == "" && !h.declares(key) {
			e = command.Error(fmt.Sprintf("ERR '%s' does not declare the key '%.128s'", own.Name, key))
		}
	}
	cmd.EachKey(args, func(i int, _ *command.KeySpec) bool {
		check(args[i])
		return true
	})
	if cmd.DerivedKeys != nil {
		cmd.DerivedKeys(args, check)
	}
	return e
}

// declares reports whether a key is among those of the custom command.
func (h *Caller) declares(key []byte) bool {
	if h.keys == nil {
		h.keys = map[string]struct{}{}
		h.ctx.Cmd.EachKey(h.ctx.Args, func(i int, _ *command.KeySpec) bool {
			h.keys[string(h.ctx.Args[i])] = struct{}{}
			return true
		})
	}
	_, ok := h.keys[string(key)]
	return ok
}
