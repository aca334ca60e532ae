package command

// Origin is where a command comes from. What a script or a custom command calls comes from it, and from where it
// comes from itself: so an Origin is a set.
type Origin uint8

// The origins.
const (
	FromClient  Origin = 1 << iota // a client, or the program that has the server in it
	FromQueue                      // the queue of a client's transaction, which EXEC executes
	FromScript                     // a script or a function
	FromCustom                     // a custom command
	FromMaster                     // the commands of the master that the server follows
	FromJournal                    // the server's journal
	FromImport                     // an append-only file of another server
	FromRestore                    // what Restore reads
)

// Accepted are the origins of commands that have been accepted before, and must not be refused again.
const Accepted = FromMaster | FromJournal | FromImport

// In reports whether the command comes from one of the origins.
func (o Origin) In(any Origin) bool { return o&any != 0 }
