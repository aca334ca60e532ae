// Package pressure has the commands on queues of the pressure protocol. They use the keys of the protocol exactly as
// its clients do with ordinary commands, so that both kinds of clients share queues; see pressureQueue. This file
// has the table, and the commands that never wait.
//
// # Waiting in stages
//
// PUT waits for all keys that may matter. When it is its turn it takes the producer's role, as any client of the
// protocol does, and then waits for room (command.Block with Try and Cancel). A command that can do everything at
// once does not pop the element of the role.
//
// # Roles
//
// roles.go knows which client has popped an element that stands for a role or for room. It learns of pushes, pops
// and empty lists from events (engine.EventList, engine.EventEmpty); the commands on lists know nothing of it. When
// a client disconnects, its elements are given back. After a restart no holder is known: a role is given back when a
// client finds its list empty.
//
// # Times
//
// Reserved messages are in a hash until they are acknowledged, delayed ones in a sorted set until they come due, and
// schedules have their next time with them. comeDue does what is due in a queue: commands call it before they look,
// and so does a timer at the earliest time of all. The times are in the keys alone; the timer finds them again after a
// start and when a follower becomes a master. What comeDue changes is journalled as changes of ordinary keys, under
// one guard, so a message comes due once. message.go says what is kept beside a message, attempts.go what becomes of
// one that is not acknowledged.
package pressure

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
	"github.com/atomredis/atomredis/internal/version"
)

func init() { command.Register(pressureCommands) }

