// Package keys has the names of the keys of the atom protocol, for the server and for clients of any Redis.
package keys

// How the keys begin; the name of an element follows, unless the comment says otherwise.
const (
	Command   = "command:"                        // the stream of the commands for an element
	Response  = "response:"                       // the stream of the responses to an element
	Stream    = "stream:"                         // a data stream: the name of the element, a colon, and its own
	Group     = "command_consumer_group:"         // the name of the consumer group on the stream of commands
	Counter   = "command_consumer_group_counter:" // counts the programs that are the element
	Reference = "reference:"                      // a reference: any name
	Parameter = "parameter:"                      // a parameter: its name
)

// Log is the stream of the log.
const Log = "log"
