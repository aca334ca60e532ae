// Package pressure implements distributed, bounded FIFO queues of messages: the pressure protocol, version 0.1, on any
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
// A queue has one producer and one consumer at a time; others wait for their turn. On atomredis each operation is one
// command of the server; on any other Redis it is the sequence of commands in the specification. Both use the same
// keys, so clients of all languages can share a queue.
//
// Any number of goroutines may use a Queue. An operation occupies a connection of the client's pool for as long as it
// lasts, and at times a second one while it waits. When its context ends, it stops waiting within a tenth of a second
// and gives back its role. It loses nothing: it returns a message that the server hands out in that moment.
package pressure

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/redis/go-redis/v9"
)

// Options configure a handle on a queue. The zero value is ready to use.
type Options struct {
	// Prefix begins the keys of the queue. Empty means DefaultPrefix.
	Prefix string
	// ClientID is the name of this handle in Info; it must be unique. Empty means "<host>_pid<process>_<number>".
	ClientID string
	// Timeout limits each operation, which then fails with ErrTimeout. 0 means no limit but the context.
	Timeout time.Duration
	// Policy is what Create gives the queue for messages without attempts and back-off of their own (atomredis only).
	Policy Policy
	// OnlyRedisCommands uses the specification's sequences on atomredis too, not its queue commands. The operations do
	// the same.
	OnlyRedisCommands bool
}

// Queue is a handle on a queue.
type Queue struct {
	name, id string
	timeout  time.Duration
	protocol protocol
}

// protocol implements the operations on a queue. Its errors are those of this package, those of the server, and the
// cause of a context that has ended.
type protocol interface {
	create(ctx context.Context, bound int64) error
	// exists fails with ErrNoQueue if there is no queue.
	exists(ctx context.Context) error
	// put puts messages in order and returns how many are in the queue; fewer than all only with an error.
	put(ctx context.Context, messages [][]byte) (int, error)
	// get returns 1 to n messages, or an error.
	get(ctx context.Context, n int) ([][]byte, error)
	reserve(ctx context.Context, n int, d time.Duration) ([]Reservation, error)
	// settle acknowledges reservations, or returns their messages, and returns how many still existed.
	settle(ctx context.Context, acknowledge bool, ids []string) (int, error)
	close(ctx context.Context) error
	delete(ctx context.Context) error
	length(ctx context.Context) (int64, error)
	info(ctx context.Context) (*Info, error)
	// list returns the names of all queues with the prefix, in order.
	list(ctx context.Context) ([]string, error)
}

// Create makes a queue that holds at most bound messages, or any number if bound is 0. The error is ErrQueueExists if a
// queue of that name exists. The caller still owns the client.
func Create(ctx context.Context, client redis.UniversalClient, name string, bound int64, o Options) (*Queue, error) {
	q, err := newQueue(ctx, client, name, o)
	if err == nil && bound < 0 {
		err = fmt.Errorf("the bound %d is negative", bound)
	}
	if err == nil && o.Policy != (Policy{}) {
		_, err = q.commands()
	}
	if err == nil {
		err = q.protocol.create(ctx, bound)
	}
	if err != nil {
		return nil, failed(ctx, "create", name, err)
	}
	return q, nil
}

// Open returns a handle on a queue that exists; the error is ErrNoQueue if it does not. The caller still owns the
// client.
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

// Await is Open that waits until the queue exists, as long as ctx and Options.Timeout allow. It polls the server
// several times a second.
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

// The shortest and the longest pause of Await between two polls.
const (
	awaitMin = 5 * time.Millisecond
	awaitMax = 200 * time.Millisecond
)

// Delete is Queue.Delete without a handle. It also finishes an interrupted deletion, after which Open no longer finds
// the queue.
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
	// This must be the first command: go-redis detects the server's features on a client's first connection, and that
	// is not safe on a dedicated connection.
	native, err := hasCommands(ctx, client)
	if err != nil {
		return nil, err
	}
	if connections := newConnections(client); native && !o.OnlyRedisCommands {
		q.protocol = &commands{connections, name, o.Prefix, o.ClientID, o.Policy}
	} else {
		q.protocol = &sequences{connections, keysOf(o.Prefix, name), o.Prefix, o.ClientID}
	}
	return q, nil
}

// Name returns the queue's name.
func (q *Queue) Name() string { return q.name }

// ClientID returns the name of this handle, as Info shows it.
func (q *Queue) ClientID() string { return q.id }

// WithTimeout returns the same handle with another Options.Timeout.
func (q *Queue) WithTimeout(timeout time.Duration) *Queue {
	other := *q
	other.timeout = timeout
	return &other
}

