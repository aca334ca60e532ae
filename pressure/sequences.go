package pressure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// sequences implements operations with the command sequences of the specification. Where their order allows it, steps
// without a wait between them form one transaction, which saves round trips and hides intermediate states.
//
// What must stay true: a client that pops the element of a role's list pushes it back however the operation ends. A
// client that pops the element of :not_full either puts a message or pushes the element back. Only a broken connection
// prevents that.
type sequences struct {
	connections
	queueKeys
	prefix, id string
}

// marker is the value of elements whose presence alone counts.
const marker = "0"

// role is the role of producer or consumer.
type role struct {
	holder string // key with the name of the client that has it
	free   string // key of the list with one element while no client has it
}

func (q *sequences) producerRole() role { return role{q.producer, q.producerFree} }
func (q *sequences) consumerRole() role { return role{q.consumer, q.consumerFree} }

// create makes all keys in one step, so that no client and no failure meets a queue without roles. It removes the
// remains of an interrupted deletion.
func (q *sequences) create(ctx context.Context, bound int64) error {
	existed, err := q.ifBound(ctx, false, func(ctx context.Context, tx redis.Pipeliner) {
		tx.SetNX(ctx, q.bound, bound, 0)
		tx.Del(ctx, q.rest()...)
		tx.LPush(ctx, q.producerFree, marker)
		tx.LPush(ctx, q.consumerFree, marker)
		tx.LPush(ctx, q.notFull, marker)
	})
	if err == nil && existed {
		err = ErrQueueExists
	}
	return err
}

// ifBound runs a transaction if the queue has a bound, or if it has none, as wanted. It reports whether it had one.
func (q *sequences) ifBound(ctx context.Context, want bool,
	build func(ctx context.Context, tx redis.Pipeliner)) (had bool, err error) {
	for {
		err := q.client.Watch(ctx, func(watch *redis.Tx) error {
			n, err := watch.Exists(ctx, q.bound).Result()
			if had = n > 0; err != nil || had != want {
				return err
			}
			return run(watch.TxPipelined, ctx, build)
		}, q.bound)
		if !errors.Is(err, redis.TxFailedErr) { // otherwise another client has just made or deleted the queue
			return had, err
		}
	}
}

func (q *sequences) exists(ctx context.Context) error {
	n, err := q.client.Exists(ctx, q.bound).Result()
	if err == nil && n == 0 {
		err = ErrNoQueue
	}
	return err
}

// stillThere is a check that ends waits for a deleted queue. It ignores errors: the wait itself notices a server that
// does not answer.
func (q *sequences) stillThere(ctx context.Context, c commander) error {
	if n, err := c.Exists(ctx, q.bound).Result(); err == nil && n == 0 {
		return ErrNoQueue
	}
	return nil
}

// take takes a role, and waits while another client has it. It fails with ErrNoQueue if there is no queue.
func (q *sequences) take(ctx context.Context, c *conn, r role) error {
	var bound *redis.IntCmd
	var free *redis.StringCmd
	err := c.transaction(func(ctx context.Context, tx redis.Pipeliner) {
		bound = tx.Exists(ctx, q.bound)
		free = tx.RPop(ctx, r.free)
	})
	taken := free.Err() == nil
	switch {
	case err != nil:
		return err
	case bound.Val() == 0 && taken: // a Delete is waiting for it
		return errors.Join(ErrNoQueue, q.giveBack(c, r))
	case bound.Val() == 0:
		return ErrNoQueue
	case taken:
		return nil
	}
	_, _, err = c.pop(ctx, q.stillThere, r.free)
	return err
}

// giveBack gives a role back.
func (q *sequences) giveBack(c *conn, r role) error {
	return c.LPush(c.context(), r.free, marker).Err()
}

// pop waits for an element of the first list that has one, and takes it.
func (c *conn) pop(ctx context.Context, check func(context.Context, commander) error, lists ...string) (list,
	value string, err error) {
	err = c.wait(ctx, check, func(block time.Duration) (bool, error) {
		args := []any{"brpop"}
		for _, key := range lists {
			args = append(args, key)
		}
		args = append(args, strconv.FormatFloat(block.Seconds(), 'f', 3, 64)) // BRPop of go-redis only takes whole seconds
		cmd := redis.NewStringSliceCmd(c.ctx, args...)
		if err := c.Process(c.context(), cmd); err != nil {
			return false, err
		}
		list, value = cmd.Val()[0], cmd.Val()[1]
		return true, nil
	})
	return list, value, err
}