var pressureCommands = []*command.Command{
	{Name: "pressure.ack", Group: "pressure", Since: version.Number, Arity: -3,
		Flags: command.Write | command.Fast | command.TouchesArbitraryKeys, ACL: command.CatList,
		DerivedKeys: pressureAck.keys, Summary: "Acknowledges reserved messages",
		Syntax: "name id [id ...] [PREFIX prefix]", Complexity: "O(N), where N is the number of ids", Do: cmdPressureAck},
	{Name: "pressure.close", Group: "pressure", Since: version.Number, Arity: -2,
		Flags: command.Write | command.DenyOOM | command.Blocking | command.TouchesArbitraryKeys, ACL: command.CatList,
		DerivedKeys: pressureClose.keys, Summary: "Closes a queue for puts; waits while it has a producer",
		Syntax: "name [CLIENT id] [TIMEOUT milliseconds] [PREFIX prefix]", Complexity: "O(1)", Do: cmdPressureClose},
	{Name: "pressure.create", Group: "pressure", Since: version.Number, Arity: -2,
		Flags: command.Write | command.DenyOOM | command.Fast | command.TouchesArbitraryKeys, ACL: command.CatList,
		DerivedKeys: pressureCreate.keys, Summary: "Creates a queue",
		Syntax: "name [BOUND bound] [ATTEMPTS attempts] [BACKOFF milliseconds] [PREFIX prefix]", Complexity: "O(1)", Do: cmdPressureCreate},
	{Name: "pressure.delete", Group: "pressure", Since: version.Number, Arity: -2,
		Flags: command.Write | command.DenyOOM | command.Blocking | command.TouchesArbitraryKeys, ACL: command.CatList,
		DerivedKeys: pressureDelete.keys, Summary: "Deletes a queue; waits while it has a producer or a consumer",
		Syntax: "name [TIMEOUT milliseconds] [PREFIX prefix]", Complexity: "O(N), where N is the number of messages",
		Do: cmdPressureDelete},
	{Name: "pressure.extend", Group: "pressure", Since: version.Number, Arity: -4,
		Flags: command.Write | command.Fast | command.TouchesArbitraryKeys, ACL: command.CatList,
		DerivedKeys: pressureAck.keys, Summary: "Gives reserved messages a new time, from now on",
		Syntax: "name milliseconds id [id ...] [PREFIX prefix]", Complexity: "O(N), where N is the number of ids", Do: cmdPressureExtend},
	{Name: "pressure.fail", Group: "pressure", Since: version.Number, Arity: -4,
		Flags: command.Write | command.TouchesArbitraryKeys, ACL: command.CatList,
		DerivedKeys: pressureFail.keys, Summary: "Ends an attempt at a reserved message: it comes back, or is dead after its last one",
		Syntax:     "name id reason [DELAY milliseconds] [PREFIX prefix]",
		Complexity: "O(1)", Do: cmdPressureFail},
	{Name: "pressure.get", Group: "pressure", Since: version.Number, Arity: -2,
		Flags: command.Write | command.Blocking | command.TouchesArbitraryKeys, ACL: command.CatList,
		DerivedKeys: pressureGet.keys, Summary: "Takes messages from a queue; waits while there are none or the queue has another consumer",
		Syntax:     "name [COUNT count] [TIMEOUT milliseconds] [CLIENT id] [PREFIX prefix] [RESERVE milliseconds]",
		Complexity: "O(N), where N is the number of messages returned", Do: cmdPressureGet},
	{Name: "pressure.info", Group: "pressure", Since: version.Number, Arity: -2,
		Flags:       command.ReadOnly | command.TouchesArbitraryKeys,
		ACL:         command.CatList,
		DerivedKeys: pressureInfo.keys, Summary: "Describes a queue",
		Syntax: "name [PREFIX prefix]", Complexity: "O(N), where N is the number of clients that wait for the queue",
		Do: cmdPressureInfo},
	{Name: "pressure.len", Group: "pressure", Since: version.Number, Arity: -2,
		Flags: command.ReadOnly | command.Fast | command.TouchesArbitraryKeys, ACL: command.CatList,
		DerivedKeys: pressureInfo.keys, Summary: "Counts the messages in a queue",
		Syntax: "name [PREFIX prefix]", Complexity: "O(1)", Do: cmdPressureLen},
	{Name: "pressure.list", Group: "pressure", Since: version.Number, Arity: -1,
		Flags:   command.ReadOnly | command.TouchesArbitraryKeys | command.WholeKeyspace | command.AllKeys,
		ACL:     command.CatList,
		Summary: "Lists the names of the queues",
		Syntax:  "[PREFIX prefix]", Complexity: "O(N), where N is the number of keys in the database", Do: cmdPressureList},
	{Name: "pressure.peek", Group: "pressure", Since: version.Number, Arity: -2,
		Flags: command.ReadOnly | command.TouchesArbitraryKeys, ACL: command.CatList,
		DerivedKeys: pressurePeek.keys, Summary: "Shows messages of a queue and leaves them there",
		Syntax:     "name [STATE <READY | DELAYED | RESERVED | DEAD>] [COUNT count] [PREFIX prefix]",
		Complexity: "O(N), where N is the number of messages returned; O(M log M) with M reserved messages",
		Do:         cmdPressurePeek},
	{Name: "pressure.purge", Group: "pressure", Since: version.Number, Arity: -2,
		Flags: command.Write | command.TouchesArbitraryKeys, ACL: command.CatList,
		DerivedKeys: pressurePurge.keys, Summary: "Removes messages of a queue",
		Syntax:     "name [STATE <READY | DELAYED | DEAD>] [PREFIX prefix]",
		Complexity: "O(N), where N is the number of messages removed",
		Do:         cmdPressurePurge},
	{Name: "pressure.put", Group: "pressure", Since: version.Number, Arity: -3,
		Flags: command.Write | command.DenyOOM | command.Blocking | command.TouchesArbitraryKeys, ACL: command.CatList,
		DerivedKeys: pressurePut.keys, Summary: "Puts messages into a queue; waits while it is full or has another producer",
		Syntax: "name value [value ...] [TIMEOUT milliseconds] [CLIENT id] [PREFIX prefix] " +
			"[DELAY milliseconds | AT unix-time-milliseconds] [ATTEMPTS attempts] " +
			"[BACKOFF milliseconds] [PRIORITY priority] [DEDUP key WITHIN milliseconds]",
		Complexity: "O(N), where N is the number of messages; with priorities O(N log M) with M messages in the queue", Do: cmdPressurePut},
	{Name: "pressure.retry", Group: "pressure", Since: version.Number, Arity: -3,
		Flags: command.Write | command.DenyOOM | command.TouchesArbitraryKeys, ACL: command.CatList,
		DerivedKeys: pressureAck.keys, Summary: "Puts dead messages back into their queue",
		Syntax: "name <id [id ...] | ALL> [PREFIX prefix]", Complexity: "O(N), where N is the number of messages put back", Do: cmdPressureRetry},
	{Name: "pressure.return", Group: "pressure", Since: version.Number, Arity: -3,
		Flags: command.Write | command.Fast | command.TouchesArbitraryKeys, ACL: command.CatList,
		DerivedKeys: pressureAck.keys, Summary: "Returns reserved messages to the head of their queue",
		Syntax: "name id [id ...] [PREFIX prefix]", Complexity: "O(N), where N is the number of reserved messages",
		Do: cmdPressureReturn},
	{Name: "pressure.schedule", Group: "pressure", Since: version.Number, Arity: -5,
		Flags: command.Write | command.DenyOOM | command.TouchesArbitraryKeys, ACL: command.CatList,
		DerivedKeys: pressureAck.keys, Summary: "Puts a message into a queue at the times of a cron expression",
		Syntax: "name schedule cron message [PREFIX prefix]", Complexity: "O(1)", Do: cmdPressureSchedule},
	{Name: "pressure.schedules", Group: "pressure", Since: version.Number, Arity: -2,
		Flags: command.ReadOnly | command.TouchesArbitraryKeys, ACL: command.CatList,
		DerivedKeys: pressureInfo.keys, Summary: "Lists the schedules of a queue",
		Syntax: "name [PREFIX prefix]", Complexity: "O(N log N), where N is the number of schedules", Do: cmdPressureSchedules},
	{Name: "pressure.stats", Group: "pressure", Since: version.Number, Arity: -2,
		Flags: command.ReadOnly | command.TouchesArbitraryKeys, ACL: command.CatList,
		DerivedKeys: pressureStats.keys, Summary: "Shows what happened in a queue by minute",
		Syntax: "name [MINUTES minutes] [PREFIX prefix]", Complexity: "O(N), where N is the number of minutes", Do: cmdPressureStats},
	{Name: "pressure.unschedule", Group: "pressure", Since: version.Number, Arity: -3,
		Flags: command.Write | command.Fast | command.TouchesArbitraryKeys, ACL: command.CatList,
		DerivedKeys: pressureAck.keys, Summary: "Removes schedules of a queue",
		Syntax:     "name schedule [schedule ...] [PREFIX prefix]",
		Complexity: "O(N), where N is the number of schedules", Do: cmdPressureUnschedule},
}

