package pressure

import (
	"sync"
	"time"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/due"
)

// The statistics of queues by minute are in memory: they begin with the server, and count what the commands on queues
// do. Clients of the protocol's steps do not appear in them.

// stat is one of the numbers of a minute.
type stat int

const (
	statPut stat = iota
	statTaken
	statAcked
	statFailed
	statDead
	numberOfStats
)

var statNames = [numberOfStats]string{"put", "taken", "acked", "failed", "dead"}

const (
	minuteMS = int64(time.Minute / time.Millisecond)
	// maxMinutes is how many minutes are kept.
	maxMinutes = 60
	// maxStatQueues is how many queues are counted.
	maxStatQueues = 10_000
)

// minute is what happened in a minute, the number-th since 1970.
type minute struct {
	number int64
	counts [numberOfStats]int64
}

// stats counts by queue and minute. Its lock is taken last.
type stats struct {
	mu     sync.Mutex
	queues map[due.ID][]minute // in order, at most maxMinutes; minutes without anything are missing
}

// count adds n to a number of the present minute.
func (s *stats) count(q *pressureQueue, now int64, k stat, n int64) {
	number := now / minuteMS
	s.mu.Lock()
	defer s.mu.Unlock()
	minutes, known := s.queues[due.ID{DB: q.c.DB, Key: string(q.keys[qMessages])}]
	if !known && len(s.queues) >= maxStatQueues && !s.sweep(number) {
		return
	}
	if last := len(minutes) - 1; last < 0 || minutes[last].number < number {
		minutes = append(minutes, minute{number: number})
		if len(minutes) > maxMinutes {
			minutes = append(minutes[:0], minutes[1:]...)
		}
		s.queues[q.id()] = minutes
	}
	minutes[len(minutes)-1].counts[k] += n
}

// sweep drops the queues in which nothing happened for maxMinutes, and reports whether there is a place now. mu must
// be locked.
func (s *stats) sweep(number int64) bool {
	for id, minutes := range s.queues {
		if minutes[len(minutes)-1].number <= number-maxMinutes {
			delete(s.queues, id)
		}
	}
	return len(s.queues) < maxStatQueues
}

// forget drops a removed queue.
func (s *stats) forget(id due.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.queues, id)
}

// last returns the last n minutes, the present one as the last.
func (s *stats) last(id due.ID, now int64, n int) []minute {
	all := make([]minute, n)
	first := now/minuteMS - int64(n) + 1
	for i := range all {
		all[i].number = first + int64(i)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.queues[id] {
		if i := m.number - first; i >= 0 && i < int64(n) {
			all[i] = m
		}
	}
	return all
}

// defaultMinutes is how many minutes PRESSURE.STATS shows.
const defaultMinutes = 10

func cmdPressureStats(c *command.Ctx) {
	a, ok := readPressureArgs(c, &pressureStats)
	if !ok {
		return
	}
	n := int64(defaultMinutes)
	if v := a.option(optMinutes); v != nil {
		if n, ok = c.IntIn(v, 1, maxMinutes, errMinutes); !ok {
			return
		}
	}
	q := queueOf(c, a)
	if !q.open() {
		return
	}
	minutes := q.service().stats.last(q.id(), c.Now(), int(n))
	c.W.Array(len(minutes))
	for _, m := range minutes {
		c.W.Map(1 + int(numberOfStats))
		c.W.BulkString("at")
		c.W.Int(m.number * minuteMS)
		for k, name := range statNames {
			c.W.BulkString(name)
			c.W.Int(m.counts[k])
		}
	}
}