// setNotFull leaves exactly one element in :not_full.
func (q *sequences) setNotFull(ctx context.Context, tx redis.Pipeliner) {
	tx.LPush(ctx, q.notFull, marker)
	tx.LTrim(ctx, q.notFull, 0, 0)
}

// parseBound reads the value of :bound. There is no queue without one.
func parseBound(cmd *redis.StringCmd) (int64, error) {
	text, err := cmd.Result()
	if errors.Is(err, redis.Nil) {
		return 0, ErrNoQueue
	}
	if err != nil {
		return 0, err
	}
	bound, err := strconv.ParseInt(text, 10, 64)
	if err != nil || bound < 0 {
		return 0, fmt.Errorf("the queue's bound is %q", text)
	}
	return bound, nil
}

func (q *sequences) put(ctx context.Context, messages [][]byte) (n int, err error) {
	c := q.begin(ctx)
	defer c.end()
	if err := q.take(ctx, c, q.producerRole()); err != nil {
		return 0, err
	}
	for {
		room, err := q.room(ctx, c, n == 0)
		if err != nil {
			return n, errors.Join(err, q.giveBack(c, q.producerRole()))
		}
		k := min(room, len(messages)-n)
		last := n+k == len(messages)
		pushed, givenBack, err := q.push(c, messages[n:n+k], k < room, last)
		if pushed {
			n += k
		}
		if err != nil && !givenBack {
			err = errors.Join(err, q.giveBack(c, q.producerRole()))
		}
		if err != nil || last {
			return n, err
		}
	}
}

// room waits, as the producer, until the queue has room, and takes the element of :not_full. It returns how many
// messages fit. The room cannot shrink before they are put, because there is no other producer.
func (q *sequences) room(ctx context.Context, c *conn, first bool) (int, error) {
	for waited := false; ; waited = true {
		var boundText, popped *redis.StringCmd
		var closed, length *redis.IntCmd
		err := c.transaction(func(ctx context.Context, tx redis.Pipeliner) {
			if first && !waited {
				tx.Set(ctx, q.producer, q.id, 0)
			}
			boundText = tx.Get(ctx, q.bound)
			closed = tx.Exists(ctx, q.closed)
			popped = tx.RPop(ctx, q.notFull)
			length = tx.LLen(ctx, q.queue)
		})
		if err != nil {
			return 0, err
		}
		bound, err := parseBound(boundText)
		mayPut := waited || popped.Err() == nil
		switch {
		case err != nil:
			return 0, err // a Delete is waiting for us, and removes :not_full
		case closed.Val() > 0:
			if mayPut {
				err = c.transaction(q.setNotFull)
			}
			return 0, errors.Join(ErrClosed, err)
		case bound == 0:
			return math.MaxInt, nil // :not_full never matters
		case mayPut && length.Val() < bound:
			return int(min(bound-length.Val(), math.MaxInt)), nil
		}
		// A consumer that pushes to :not_full long after it took its message can leave an element although the queue is
		// full. That element is dropped: the consumer of the next message pushes another.
		if _, _, err := c.pop(ctx, q.stillThere, q.notFull); err != nil {
			return 0, err
		}
	}
}

// push puts messages for which there is room, and with the last ones gives the role back.
func (q *sequences) push(c *conn, messages [][]byte, roomLeft, last bool) (pushed, givenBack bool, err error) {
	values, bytes := make([]any, len(messages)), 0
	for i, m := range messages {
		values[i] = m
		bytes += len(m)
	}
	var push, free *redis.IntCmd
	err = c.transaction(func(ctx context.Context, tx redis.Pipeliner) {
		push = tx.LPush(ctx, q.queue, values...)
		tx.IncrBy(ctx, q.stats[producedMessages], int64(len(messages)))
		tx.IncrBy(ctx, q.stats[producedBytes], int64(bytes))
		if roomLeft {
			q.setNotFull(ctx, tx)
		}
		if last {
			free = tx.LPush(ctx, q.producerFree, marker)
		}
	})
	return push.Err() == nil, last && free.Err() == nil, err
}

