// Package pressure has distributed, bounded FIFO queues of messages: the pressure protocol, version 0.1, over any
// Redis.
//
//	queue, err := pressure.Create(ctx, client, "frames", 10, pressure.Options{})
//	if err != nil {
//		return err
//	}
//	err = queue.Put(ctx, frame) // waits while there are ten
//
// Elsewhere:
//
//	queue, err := pressure.Open(ctx, client, "frames", pressure.Options{})
//	for frame, err := range queue.Messages(ctx) { // until the queue is closed and empty
//
// A queue has one producer and one consumer at a time; others wait for their turn. On atomredis the operations are
// commands of the server; on any other Redis they are the sequences of commands of the specification. Both work on
// the same keys, so all kinds of clients, in whatever language, can share a queue.
//
// A Queue may be used by any number of goroutines. An operation occupies a connection of the client's pool for as
// long as it lasts, and now and then a second one when it waits. When its context ends it stops waiting within a
// tenth of a second, gives back its role, and has lost nothing: what the server has handed out in that moment is
// returned.
package pressure

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/redis/go-redis/v9"
)

// Options say how a queue is used. The zero value is ready to use.
type Options struct {
	// Prefix is what the keys of the queue begin with. Empty means DefaultPrefix.
	Prefix string
	// ClientID is how this handle is known to others who look at the queue; it must be unique. Empty means
	// "<host>_pid<process>_<number>".
	ClientID string
	// Timeout is how long an operation waits at most, after which it fails with ErrTimeout. 0 leaves that to the context.
	Timeout time.Duration
	// OnlyRedisCommands leaves the commands unused that atomredis has for queues: the sequences of the specification are
	// used there as well. What the operations do is the same.
	OnlyRedisCommands bool
}

// Queue is a handle on a queue.
type Queue struct {
	name, id string
	timeout  time.Duration
	protocol protocol
}

// protocol is a way to do the operations on a queue. Its errors are those of this package, those of the server, and
// the cause of a context that has ended.
type protocol interface {
	create(ctx context.Context, bound int64) error
	// exists fails with ErrNoQueue if there is no queue.
	exists(ctx context.Context) error
	// put returns how many messages, the first ones, are in the queue; less than all only with an error.
	put(ctx context.Context, messages [][]byte) (int, error)
	// get returns 1 to n messages, or an error.
	get(ctx context.Context, n int) ([][]byte, error)
	reserve(ctx context.Context, n int, d time.Duration) ([]Reservation, error)
	// settle acknowledges reservations, or returns their messages, and says how many there were.
	settle(ctx context.Context, acknowledge bool, ids []string) (int, error)
	close(ctx context.Context) error
	delete(ctx context.Context) error
	length(ctx context.Context) (int64, error)
	info(ctx context.Context) (*Info, error)
	// list returns the names of all queues with the prefix, in order.
	list(ctx context.Context) ([]string, error)
}

// Create makes a queue that holds at most bound messages, or any number if it is 0. The error is ErrQueueExists if
// there is one of that name. The client stays the caller's.
func Create(ctx context.Context, client redis.UniversalClient, name string, bound int64, o Options) (*Queue, error) {
	q, err := newQueue(ctx, client, name, o)
	if err == nil && bound < 0 {
		err = fmt.Errorf("the bound %d is negative", bound)
	}
	if err == nil {
		err = q.protocol.create(ctx, bound)
	}
	if err != nil {
		return nil, failed(ctx, "create", name, err)
	}
	return q, nil
}

// Open returns a handle on a queue that exists; the error is ErrNoQueue if it does not. The client stays the caller's.
func Open(ctx context.Context, client redis.UniversalClient, name string, o Options) (*Queue, error) {
	q, err := newQueue(ctx, client, name, o)
	if err == nil {
		err = q.protocol.exists(ctx)
	}
	if err != nil {
		return nil, failed(ctx, "open", name, err)
	}
	return q, nil
}

// Await is Open that waits until there is such a queue, as long as ctx and Options.Timeout allow. Nothing tells of a
// new queue, so it looks for it several times a second.
func Await(ctx context.Context, client redis.UniversalClient, name string, o Options) (*Queue, error) {
	q, err := newQueue(ctx, client, name, o)
	if err != nil {
		return nil, failed(ctx, "open", name, err)
	}
	waiting, cancel := q.within(ctx)
	defer cancel()
	for pause := awaitMin; ; pause = min(2*pause, awaitMax) {
		if err = q.protocol.exists(waiting); !errors.Is(err, ErrNoQueue) {
			break
		}
		select {
		case <-time.After(pause):
		case <-waiting.Done():
			return nil, failed(waiting, "open", name, waiting.Err())
		}
	}
	if err != nil {
		return nil, failed(waiting, "open", name, err)
	}
	return q, nil
}

