// Package command has the entries of the command table, the facts that follow from them, and the [Ctx] with which a
// handler reads its arguments, accesses its keys and replies. It knows no session and no transport: it sees the
// server and the client of a command as the interfaces [Host] and [Client].
//
// # The table
//
// A [Command] holds all facts about a command. The entries stand at the head of the files of their handlers, and
// each group registers itself ([Register]). table.go and shape.go derive the rest: ACL categories, the shards a
// guard takes, COMMAND and its sub-commands, docs/commands.md. Histories and versions, which only COMMAND DOCS
// shows, are in internal/commands/server/command_docs.go.
//
// Each special property of a command (channels, secrets, exact keys, declarations for scripts) is a field of its
// entry. Only handlers compare names, which a test checks. Keys that follow from the arguments without being among
// them (a queue's name stands for thirteen keys) are DerivedKeys.
//
// # Handlers
//
// A handler parses, acts and replies. It does not wake or notify anybody. It calls Ctx.Journal only if its effect
// does not follow from its arguments and the data; otherwise the server journals the command as it was sent, if it
// changed something. Arguments are views into the client's input and die when the command ends; a handler copies
// what it stores, once.
//
// Handlers see the server and the client through interfaces. Those of data types need only [Host] and [Client].
// Other packages declare further interfaces in their host.go; server/host.go asserts that the server implements
// them.
//
// # Types and services
//
// A [Kind] describes a type for commands on keys of any type; the package of the type's commands registers it. A
// [Service] is a protocol's state outside of keys, and its hooks for changes of keys and for clients that
// disconnect. An [Origin] is the source of a command.
package command
