package atom

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"
)

// QueueOptions say how a queue works. All that use a queue should say the same.
type QueueOptions struct {
	// MaxLen is how many items a queue holds; what is put into a full one drives others out. 0 means DefaultQueueMaxLen.
	MaxLen int64
	// Maximum takes the item with the largest priority first. Without it, it is the one with the smallest.
	Maximum bool
	// Serialization is for the items. Empty means Pickle, which Python elements need.
	Serialization string
}

// Item is what a queue holds: a value and its priority.
type Item struct {
	Value    Value
	Priority float64
}

// PriorityQueue is a queue on the server, for any number of producers and consumers. Like the sorted set that it is
// made of it holds each value once: putting one that is there changes its priority.
type PriorityQueue struct {
	element *Element
	key     string // of the sorted set
	o       QueueOptions
	// dropFirst drops what would be taken first from a full queue, and not what would be taken last.
	dropFirst bool
}

// PriorityQueue returns the queue of that name. What is in it stays.
func (e *Element) PriorityQueue(name string, o QueueOptions) *PriorityQueue {
	if o.MaxLen <= 0 {
		o.MaxLen = DefaultQueueMaxLen
	}
	if o.Serialization == "" {
		o.Serialization = Pickle
	}
	return &PriorityQueue{element: e, key: "atom-prio-queue-" + name, o: o}
}

// Put adds an item. It returns how many there are now, and what had to go from a full queue: the items with the least
// priority.
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

// Get takes the item with the highest priority. If there is none it waits for one as long as limit says; 0 does not
// wait, and a negative time waits until the context ends. The error is ErrNotFound if there was none.
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

// Size returns how many items there are.
func (q *PriorityQueue) Size(ctx context.Context) (int64, error) {
	return q.element.SortedSetSize(ctx, q.key)
}

// Delete removes the queue with all that is in it. It can be used again after that.
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

// FIFOQueue is a PriorityQueue whose priority is the time at which an item was put into it. A full one drops its
// oldest items.
type FIFOQueue struct{ PriorityQueue }

// FIFOQueue returns the queue of that name. What is in it stays.
func (e *Element) FIFOQueue(name string, o QueueOptions) *FIFOQueue {
	q := &FIFOQueue{*e.PriorityQueue(name, o)}
	q.dropFirst = true
	return q
}

// Put adds an item. It returns how many there are now, and what had to go from a full queue.
func (q *FIFOQueue) Put(ctx context.Context, value any) (size int64, dropped []Item, err error) {
	return q.PutAt(ctx, value, fifoClock.next())
}

// PutAt is Put with a time of the caller's, in seconds, for items that do not come in the order in which they belong.
func (q *FIFOQueue) PutAt(ctx context.Context, value any, seconds float64) (size int64, dropped []Item, err error) {
	return q.PriorityQueue.Put(ctx, value, seconds)
}

// fifoClock keeps the items of this process apart that are put within one tick.
var fifoClock risingClock

type risingClock struct {
	mu   sync.Mutex
	last float64 // protected by mu
}

// next returns the time in seconds, and always more than before.
func (c *risingClock) next() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(monotonicSeconds(), math.Nextafter(c.last, math.Inf(1)))
	return c.last
}