// within returns a context that also ends after the timeout for operations.
func (q *Queue) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if q.timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, q.timeout, ErrTimeout)
}

// Put puts a message, which may hold any bytes, into the queue. It waits while another producer has the role and while
// the queue is full. Without an error the message is in the queue; with ErrClosed, ErrNoQueue, ErrTimeout or the cause
// of the context it is not.
func (q *Queue) Put(ctx context.Context, message []byte) error {
	_, err := q.PutAll(ctx, message)
	return err
}

// The limits of a batch: PutAll splits many messages into batches, so that no command becomes too long.
const (
	batchMessages = 1024
	batchBytes    = 4 << 20
)

// PutAll is Put for many messages, in order; messages of other producers may come in between. It returns how many, from
// the first on, are in the queue; fewer than all only with an error.
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

// Get takes the oldest message out of the queue. It waits while another consumer has the role and while the queue is
// empty. The error is ErrClosed if the queue is closed and empty. After an error the message is still in the queue.
func (q *Queue) Get(ctx context.Context) ([]byte, error) {
	messages, err := q.GetN(ctx, 1)
	if err != nil {
		return nil, err
	}
	return messages[0], nil
}

// GetN is Get for up to n messages: it waits for the first, and takes the others that are there then.
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

// Messages takes messages out of the queue until the queue is closed and empty. Leaving the loop early loses no
// message. An error, such as the end of the context, comes as the last step.
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

// Reservation is a message that a consumer has received, and that returns to the head of the queue unless it is
// acknowledged in time.
type Reservation struct {
	ID      string
	Message []byte
}

// Reserve is Get for a message that survives its consumer: it returns to the head of the queue unless Ack is called
// with the reservation's ID within d. On servers other than atomredis the error is errors.ErrUnsupported.
func (q *Queue) Reserve(ctx context.Context, d time.Duration) (Reservation, error) {
	reservations, err := q.ReserveN(ctx, 1, d)
	if err != nil {
		return Reservation{}, err
	}
	return reservations[0], nil
}

// ReserveN is Reserve for up to n messages: it waits for the first, and takes the others that are there then.
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

// Ack acknowledges reserved messages. It returns how many it has acknowledged; the others had returned to the queue
// before.
func (q *Queue) Ack(ctx context.Context, ids ...string) (int, error) {
	return q.settle(ctx, "acknowledge messages of", true, ids)
}

// Return puts reserved messages back at the head of the queue. It returns how many it has put back; the others had
// returned before.
func (q *Queue) Return(ctx context.Context, ids ...string) (int, error) {
	return q.settle(ctx, "return messages to", false, ids)
}

func (q *Queue) settle(ctx context.Context, op string, acknowledge bool, ids []string) (n int, err error) {
	if err = context.Cause(ctx); err == nil && len(ids) > 0 {
		n, err = q.protocol.settle(ctx, acknowledge, ids)
	}
	return n, failed(ctx, op, q.name, err)
}

// Close ends the queue: Put fails from then on, and Get still returns the remaining messages. Close waits while a
// producer has the role. The error is ErrClosed if the queue is closed already.
func (q *Queue) Close(ctx context.Context) error {
	return q.end(ctx, "close", q.protocol.close)
}

// Delete removes the queue and its messages. Waiting operations end with ErrNoQueue; Delete waits for running ones. If
// its context ends before that, the queue is unusable already, and a further call of Delete, with or without a handle,
// finishes the deletion.
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
	ProducerFree bool   `json:"producer_free"` // no client has the role
	ConsumerFree bool   `json:"consumer_free"`

	ProducedMessages int64 `json:"produced_messages"`
	ProducedBytes    int64 `json:"produced_bytes"`
	ConsumedMessages int64 `json:"consumed_messages"`
	ConsumedBytes    int64 `json:"consumed_bytes"`

	// The following are -1 on servers other than atomredis.

	BlockedProducers int64 `json:"blocked_producers"` // clients that wait to put
	BlockedConsumers int64 `json:"blocked_consumers"` // clients that wait to get
	Reserved         int64 `json:"reserved"`          // messages that are reserved and not acknowledged
	Redelivered      int64 `json:"redelivered"`       // messages that returned unacknowledged
	Delayed          int64 `json:"delayed"`           // messages that come due later
	Dead             int64 `json:"dead"`              // messages that have failed for good
	Schedules        int64 `json:"schedules"`         // cron expressions that put messages
}

// Info returns the state of the queue.
func (q *Queue) Info(ctx context.Context) (*Info, error) {
	info, err := q.protocol.info(ctx)
	return info, failed(ctx, "get info of", q.name, err)
}
