package pressure

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/atomredis/atomredis/internal/protocols/pressure/keys"
)

// DefaultPrefix begins the keys of all queues unless Options.Prefix is set.
const DefaultPrefix = keys.DefaultPrefix

// queueKeys are the names of the keys that make up a queue: the twelve of the specification, and the other spelling
// of four of them.
type queueKeys struct {
	queue string // list of the messages, the newest first
	// string: how many messages the queue holds, 0 for no limit; exists as long as the queue does
	bound                      string
	producer, consumer         string // strings: the client that has, or last had, the role
	producerFree, consumerFree string // lists: one element while no client has the role
	notFull                    string // list: one element while a message may be put
	closed                     string // list: elements once the queue is closed
	stats                      [statCount]string
	// sampleStats are the counters in the spelling of the specification's sample commands. This package reads them, and
	// deletes them with the queue.
	sampleStats [statCount]string
}

// The counters of a queue.
const (
	producedMessages = iota
	producedBytes
	consumedMessages
	consumedBytes
	statCount
)

func keysOf(prefix, name string) queueKeys {
	base := prefix + ":" + name
	return queueKeys{
		queue: base, bound: base + keys.Bound, producer: base + keys.Producer, consumer: base + keys.Consumer,
		producerFree: base + keys.ProducerFree, consumerFree: base + keys.ConsumerFree,
		notFull: base + keys.NotFull, closed: base + keys.Closed,
		stats: [statCount]string{
			base + keys.ProducedMessages, base + keys.ProducedBytes, base + keys.ConsumedMessages, base + keys.ConsumedBytes,
		},
		sampleStats: [statCount]string{
			base + keys.PlainProducedMessages, base + keys.PlainProducedBytes,
			base + keys.PlainConsumedMessages, base + keys.PlainConsumedBytes,
		},
	}
}

// rest are the keys that a queue can have beside :bound.
func (k *queueKeys) rest() []string {
	rest := []string{k.queue, k.producer, k.consumer, k.producerFree, k.consumerFree, k.notFull, k.closed}
	return append(append(rest, k.stats[:]...), k.sampleStats[:]...)
}

// globQuoter escapes a name for use in a pattern of SCAN.
var globQuoter = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// handles numbers the handles of this process, so that their client names differ.
var handles atomic.Int64

// newClientID returns a unique name with the host and the process of a queue's user.
func newClientID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s_pid%d_%d", host, os.Getpid(), handles.Add(1))
}
