// Package keys has the names of the keys of the atom protocol, for the server and for clients of any Redis.
package keys

// Prefixes of the keys. The name of an element follows, unless the comment says otherwise.
const (
	Command   = "command:"                        // the stream of the commands for an element
	Response  = "response:"                       // the stream of the responses to an element
	Stream    = "stream:"                         // a data stream: the name of the element, a colon, and its own
	Group     = "command_consumer_group:"         // the name of the consumer group on the stream of commands
	Counter   = "command_consumer_group_counter:" // counts the running instances of the element
	Reference = "reference:"                      // a reference: any name
	Parameter = "parameter:"                      // a parameter: its name
	Heartbeat = "heartbeat:"                      // expires unless the element lives
)

// Heartbeats is the set of the elements that have heartbeats and have not ended.
const Heartbeats = "heartbeats"

// Log is the stream of the log.
const Log = "log"