// The errors of queues.
const (
	errNoQueue     command.Error = "NOQUEUE the queue does not exist"
	errQueueExists command.Error = "QUEUEEXISTS the queue exists already"
	errQueueClosed command.Error = "QUEUECLOSED the queue is closed"
	errDuplicate   command.Error = "DUPLICATE a message with this key was put a short time ago"

	errTime          command.Error = "ERR the time is no number of milliseconds, or out of range"
	errPriority      command.Error = "ERR a priority is a number from 0 to 9"
	errAttempts      command.Error = "ERR the number of attempts must be from 1 to 1000000"
	errDedup         command.Error = "ERR DEDUP and WITHIN need each other, and exactly one message"
	errMinutes       command.Error = "ERR the number of minutes must be from 1 to 60"
	errPurgeReserved command.Error = "ERR reserved messages cannot be purged"
	errCron          command.Error = "ERR invalid cron expression, or one that never comes due"
	errSchedules     command.Error = "ERR the queue has too many schedules"
)

// cmdPressureCreate creates a queue. It first removes the rest of an incomplete deletion.
func cmdPressureCreate(c *command.Ctx) {
	a, ok := readPressureArgs(c, &pressureCreate)
	if !ok {
		return
	}
	bound := []byte("0")
	if v := a.option(optBound); v != nil {
		n, ok := c.Int(v)
		if !ok {
			return
		}
		if n < 0 {
			c.Err(command.ErrNotPositive)
			return
		}
		bound = v
	}
	policy, ok := a.readAttributes(c)
	if !ok {
		return
	}
	q := queueOf(c, a)
	if !q.check() {
		return
	}
	if q.has(qBound) {
		c.Err(errQueueExists)
		return
	}
	q.removeAll()
	q.set(qBound, bound)
	if policy.limit > 0 {
		effect.HSet(c, q.keys[qSettings], settingAttempts, strconv.AppendInt(nil, policy.limit, 10))
	}
	if policy.backoff > 0 {
		effect.HSet(c, q.keys[qSettings], settingBackoff, strconv.AppendInt(nil, policy.backoff, 10))
	}
	for _, mark := range []queueKey{qProducerFree, qConsumerFree, qNotFull} {
		q.push(mark, pressureMark)
	}
	c.W.OK()
}