// How long Await pauses between two looks.
const (
	awaitMin = 5 * time.Millisecond
	awaitMax = 200 * time.Millisecond
)

// Delete is Queue.Delete without a handle: it also goes on with a deletion that was not finished, for which Open
// finds no queue.
func Delete(ctx context.Context, client redis.UniversalClient, name string, o Options) error {
	q, err := newQueue(ctx, client, name, o)
	if err != nil {
		return failed(ctx, "delete", name, err)
	}
	return q.Delete(ctx)
}

// List returns the names of all queues with the prefix of the options, in order.
func List(ctx context.Context, client redis.UniversalClient, o Options) ([]string, error) {
	q, err := newQueue(ctx, client, "", o)
	if err != nil {
		return nil, failed(ctx, "list", o.Prefix, err)
	}
	names, err := q.protocol.list(ctx)
	return names, failed(ctx, "list", o.Prefix, err)
}

func newQueue(ctx context.Context, client redis.UniversalClient, name string, o Options) (*Queue, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if o.Prefix == "" {
		o.Prefix = DefaultPrefix
	}
	if o.ClientID == "" {
		o.ClientID = newClientID()
	}
	q := &Queue{name: name, id: o.ClientID, timeout: o.Timeout}
	// This is also the first command: go-redis settles what the server can do with the first connection of a client, and
	// does not do so safely with connections that are given away.
	native, err := hasCommands(ctx, client)
	if err != nil {
		return nil, err
	}
	if connections := newConnections(client); native && !o.OnlyRedisCommands {
		q.protocol = &commands{connections, name, o.Prefix, o.ClientID}
	} else {
		q.protocol = &sequences{connections, keysOf(o.Prefix, name), o.Prefix, o.ClientID}
	}
	return q, nil
}

// Name returns the queue's name.
func (q *Queue) Name() string { return q.name }

// ClientID returns how this handle is known to others who look at the queue.
func (q *Queue) ClientID() string { return q.id }

// WithTimeout returns the same handle with another Options.Timeout.
func (q *Queue) WithTimeout(timeout time.Duration) *Queue {
	other := *q
	other.timeout = timeout
	return &other
}

// within returns a context that also ends with the time that operations may take.
func (q *Queue) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if q.timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, q.timeout, ErrTimeout)
}

// Put puts a message into the queue. It waits while another producer is at it and while the queue is full. Without an
// error the message is in the queue; with ErrClosed, ErrNoQueue, ErrTimeout or the cause of the context it is not.
// The message may hold any bytes.
func (q *Queue) Put(ctx context.Context, message []byte) error {
	_, err := q.PutAll(ctx, message)
	return err
}

// A batch is what is put at once of many messages, so that no command becomes too long.
const (
	batchMessages = 1024
	batchBytes    = 4 << 20
)

// PutAll is Put for many messages, which come in their order, though those of other producers may come in between. It
// returns how many of them, the first ones, are in the queue; less than all only with an error.
func (q *Queue) PutAll(ctx context.Context, messages ...[]byte) (n int, err error) {
	ctx, cancel := q.within(ctx)
	defer cancel()
	for err == nil && n < len(messages) {
		last, bytes := n, 0
		for last < len(messages) && last-n < batchMessages && (bytes < batchBytes || last == n) {
			bytes += len(messages[last])
			last++
		}
		if err = context.Cause(ctx); err == nil {
			var put int
			put, err = q.protocol.put(ctx, messages[n:last])
			n += put
		}
	}
	return n, failed(ctx, "put into", q.name, err)
}

// Get takes the oldest message out of the queue. It waits while another consumer is at it and while there is none.
// The error is ErrClosed if the queue is closed and empty. Without an error the message is the caller's alone;
// otherwise it is still in the queue.
func (q *Queue) Get(ctx context.Context) ([]byte, error) {
	messages, err := q.GetN(ctx, 1)
	if err != nil {
		return nil, err
	}
	return messages[0], nil
}

// GetN is Get for up to n messages: it waits for the first, and takes what is there then.
func (q *Queue) GetN(ctx context.Context, n int) (messages [][]byte, err error) {
	err = q.take(ctx, "get from", n, func(ctx context.Context) (err error) {
		messages, err = q.protocol.get(ctx, n)
		return err
	})
	return messages, err
}

// take calls get, which takes up to n messages.
func (q *Queue) take(ctx context.Context, op string, n int, get func(ctx context.Context) error) error {
	ctx, cancel := q.within(ctx)
	defer cancel()
	err := context.Cause(ctx)
	if n < 1 {
		err = fmt.Errorf("%d messages", n)
	}
	if err == nil {
		err = get(ctx)
	}
	return failed(ctx, op, q.name, err)
}

