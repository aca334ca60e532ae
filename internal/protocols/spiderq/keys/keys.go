// Package keys has the names of the keys of spiderq queues.
package keys

// Prefix is the prefix of the keys of all queues. The name of the queue follows in braces, so that a cluster has all
// keys of a queue in one slot: "spiderq:{name}" is the hash of its values.
const Prefix = "spiderq:"

// The suffixes of the other keys of a queue, which exist only while they are not empty.
const (
	Queue  = ":queue"  // a sorted set of the keys that can be lent, by priority: the smallest is lent first
	Lent   = ":lent"   // a sorted set of the keys that are lent, by deadline in ms since 1970
	Loans  = ":loans"  // a hash from the keys that are lent to their lend keys
	Boosts = ":boosts" // a hash from keys to their boosts, other than 0
	Serial = ":serial" // the number of the last change of the queue; 1 if it is missing
)