func cmdPressureLen(c *command.Ctx) {
	if q, ok := openQueue(c, &pressureInfo); ok {
		c.W.Int(q.length())
	}
}

// cmdPressureList finds queues by the key that each of them has.
func cmdPressureList(c *command.Ctx) {
	a, ok := readPressureArgs(c, &pressureList)
	if !ok {
		return
	}
	start, end := string(a.prefix())+":", queueSuffixes[qBound]
	var names []string
	c.G.Each(c.DB, func(e *engine.Entry) bool {
		key := e.Key()
		if e.Type() == engine.String && len(key) >= len(start)+len(end) && strings.HasPrefix(key, start) &&
			strings.HasSuffix(key, end) {
			names = append(names, key[len(start):len(key)-len(end)])
		}
		return true
	})
	slices.Sort(names)
	c.W.Array(len(names))
	for _, name := range names {
		c.W.BulkString(name)
	}
}

// cmdPressureInfo describes a queue. Clients that wait for a role, for room or for a message count as blocked,
// whatever commands they use.
func cmdPressureInfo(c *command.Ctx) {
	q, ok := openQueue(c, &pressureInfo)
	if !ok {
		return
	}
	number := func(name string, n int64) {
		c.W.BulkString(name)
		c.W.Int(n)
	}
	flag := func(name string, set bool) {
		c.W.BulkString(name)
		if set {
			c.W.Int(1)
		} else {
			c.W.Int(0)
		}
	}
	c.W.Map(18)
	number("length", q.length())
	number("bound", q.bound)
	flag("closed", q.has(qClosed))
	for _, k := range []queueKey{qProducer, qConsumer} {
		c.W.BulkString(queueSuffixes[k][1:])
		c.ReplyString(q.peek(k))
	}
	flag("producer_free", q.has(qProducerFree))
	flag("consumer_free", q.has(qConsumerFree))
	for _, k := range []queueKey{qProducedMessages, qProducedBytes, qConsumedMessages, qConsumedBytes} {
		number(strings.TrimPrefix(queueSuffixes[k], ":stats:"), q.counter(k))
	}
	number("blocked_producers", q.waiting(qProducerFree, qNotFull))
	number("blocked_consumers", q.waiting(qConsumerFree, qMessages))
	number("reserved", q.reservedCount())
	number("redelivered", q.service().reservations.redeliveredFrom(q.id()))
	number("delayed", q.delayedCount())
	number("dead", int64(effect.ZCard(c, q.keys[qDead])))
	number("schedules", int64(effect.HLen(c, q.keys[qSchedules])))
}

// counter returns the value of one of the four counters: the sum over both spellings of its key.
func (q *pressureQueue) counter(k queueKey) int64 {
	n, plain := q.integer(k), q.integer(k-qProducedMessages+qPlainProducedMessages)
	if plain > 0 {
		n = min(n, math.MaxInt64-plain)
	}
	return n + plain
}

// waiting returns how many clients wait for any of the keys.
func (q *pressureQueue) waiting(keys ...queueKey) int64 {
	all := map[*engine.Waiter]struct{}{}
	for _, k := range keys {
		q.c.G.EachWaiter(q.c.DB, q.keys[k], func(w *engine.Waiter) { all[w] = struct{}{} })
	}
	return int64(len(all))
}