func (q *sequences) get(ctx context.Context, n int) ([][]byte, error) {
	c := q.begin(ctx)
	defer c.end()
	if err := q.take(ctx, c, q.consumerRole()); err != nil {
		return nil, err
	}
	messages, madeRoom, err := q.popMessages(ctx, c, n)
	if err != nil {
		return nil, errors.Join(err, q.giveBack(c, q.consumerRole()))
	}
	bytes, result := 0, make([][]byte, len(messages))
	for i, m := range messages {
		bytes += len(m)
		result[i] = []byte(m)
	}
	var free *redis.IntCmd
	// The messages are out of the queue, so a failure here must not lose them. If it lasts, the next operation reports
	// it.
	if err := c.transaction(func(ctx context.Context, tx redis.Pipeliner) {
		if !madeRoom {
			q.setNotFull(ctx, tx)
		}
		tx.IncrBy(ctx, q.stats[consumedMessages], int64(len(messages)))
		tx.IncrBy(ctx, q.stats[consumedBytes], int64(bytes))
		free = tx.LPush(ctx, q.consumerFree, marker)
	}); err != nil && free.Err() != nil {
		_ = q.giveBack(c, q.consumerRole())
	}
	return result, nil
}

// popMessages takes, as the consumer, up to n messages out of the queue, and waits for the first. It reports whether
// it has pushed to :not_full as well.
func (q *sequences) popMessages(ctx context.Context, c *conn, n int) (messages []string, madeRoom bool, err error) {
	var bound, closed *redis.IntCmd
	var first *redis.StringCmd
	var more *redis.StringSliceCmd
	err = c.transaction(func(ctx context.Context, tx redis.Pipeliner) {
		tx.Set(ctx, q.consumer, q.id, 0)
		bound, closed = tx.Exists(ctx, q.bound), tx.Exists(ctx, q.closed)
		// Taking the message and filling :not_full are one step, so that no producer finds room that does not exist.
		// The message itself does not stay in :not_full.
		first = tx.RPopLPush(ctx, q.queue, q.notFull)
		more = q.popMore(ctx, tx, n-1)
		tx.LPushX(ctx, q.notFull, marker)
		tx.LTrim(ctx, q.notFull, 0, 0)
	})
	switch {
	case first.Err() == nil:
		return collect(first.Val(), more), true, nil
	case err != nil:
		return nil, false, err
	case bound.Val() == 0:
		return nil, false, ErrNoQueue
	case closed.Val() > 0:
		return nil, false, ErrClosed
	}
	list, message, err := c.pop(ctx, q.stillThere, q.queue, q.closed)
	if err != nil {
		return nil, false, err
	}
	if list == q.closed {
		return nil, false, cmp.Or(q.stillThere(c.context(), c), ErrClosed)
	}
	if n == 1 {
		return []string{message}, false, nil
	}
	err = c.transaction(func(ctx context.Context, tx redis.Pipeliner) {
		more = q.popMore(ctx, tx, n-1)
		q.setNotFull(ctx, tx)
	})
	return collect(message, more), err == nil, nil
}

// popMore takes up to n messages without a wait. The reply has the newest first.
func (q *sequences) popMore(ctx context.Context, tx redis.Pipeliner, n int) *redis.StringSliceCmd {
	if n == 0 {
		return nil
	}
	more := tx.LRange(ctx, q.queue, int64(-n), -1)
	tx.LTrim(ctx, q.queue, 0, int64(-n-1))
	return more
}

// collect returns messages in their order.
func collect(first string, more *redis.StringSliceCmd) []string {
	messages := []string{first}
	if more != nil {
		rest := more.Val()
		slices.Reverse(rest)
		messages = append(messages, rest...)
	}
	return messages
}

// The protocol has no reservations; only the commands of atomredis do.
var errNoReservations = fmt.Errorf("reservations need the commands of atomredis: %w", errors.ErrUnsupported)

func (q *sequences) reserve(context.Context, int, time.Duration) ([]Reservation, error) {
	return nil, errNoReservations
}

func (q *sequences) settle(context.Context, bool, []string) (int, error) {
	return 0, errNoReservations
}

func (q *sequences) close(ctx context.Context) error {
	c := q.begin(ctx)
	defer c.end()
	if err := q.take(ctx, c, q.producerRole()); err != nil {
		return err
	}
	var bound, closed *redis.IntCmd
	err := c.transaction(func(ctx context.Context, tx redis.Pipeliner) {
		tx.Set(ctx, q.producer, q.id, 0)
		bound, closed = tx.Exists(ctx, q.bound), tx.Exists(ctx, q.closed)
	})
	switch {
	case err != nil:
	case bound.Val() == 0:
		err = ErrNoQueue
	case closed.Val() > 0:
		err = ErrClosed
	default:
		// Two elements, because a waiting consumer takes one.
		err = c.LPush(c.context(), q.closed, marker, marker).Err()
	}
	return errors.Join(err, q.giveBack(c, q.producerRole()))
}

