// Package keys has the names of the keys of pressure queues, for the server and for clients of any Redis.
package keys

// DefaultPrefix is the default prefix of the keys of queues. A colon and the name of the queue follow: that is the
// key of its messages. The other keys have a suffix.
const DefaultPrefix = "__pressure__"

// The suffixes of the keys of the specification.
const (
	Bound        = ":bound"         // largest number of messages, 0 for no limit; exists as long as the queue
	Producer     = ":producer"      // name of the last producer
	Consumer     = ":consumer"      // name of the last consumer
	ProducerFree = ":producer_free" // a list with one element while there is no producer
	ConsumerFree = ":consumer_free" // a list with one element while there is no consumer
	NotFull      = ":not_full"      // a list with one element while there is room
	Closed       = ":closed"        // a list with elements once the queue is closed
)

// The suffixes of the keys that are not in the specification. They exist only while they have something, but Settings
// stays until the queue is removed. The plus sign keeps them apart from queues and from keys of other programs.
const (
	Reserved  = ":reserved"   // hash: id of a reserved message → deadline and message
	Settings  = ":+settings"  // hash: attempts and backoff of the queue; exists if one of the following keys does
	Delayed   = ":+delayed"   // sorted set: id of a delayed message → when it comes due, in ms since 1970
	Dead      = ":+dead"      // sorted set: id of a dead message → when it died
	Held      = ":+held"      // hash: id of a delayed, dead or reserved message → its attributes, its reason, itself
	Notes     = ":+notes"     // hash: digest of a message in the list → its attributes
	Dedup     = ":+dedup"     // sorted set: key of a message that was put → until when it is refused
	Schedules = ":+schedules" // hash: name of a schedule → its next time, its expression, its message
)

// The suffixes of the counters.
const (
	ProducedMessages = ":stats:produced_messages"
	ProducedBytes    = ":stats:produced_bytes"
	ConsumedMessages = ":stats:consumed_messages"
	ConsumedBytes    = ":stats:consumed_bytes"
)

// The suffixes of the counters as the samples of the specification spell them. They are read, and removed with the
// queue.
const (
	PlainProducedMessages = ":produced_messages"
	PlainProducedBytes    = ":produced_bytes"
	PlainConsumedMessages = ":consumed_messages"
	PlainConsumedBytes    = ":consumed_bytes"
)
