// Package skein has the commands of Skein applications: a sorted store of keys and values, containers that own keys,
// transactions, and events. docs/skein.md explains it to users.
//
// All data is in ordinary keys (package keys), and every change is journalled as ordinary commands. Not stored are
// the revision of events, watches, the ties of containers to clients, and the schedule of leases (package due),
// which follows from the keys.
package skein

import (
	"unicode/utf8"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/skein/keys"
	"github.com/atomredis/atomredis/internal/version"
)

func init() { command.Register(commands) }

const (
	writes     = command.Write | command.TouchesArbitraryKeys
	adds       = writes | command.DenyOOM
	reads      = command.ReadOnly | command.TouchesArbitraryKeys
	lists      = reads | command.WholeKeyspace | command.AllKeys
	categories = command.CatHash | command.CatSortedSet

	perKey = "O(log(N)+M), where N is the number of keys and M is the number of keys in the range"
)

var commands = []*command.Command{
	{Name: "skein.apps", Group: "skein", Since: version.Number, Arity: 1, Flags: lists, ACL: categories,
		Summary: "Lists the names of the applications", Complexity: "O(N), where N is the number of keys in the database", Do: apps},
	{Name: "skein.container", Group: "skein", Since: version.Number, Arity: -2, Summary: "A container for the commands of containers",
		Complexity: "Depends on subcommand", Subs: containerCommands},
	{Name: "skein.del", Group: "skein", Since: version.Number, Arity: -4, Flags: writes, ACL: categories, DerivedKeys: allKeys,
		Summary: "Removes the keys of a range", Syntax: "app start end [NONE | ITEMS | KEYS]", Complexity: perKey, Do: del},
	{Name: "skein.finish", Group: "skein", Since: version.Number, Arity: -3, Flags: adds, ACL: categories, DerivedKeys: allKeys,
		Summary: "Ends an application with all its containers", Syntax: "app <UNDEFINED | SUCCEEDED | FAILED | KILLED> [message]",
		Complexity: "O(N), where N is the number of containers and of keys that they own", Do: finish},
	{Name: "skein.get", Group: "skein", Since: version.Number, Arity: 3, Flags: reads | command.Fast, ACL: categories,
		DerivedKeys: readKeys,
		Summary:     "Returns the value and the owner of a key", Syntax: "app key", Complexity: "O(1)", Do: get},
	{Name: "skein.info", Group: "skein", Since: version.Number, Arity: 2, Flags: reads, ACL: categories, DerivedKeys: allKeys,
		Summary: "Describes an application", Syntax: "app", Complexity: "O(N), where N is the number of containers", Do: info},
	{Name: "skein.put", Group: "skein", Since: version.Number, Arity: -3, Flags: adds | command.Fast, ACL: categories,
		DerivedKeys: allKeys,
		Summary:     "Sets the value of a key, its owner, or both",
		Syntax:      "app key [VALUE value] [OWNER container | KEEPOWNER] [GET]",
		Complexity:  "O(log(N)), where N is the number of keys", Do: put},
	{Name: "skein.range", Group: "skein", Since: version.Number, Arity: -4, Flags: reads, ACL: categories, DerivedKeys: readKeys,
		Summary: "Returns or counts the keys of a range", Syntax: "app start end [ITEMS | KEYS | NONE]", Complexity: perKey,
		Do: keyRange},
	{Name: "skein.revision", Group: "skein", Since: version.Number, Arity: 2, Flags: reads | command.Fast, ACL: categories,
		DerivedKeys: readKeys,
		Summary:     "Counts the events of an application since the server started", Syntax: "app", Complexity: "O(1)", Do: revision},
	{Name: "skein.txn", Group: "skein", Since: version.Number, Arity: -2, Flags: adds, ACL: categories, DerivedKeys: allKeys,
		Summary:    "Carries out one of two lists of operations, as conditions decide",
		Syntax:     "app [IF condition [condition ...]] [THEN operation [operation ...]] [ELSE operation [operation ...]]",
		Complexity: "That of the operations", Do: txn},
	{Name: "skein.watch", Group: "skein", Since: version.Number, Arity: -4, Flags: reads | command.Blocking, ACL: categories,
		DerivedKeys: readKeys,
		Summary:     "Waits for the next event in a range", Syntax: "app start end [ALL | PUT | DELETE] [TIMEOUT milliseconds]",
		Complexity: "O(1)", Do: watchRange},
}