// Messages takes messages out of the queue until it is closed and empty, or until the loop over them is left, which
// loses none. An error, such as the end of the context, is the last thing it yields.
func (q *Queue) Messages(ctx context.Context) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for {
			message, err := q.Get(ctx)
			if errors.Is(err, ErrClosed) || !yield(message, err) || err != nil {
				return
			}
		}
	}
}

// Reservation is a message that has been handed out, and comes back to the head of the queue unless it is
// acknowledged in time.
type Reservation struct {
	ID      string
	Message []byte
}

// Reserve is Get for a message that is not lost with its consumer: it returns to the head of the queue unless Ack is
// called with the reservation's ID within d. Servers other than atomredis have no reservations; the error is then
// errors.ErrUnsupported.
func (q *Queue) Reserve(ctx context.Context, d time.Duration) (Reservation, error) {
	reservations, err := q.ReserveN(ctx, 1, d)
	if err != nil {
		return Reservation{}, err
	}
	return reservations[0], nil
}

// ReserveN is Reserve for up to n messages: it waits for the first, and takes what is there then.
func (q *Queue) ReserveN(ctx context.Context, n int, d time.Duration) (reservations []Reservation, err error) {
	err = q.take(ctx, "reserve from", n, func(ctx context.Context) (err error) {
		if d <= 0 {
			return fmt.Errorf("a reservation for %s", d)
		}
		reservations, err = q.protocol.reserve(ctx, n, d)
		return err
	})
	return reservations, err
}

// Ack says that reserved messages have been dealt with. It returns for how many that was still possible: the others
// have gone back.
func (q *Queue) Ack(ctx context.Context, ids ...string) (int, error) {
	return q.settle(ctx, "acknowledge messages of", true, ids)
}

// Return puts reserved messages back at the head of the queue. It returns how many that were: the others had gone
// back already.
func (q *Queue) Return(ctx context.Context, ids ...string) (int, error) {
	return q.settle(ctx, "return messages to", false, ids)
}

func (q *Queue) settle(ctx context.Context, op string, acknowledge bool, ids []string) (n int, err error) {
	if err = context.Cause(ctx); err == nil && len(ids) > 0 {
		n, err = q.protocol.settle(ctx, acknowledge, ids)
	}
	return n, failed(ctx, op, q.name, err)
}

// Close says that no more messages will come. It waits while a producer is at the queue. What is in the queue can
// still be got. A queue is closed once: the error of a second time is ErrClosed.
func (q *Queue) Close(ctx context.Context) error {
	return q.end(ctx, "close", q.protocol.close)
}

// Delete removes the queue with all that is in it. Operations that wait end with ErrNoQueue; it waits for those that
// are at work. If its context ends before that, nobody can use the queue any more, and Delete, here or without a
// handle, can be called again for the rest.
func (q *Queue) Delete(ctx context.Context) error {
	return q.end(ctx, "delete", q.protocol.delete)
}

func (q *Queue) end(ctx context.Context, op string, do func(context.Context) error) error {
	ctx, cancel := q.within(ctx)
	defer cancel()
	err := context.Cause(ctx)
	if err == nil {
		err = do(ctx)
	}
	return failed(ctx, op, q.name, err)
}

// Len returns how many messages are in the queue.
func (q *Queue) Len(ctx context.Context) (int64, error) {
	n, err := q.protocol.length(ctx)
	return n, failed(ctx, "get the length of", q.name, err)
}

// Info describes a queue at one instant.
type Info struct {
	Length int64 `json:"length"` // messages in the queue
	Bound  int64 `json:"bound"`  // 0 means none
	Closed bool  `json:"closed"`
	// Producer and Consumer are the clients that have, or had last, the role; empty if there were none.
	Producer     string `json:"producer"`
	Consumer     string `json:"consumer"`
	ProducerFree bool   `json:"producer_free"` // nobody has the role
	ConsumerFree bool   `json:"consumer_free"`

	ProducedMessages int64 `json:"produced_messages"`
	ProducedBytes    int64 `json:"produced_bytes"`
	ConsumedMessages int64 `json:"consumed_messages"`
	ConsumedBytes    int64 `json:"consumed_bytes"`

	// Known to atomredis only; -1 with another server.

	BlockedProducers int64 `json:"blocked_producers"` // clients that wait to put
	BlockedConsumers int64 `json:"blocked_consumers"` // clients that wait to get
	Reserved         int64 `json:"reserved"`          // messages that are handed out and not acknowledged
	Redelivered      int64 `json:"redelivered"`       // messages that have come back because they were not acknowledged
}

// Info returns what is known of the queue.
func (q *Queue) Info(ctx context.Context) (*Info, error) {
	info, err := q.protocol.info(ctx)
	return info, failed(ctx, "get info of", q.name, err)
}
