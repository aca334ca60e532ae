package atom

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"
)

// QueueOptions configure a queue. All users of a queue should have the same options.
type QueueOptions struct {
	// MaxLen is how many items a queue holds; a full queue drops items for new ones. 0 means DefaultQueueMaxLen.
	MaxLen int64
	// Maximum makes Get take the item with the largest priority first, not the smallest.
	Maximum bool
	// Serialization is that of the items. Empty means Pickle, which Python elements need.
	Serialization string
}

// Item is an item of a queue: a value and its priority.
type Item struct {
	Value    Value
	Priority float64
}

// PriorityQueue is a queue on the server, for any number of producers and consumers. It is a sorted set, so it holds
// each value once: putting a value again changes its priority.
type PriorityQueue struct {
	element *Element
	key     string // key of the sorted set
	o       QueueOptions
	// dropFirst makes a full queue drop the items that Get would take first, not last.
	dropFirst bool
}

// PriorityQueue returns a handle on the queue of that name. Existing items stay.
func (e *Element) PriorityQueue(name string, o QueueOptions) *PriorityQueue {
	if o.MaxLen <= 0 {
		o.MaxLen = DefaultQueueMaxLen
	}
	if o.Serialization == "" {
		o.Serialization = Pickle
	}
	return &PriorityQueue{element: e, key: "atom-prio-queue-" + name, o: o}
}

// Put adds an item. It returns the new number of items, and the items that a full queue has dropped: those with the
// least priority.
func (q *PriorityQueue) Put(ctx context.Context, value any, priority float64) (size int64, dropped []Item, err error) {
	op := fmt.Sprintf("put into queue %q", q.key)
	if math.IsNaN(priority) {
		return 0, nil, misuse(op, "the priority is not a number")
	}
	data, _, err := q.element.codecs.encode(op, q.o.Serialization, value)
	if err != nil {
		return 0, nil, err
	}
	size, err = q.element.SortedSetAdd(ctx, q.key, string(data), priority)
	for err == nil && size > q.o.MaxLen {
		var members []Member
		members, size, err = q.element.popAndCount(ctx, q.key, q.o.Maximum == q.dropFirst)
		dropped = append(dropped, q.items(members)...)
	}
	return size, dropped, err
}

// Get takes the item with the highest priority. It waits for an item up to limit; 0 does not wait, and a negative limit
// waits until the context ends. The error is ErrNotFound if no item came.
func (q *PriorityQueue) Get(ctx context.Context, limit time.Duration) (Item, error) {
	member, err := q.element.SortedSetPopWait(ctx, q.key, q.o.Maximum, limit)
	if err != nil {
		return Item{}, err
	}
	return q.item(member), nil
}

// GetN takes up to n items, those with the highest priority first.
func (q *PriorityQueue) GetN(ctx context.Context, n int64) ([]Item, error) {
	members, err := q.element.SortedSetPopN(ctx, q.key, n, q.o.Maximum)
	return q.items(members), err
}

// PeekN returns up to n items, those with the highest priority first, and leaves them in the queue.
func (q *PriorityQueue) PeekN(ctx context.Context, n int64) ([]Item, error) {
	if n <= 0 {
		return nil, nil
	}
	members, err := q.element.SortedSetRange(ctx, q.key, 0, n-1, q.o.Maximum)
	return q.items(members), err
}

// Size returns the number of items.
func (q *PriorityQueue) Size(ctx context.Context) (int64, error) {
	return q.element.SortedSetSize(ctx, q.key)
}

// Delete removes the queue with its items. The queue can be used again after that.
func (q *PriorityQueue) Delete(ctx context.Context) error {
	return q.element.SortedSetDelete(ctx, q.key)
}

func (q *PriorityQueue) item(m Member) Item {
	return Item{q.element.codecs.value([]byte(m.Name), "", Decoding{Serialization: q.o.Serialization}), m.Value}
}

func (q *PriorityQueue) items(members []Member) []Item {
	items := make([]Item, len(members))
	for i, m := range members {
		items[i] = q.item(m)
	}
	return items
}

// FIFOQueue is a PriorityQueue that uses the time of Put as the priority. A full queue drops its oldest items.
type FIFOQueue struct{ PriorityQueue }

// FIFOQueue returns a handle on the queue of that name. Existing items stay.
func (e *Element) FIFOQueue(name string, o QueueOptions) *FIFOQueue {
	q := &FIFOQueue{*e.PriorityQueue(name, o)}
	q.dropFirst = true
	return q
}

// Put adds an item. It returns the new number of items, and the items that a full queue has dropped.
func (q *FIFOQueue) Put(ctx context.Context, value any) (size int64, dropped []Item, err error) {
	return q.PutAt(ctx, value, fifoClock.next())
}

// PutAt is Put with a time in seconds from the caller, for items that are put out of order.
func (q *FIFOQueue) PutAt(ctx context.Context, value any, seconds float64) (size int64, dropped []Item, err error) {
	return q.PriorityQueue.Put(ctx, value, seconds)
}

// fifoClock gives each Put of this process a different time, even within one tick.
var fifoClock risingClock

type risingClock struct {
	mu   sync.Mutex
	last float64 // protected by mu
}

// next returns the time in seconds, always greater than the last one.
func (c *risingClock) next() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(monotonicSeconds(), math.Nextafter(c.last, math.Inf(1)))
	return c.last
}