// delete deletes a queue, or finishes an interrupted deletion: then :bound is gone, but :closed still exists.
func (q *sequences) delete(ctx context.Context) error {
	ours, err := q.ifBound(ctx, true, func(ctx context.Context, tx redis.Pipeliner) {
		tx.Del(ctx, q.bound)
		tx.LPush(ctx, q.notFull, marker)
		tx.LPush(ctx, q.closed, marker, marker)
	})
	if err == nil {
		err = q.unfinished(ctx, q.client)
	}
	if err == nil {
		err = q.finishDelete(ctx)
	}
	if ours && errors.Is(err, ErrNoQueue) {
		return nil // another client has finished this deletion
	}
	return err
}

// unfinished is a check that fails with ErrNoQueue if there is no deletion to finish. Like stillThere it ignores other
// errors.
func (q *sequences) unfinished(ctx context.Context, c commander) error {
	if n, err := c.Exists(ctx, q.closed).Result(); err == nil && n == 0 {
		return ErrNoQueue
	}
	return nil
}

// finishDelete waits for both roles and removes the remaining keys of a queue.
func (q *sequences) finishDelete(ctx context.Context) error {
	c := q.begin(ctx)
	defer c.end()
	if _, _, err := c.pop(ctx, q.unfinished, q.producerFree); err != nil {
		return err
	}
	if err := c.Del(c.context(), q.producer, q.producerFree).Err(); err != nil {
		return err
	}
	if _, _, err := c.pop(ctx, q.unfinished, q.consumerFree); err != nil {
		if !errors.Is(err, ErrNoQueue) { // the next attempt begins with the producer again
			err = errors.Join(err, q.giveBack(c, q.producerRole()))
		}
		return err
	}
	return c.Del(c.context(), q.rest()...).Err()
}

func (q *sequences) length(ctx context.Context) (int64, error) {
	var bound, length *redis.IntCmd
	err := run(q.client.TxPipelined, ctx, func(ctx context.Context, tx redis.Pipeliner) {
		bound, length = tx.Exists(ctx, q.bound), tx.LLen(ctx, q.queue)
	})
	if err == nil && bound.Val() == 0 {
		err = ErrNoQueue
	}
	return length.Val(), err
}

func (q *sequences) info(ctx context.Context) (*Info, error) {
	var bound, producer, consumer *redis.StringCmd
	var length, closed, producerFree, consumerFree *redis.IntCmd
	var stats *redis.SliceCmd
	err := run(q.client.TxPipelined, ctx, func(ctx context.Context, tx redis.Pipeliner) {
		bound, producer, consumer = tx.Get(ctx, q.bound), tx.Get(ctx, q.producer), tx.Get(ctx, q.consumer)
		length, closed = tx.LLen(ctx, q.queue), tx.Exists(ctx, q.closed)
		producerFree, consumerFree = tx.Exists(ctx, q.producerFree), tx.Exists(ctx, q.consumerFree)
		stats = tx.MGet(ctx, slices.Concat(q.stats[:], q.sampleStats[:])...)
	})
	if err != nil {
		return nil, err
	}
	info := &Info{
		Length: length.Val(), Closed: closed.Val() > 0, Producer: producer.Val(), Consumer: consumer.Val(),
		ProducerFree: producerFree.Val() > 0, ConsumerFree: consumerFree.Val() > 0,
		BlockedProducers: -1, BlockedConsumers: -1, Reserved: -1, Redelivered: -1, Delayed: -1, Dead: -1, Schedules: -1,
	}
	if info.Bound, err = parseBound(bound); err != nil {
		return nil, err
	}
	// The counters under both spellings are added.
	for i, value := range stats.Val() {
		text, _ := value.(string)
		n, _ := strconv.ParseInt(text, 10, 64)
		switch i % statCount {
		case producedMessages:
			info.ProducedMessages += n
		case producedBytes:
			info.ProducedBytes += n
		case consumedMessages:
			info.ConsumedMessages += n
		case consumedBytes:
			info.ConsumedBytes += n
		}
	}
	return info, nil
}

func (q *sequences) list(ctx context.Context) ([]string, error) {
	const suffix = ":bound"
	var names []string
	for cursor := uint64(0); ; {
		found, next, err := q.client.ScanType(ctx, cursor, globQuoter.Replace(q.prefix+":")+"*"+suffix, 1000,
			"string").Result()
		if err != nil {
			return nil, err
		}
		for _, key := range found {
			names = append(names, strings.TrimSuffix(strings.TrimPrefix(key, q.prefix+":"), suffix))
		}
		if cursor = next; cursor == 0 {
			slices.Sort(names)
			return slices.Compact(names), nil
		}
	}
}
