package command

// Origin is the source of a command. A call from a script or custom command has that origin and the origin of the
// script or custom command itself, so an Origin is a set.
type Origin uint8

// The origins.
const (
	FromClient  Origin = 1 << iota // a client, or the embedding program
	FromQueue                      // the queue of a client's transaction, which EXEC executes
	FromScript                     // a script or a function
	FromCustom                     // a custom command
	FromMaster                     // the commands of the master that the server follows
	FromJournal                    // the server's journal
	FromImport                     // an append-only file of another server
	FromRestore                    // the input of Restore
)

// Accepted are the origins of commands that were accepted earlier and must not be refused now.
const Accepted = FromMaster | FromJournal | FromImport

// In reports whether the command comes from one of the origins.
func (o Origin) In(any Origin) bool { return o&any != 0 }
