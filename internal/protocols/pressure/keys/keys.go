// Package keys has the names of the keys of pressure queues, for the server and for clients of any Redis.
package keys

// DefaultPrefix is what the keys of all queues begin with unless told otherwise. The name of a queue follows, behind
// a colon: that is the key of its messages. The others have a suffix.
const DefaultPrefix = "__pressure__"

// The suffixes of the keys of the specification.
const (
	Bound        = ":bound"         // how many messages fit in, 0 for any number; exists as long as the queue does
	Producer     = ":producer"      // who was the producer last
	Consumer     = ":consumer"      // who was the consumer last
	ProducerFree = ":producer_free" // a list with one element while there is no producer
	ConsumerFree = ":consumer_free" // a list with one element while there is no consumer
	NotFull      = ":not_full"      // a list with one element while there is room
	Closed       = ":closed"        // a list with elements once the queue is closed
)

// Reserved is the suffix of a hash of messages that were handed out for some time; it is not in the specification.
const Reserved = ":reserved"

// The suffixes of the counters.
const (
	ProducedMessages = ":stats:produced_messages"
	ProducedBytes    = ":stats:produced_bytes"
	ConsumedMessages = ":stats:consumed_messages"
	ConsumedBytes    = ":stats:consumed_bytes"
)

// The suffixes of the counters as the samples of the specification spell them. They are read, and go with the queue.
const (
	PlainProducedMessages = ":produced_messages"
	PlainProducedBytes    = ":produced_bytes"
	PlainConsumedMessages = ":consumed_messages"
	PlainConsumedBytes    = ":consumed_bytes"
)
