// Package keys has the names of the keys of Skein applications, the words that their errors begin with, and the order
// of an application's keys.
package keys

import "strconv"

// Prefix is the prefix of the keys of all applications. The name of the application follows in braces, so that a
// cluster has all its keys in one slot: "skein:{app}" is the hash of its keys and values.
const Prefix = "skein:"

// The suffixes of the other keys of an application, which exist only while they are not empty.
const (
	Owners     = ":owners"     // a hash from keys to the containers that own them
	Index      = ":index"      // a sorted set of the keys in their order, as Member writes them; all scores are 0
	Owned      = ":owned"      // a sorted set of owner, NUL and key, as Member writes it; all scores are 0
	Containers = ":containers" // a hash from containers to "state start finish lease message"
	Services   = ":services"   // a hash from services to the number of their next container
	Leases     = ":leases"     // a sorted set of containers with leases, by deadline in ms since 1970
	Status     = ":status"     // a string, "status message", of an application that has finished
)

// AppendChannel turns the key of an application's values into the name of the channel for its changes; package event
// reads the messages. Applications of other databases than 0 have channels of their own.
func AppendChannel(values []byte, db int) []byte {
	values = append(values, ":events"...)
	if db != 0 {
		values = strconv.AppendInt(append(values, '@'), int64(db), 10)
	}
	return values
}

// AppendFinished turns the key of an application's values into the name of the channel on which its end is also
// published, as status and message with a space between them.
func AppendFinished(values []byte, db int) []byte {
	values = append(values, ":finished"...)
	if db != 0 {
		values = strconv.AppendInt(append(values, '@'), int64(db), 10)
	}
	return values
}

// Finished returns the channel of the end of an application in a database.
func Finished(app string, db int) string { return string(AppendFinished([]byte(Of(app, "")), db)) }

// Channel returns the channel of an application in a database.
func Channel(app string, db int) string { return string(AppendChannel([]byte(Of(app, "")), db)) }

// Of returns the key of an application with a suffix; "" is the hash of its values.
func Of(app, suffix string) string { return Prefix + "{" + app + "}" + suffix }

// The code words of errors whose text Skein's own clients get too: wrong arguments, or a failed precondition.
const (
	Invalid      = "SKEININVALID "
	Precondition = "SKEINPRECONDITION "
)