const (
	errName command.Error = "ERR the name of an application must not be empty, and must not have braces"
	errKey  command.Error = "ERR the key is not valid UTF-8"
)

// opened returns the application that an argument names, ready for a command that may change it. If the name is
// invalid, or a key is of a wrong type, it writes an error and ok is false.
func opened(c *command.Ctx, at int) (a *app, ok bool) {
	if a, ok = openedToRead(c, at, numberOfKeys); ok {
		a.refresh()
	}
	return a, ok
}

// openedToRead is opened for a command that only reads the first n keys.
func openedToRead(c *command.Ctx, at int, n key) (a *app, ok bool) {
	if !named(c.Args[at]) {
		c.Err(errName)
		return nil, false
	}
	a = appOf(c, c.Args[at])
	return a, a.check(n)
}

// keysFit reports whether all keys are UTF-8. If not, it writes an error.
func keysFit(c *command.Ctx, all ...[]byte) bool {
	for _, key := range all {
		if !utf8.Valid(key) {
			c.Err(errKey)
			return false
		}
	}
	return true
}

// get replies with the value and the owner of a key.
func get(c *command.Ctx) {
	if !keysFit(c, c.Args[2]) {
		return
	}
	if a, ok := openedToRead(c, 1, readOnly); ok {
		a.replyOne(c.Args[2])
	}
}

func keyRange(c *command.Ctx) {
	op, ok := only(c, rangeOperation)
	if !ok {
		return
	}
	if a, ok := openedToRead(c, 1, readOnly); ok {
		a.perform(&op)
	}
}

// only reads the single operation of a command. If the arguments are wrong, it writes an error and ok is false.
func only(c *command.Ctx, kind operationKind) (op operation, ok bool) {
	p := parser{args: c.Args[2:]}
	op = p.operation(kind)
	if len(p.args) > 0 {
		p.fail(command.ErrSyntax)
	}
	if p.err != "" {
		c.Err(p.err)
	}
	return op, p.err == ""
}

func put(c *command.Ctx) { change(c, putOperation) }
func del(c *command.Ctx) { change(c, delOperation) }

// change executes a command that is a single write operation.
func change(c *command.Ctx, kind operationKind) {
	op, ok := only(c, kind)
	if !ok {
		return
	}
	a, ok := opened(c, 1)
	if !ok {
		return
	}
	if err := a.allowed(&op); err != "" {
		c.Err(err)
		return
	}
	a.perform(&op)
}

// txn checks everything that can fail before it changes anything.
func txn(c *command.Ctx) {
	p := parser{args: c.Args[2:]}
	t := p.transaction()
	if p.err != "" {
		c.Err(p.err)
		return
	}
	a, ok := opened(c, 1)
	if !ok {
		return
	}
	succeeded := a.holdAll(t.conditions)
	chosen := t.otherwise
	if succeeded {
		chosen = t.then
	}
	if err := a.allAllowed(chosen); err != "" {
		c.Err(err)
		return
	}
	c.W.Array(2)
	if succeeded {
		c.W.Int(1)
	} else {
		c.W.Int(0)
	}
	c.W.Array(len(chosen))
	for i := range chosen {
		a.perform(&chosen[i])
	}
}

// invalid and failed return the errors whose texts clients of Skein get too.
func invalid(text string) command.Error { return command.Error(keys.Invalid + text) }
func failed(text string) command.Error  { return command.Error(keys.Precondition + text) }
