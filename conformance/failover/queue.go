//go:build linux

package failover

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/atomredis/atomredis/pressure"
)

// queue is a queue of pressure that is in use through all rounds: a producer puts numbers in, a consumer takes them out
// and acknowledges them. Every number put in comes out at least once, except that a number may be missing if the
// producer does not know whether it was put.
type queue struct {
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex
	put      map[int]bool // those acknowledged by the server
	got      map[int]bool
	produced bool
	last     error // the consumer's last error, and when it happened
	lastAt   time.Time
	wrong    error
}

const (
	queueName = "frames"
	bound     = 50
)

func newQueue(ctx context.Context, g *group) (*queue, error) {
	producer, consumer := g.client(), g.client()
	if _, err := pressure.Create(ctx, producer, queueName, bound, pressure.Options{}); err != nil &&
		!errors.Is(err, pressure.ErrQueueExists) { // a client whose first reply is late repeats the request
		return nil, errors.Join(err, producer.Close(), consumer.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	q := &queue{cancel: cancel, put: map[int]bool{}, got: map[int]bool{}}
	q.running.Go(func() { q.produce(ctx, producer) })
	q.running.Go(func() { q.consume(ctx, consumer) })
	return q, nil
}

// produce puts numbers in until the context ends.
func (q *queue) produce(ctx context.Context, client redis.UniversalClient) {
	defer client.Close()
	var open *pressure.Queue
	for n := 0; ctx.Err() == nil; {
		var err error
		if open == nil {
			open, err = pressure.Open(ctx, client, queueName, pressure.Options{Timeout: time.Second})
		}
		if err == nil {
			if err = open.Put(ctx, []byte(strconv.Itoa(n))); err == nil {
				q.mu.Lock()
				q.put[n] = true
				q.mu.Unlock()
			}
			if err == nil || !errors.Is(err, context.DeadlineExceeded) {
				n++ // it may be in the queue
			}
		}
		if err != nil {
			open = nil
			time.Sleep(10 * time.Millisecond)
		}
	}
	q.mu.Lock()
	q.produced = true
	q.mu.Unlock()
}

// consume takes numbers out until the producer has ended and all acknowledged numbers have come.
func (q *queue) consume(ctx context.Context, client redis.UniversalClient) {
	defer client.Close()
	var open *pressure.Queue
	var end time.Time
	for {
		q.mu.Lock()
		missing := false
		if q.produced {
			for n := range q.put {
				missing = missing || !q.got[n]
			}
		}
		done := q.produced && !missing
		if q.produced && end.IsZero() {
			end = time.Now().Add(30 * time.Second)
		}
		q.mu.Unlock()
		if done || !end.IsZero() && time.Now().After(end) {
			return
		}
		ctx := context.Background()
		var err error
		if open == nil {
			open, err = pressure.Open(ctx, client, queueName, pressure.Options{Timeout: time.Second})
		}
		if err == nil {
			var r pressure.Reservation
			if r, err = open.Reserve(ctx, 5*time.Second); err == nil {
				q.take(string(r.Message))
				_, err = open.Ack(ctx, r.ID)
			}
		}
		if err != nil {
			q.mu.Lock()
			q.last, q.lastAt = err, time.Now()
			q.mu.Unlock()
			open = nil
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// take records a message.
func (q *queue) take(message string) {
	n, err := strconv.Atoi(message)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wrong = errors.Join(q.wrong, err)
	q.got[n] = true
}

func (q *queue) failed() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.wrong
}

// end ends the queue, and returns the number of acknowledged messages that came.
func (q *queue) end() (int, error) {
	q.cancel()
	q.running.Wait()
	for n := range q.put {
		if !q.got[n] {
			q.wrong = errors.Join(q.wrong, fmt.Errorf("message %d was acknowledged and never came", n))
		}
	}
	if q.wrong != nil {
		q.wrong = fmt.Errorf("%w; the consumer's last error, %v ago: %v", q.wrong, time.Since(q.lastAt).Round(time.Millisecond), q.last)
	}
	return len(q.put), q.wrong
}
