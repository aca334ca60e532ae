// Package command has what is known of commands apart from the server that runs them: the entries of the command
// table, what follows from them, and the [Ctx] by which a handler reads its arguments, reaches its keys and replies.
// It knows no session and no transport: the server and the client of a command are the interfaces [Host] and
// [Client].
//
// # The table
//
// A [Command] is everything known of a command. The entries stand at the head of the files of their handlers, and
// each group registers itself ([Register]). table.go and shape.go derive the rest: ACL categories, the shards a guard
// takes, COMMAND and its sub-commands, docs/commands.md. What only COMMAND DOCS says, histories and versions, is in
// internal/commands/server/command_docs.go.
//
// Whatever is special about a command (channels, secrets, exact keys, declarations for scripts) is a field of its entry.
// Only handlers compare names, which a test checks. Keys that follow from the arguments without being
// among them (a queue's name stands for thirteen keys) are DerivedKeys.
//
// # Handlers
//
// A handler parses, acts and replies. It does not wake or notify anybody. It calls Ctx.Journal only if its effect
// does not follow from its arguments and the data; otherwise the server journals the command as it was sent, if it
// changed something. Arguments are views into the client's input and die when the command ends; what is kept is
// copied once, when it is stored.
//
// Handlers see the server and the client through interfaces. Those of data types need [Host] and [Client] alone. A
// package of others declares what it needs beside that in its host.go; the server says that it has it in server/host.go.
//
// # Types and services
//
// A [Kind] is what commands on keys of any type must know of a type; the package of the type's commands registers it.
// A [Service] is what a protocol has beside its commands: state that is in no key, and what it does when clients
// change keys or go away. An [Origin] says where a command comes from.
package command
