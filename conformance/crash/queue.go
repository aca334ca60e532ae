package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

const (
	// backlog is the number of waiting elements at which the producers of a queue or stream pause.
	backlog = 100
	// idlePause is the longest pause of a producer, in which consumers begin to block.
	idlePause = 4 * time.Millisecond
)

// queue is a worker whose producers push numbered elements and whose consumers take them with a blocking command. Each
// element must be in exactly one place. Every producer pushes in order and consumers take from the front, so the
// elements of a producer in a queue are a run of consecutive numbers.
type queue struct {
	label string
	// kind is the command of the consumers.
	kind      string
	consumers int

	mu        sync.Mutex
	producers [queueProducers]producer
	// taken has the elements that were taken since the last restart, and when their removal was acknowledged.
	taken map[element]time.Time
	// processing has the elements that were in the processing list after the last restart, or were moved there since.
	processing map[element]bool
	// done has the elements that the consumer removes from the processing list; the time is zero until that is
	// acknowledged.
	done map[element]time.Time
	// inFlight is the number of elements that commands without a reply may have taken.
	inFlight int
}

const queueProducers = 2

// producer is the state of one producer: base, the first number not taken and the last number pushed, both as of the
// last restart, and the pushes since.
type producer struct {
	first, last int
	pushes      []pushed
	waiting     int
}

// pushed is a command that has pushed the numbers up to last.
type pushed struct {
	last  int
	acked time.Time
}

// element is the n-th one of a producer.
type element struct{ producer, n int }

func (e element) String() string { return fmt.Sprintf("%d-%d", e.producer, e.n) }

func parseElement(s string) (element, error) {
	a, b, _ := strings.Cut(s, "-")
	p, errP := strconv.Atoi(a)
	n, errN := strconv.Atoi(b)
	if errP != nil || errN != nil || p < 0 || p >= queueProducers {
		return element{}, fmt.Errorf("unknown element %s", short(s))
	}
	return element{p, n}, nil
}

func newQueue(label, kind string, consumers int) *queue {
	q := &queue{label: label, kind: kind, consumers: consumers, processing: map[element]bool{}}
	for i := range q.producers {
		q.producers[i].first = 1
	}
	q.reset()
	return q
}

func (q *queue) reset() {
	q.taken, q.done, q.inFlight = map[element]time.Time{}, map[element]time.Time{}, 0
}

func (q *queue) name() string      { return q.label }
func (q *queue) key() string       { return q.label + ":queue" }
func (q *queue) processed() string { return q.label + ":processing" }

func (q *queue) run(dial dialer, r *rand.Rand) error {
	tasks := make([]func(*transcript.Conn, *rand.Rand) error, 0, queueProducers+q.consumers)
	for i := range q.producers {
		tasks = append(tasks, func(c *transcript.Conn, r *rand.Rand) error { return q.produce(c, r, i) })
	}
	for range q.consumers {
		if q.kind == "BLMOVE" {
			tasks = append(tasks, q.move)
		} else {
			tasks = append(tasks, q.take)
		}
	}
	return runTasks(q.label, dial, r, tasks)
}

// runTasks runs each task with a connection of its own until all have ended.
func runTasks(label string, dial dialer, r *rand.Rand, tasks []func(*transcript.Conn, *rand.Rand) error) error {
	errs := make([]error, len(tasks))
	var wg sync.WaitGroup
	for i, task := range tasks {
		own := rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
		wg.Go(func() {
			c, err := dial()
			if err != nil {
				errs[i] = ignoreNet(err)
				return
			}
			defer c.Close()
			if err := task(c, own); err != nil && !errors.Is(err, errEnded) {
				errs[i] = fmt.Errorf("%s: %w", label, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (q *queue) produce(c *transcript.Conn, r *rand.Rand, i int) error {
	p := &q.producers[i]
	for {
		q.mu.Lock()
		full := p.waiting > backlog
		q.mu.Unlock()
		if full || r.IntN(4) == 0 {
			time.Sleep(time.Duration(r.Int64N(int64(idlePause))))
		}
		if full {
			if _, err := ask(c, []string{"PING"}); err != nil { // to notice the end
				return err
			}
			continue
		}
		var commands [][]string
		q.mu.Lock()
		first := len(p.pushes)
		for range 1 + r.IntN(4) {
			commands = append(commands, q.push(p, i, 1+r.IntN(3)))
		}
		q.mu.Unlock()
		replies, err := ask(c, commands...)
		if err != nil || len(replies) < len(commands) {
			return err
		}
		q.mu.Lock()
		for j := range commands {
			p.pushes[first+j].acked = time.Now()
		}
		q.mu.Unlock()
	}
}

// push makes the command that pushes the next n elements, and records it.
func (q *queue) push(p *producer, i, n int) []string {
	next := p.sent()
	args := []string{"RPUSH", q.key()}
	if q.kind == "BZPOPMIN" {
		args[0] = "ZADD"
	}
	for range n {
		next++
		if q.kind == "BZPOPMIN" {
			args = append(args, strconv.Itoa(next))
		}
		args = append(args, element{i, next}.String())
	}
	p.pushes = append(p.pushes, pushed{last: next})
	p.waiting += n
	return args
}

// sent is the last number sent.
func (p *producer) sent() int {
	if len(p.pushes) == 0 {
		return p.last
	}
	return p.pushes[len(p.pushes)-1].last
}

// blmpopCount is the number of elements that BLMPOP takes at once.
const blmpopCount = 3

// take takes elements until the connection ends.
func (q *queue) take(c *transcript.Conn, _ *rand.Rand) error {
	command, most := []string{q.kind, q.key(), "0"}, 1
	if q.kind == "BLMPOP" {
		command, most = []string{"BLMPOP", "0", "1", q.key(), "LEFT", "COUNT", strconv.Itoa(blmpopCount)}, blmpopCount
	}
	for {
		if err := q.request(most, func() ([]transcript.Value, error) { return ask(c, command) },
			func(v transcript.Value) error {
				elems := v.Elems[1:2]
				if q.kind == "BLMPOP" {
					elems = v.Elems[1].Elems
				}
				return q.note(elems)
			}); err != nil {
			return err
		}
	}
}

// request sends a command that takes up to most elements, which count as in flight until the reply.
func (q *queue) request(most int, send func() ([]transcript.Value, error),
	answered func(transcript.Value) error) error {
	q.mu.Lock()
	q.inFlight += most
	q.mu.Unlock()
	replies, err := send()
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inFlight -= most
	return answered(replies[0])
}

// note records elements that were just taken.
func (q *queue) note(elems []transcript.Value) error {
	for _, v := range elems {
		e, err := parseElement(v.Text)
		if err != nil {
			return err
		}
		if _, again := q.taken[e]; again || e.n < q.producers[e.producer].first {
			return fmt.Errorf("element %s was given out twice", e)
		}
		q.taken[e] = time.Now()
		q.producers[e.producer].waiting--
	}
	return nil
}

// move moves elements to the processing list and afterwards removes most of them from it.
func (q *queue) move(c *transcript.Conn, r *rand.Rand) error {
	for {
		command := []string{"BLMOVE", q.key(), q.processed(), "LEFT", "RIGHT", "0"}
		if err := q.request(0, func() ([]transcript.Value, error) { return ask(c, command) }, func(v transcript.Value) error {
			if err := q.note([]transcript.Value{v}); err != nil {
				return err
			}
			e, err := parseElement(v.Text)
			q.processing[e] = true
			return err
		}); err != nil {
			return err
		}
		for len(q.processing) > 0 && r.IntN(5) > 0 {
			if err := q.finish(c); err != nil {
				return err
			}
		}
	}
}

// finish removes an element from the processing list.
func (q *queue) finish(c *transcript.Conn) error {
	var e element
	q.mu.Lock()
	for e = range q.processing {
		break
	}
	delete(q.processing, e)
	q.done[e] = time.Time{}
	q.mu.Unlock()
	replies, err := ask(c, []string{"LREM", q.processed(), "0", e.String()})
	if err != nil {
		return err
	}
	if replies[0].Text != "1" {
		return fmt.Errorf("element %s was %s times in the processing list", e, replies[0].Text)
	}
	q.mu.Lock()
	q.done[e] = time.Now()
	q.mu.Unlock()
	return nil
}

func (q *queue) settle(s *snapshot, e ending) (int, error) {
	queued, err := q.read(s.data[place{0, q.key()}])
	if err != nil {
		return 0, fmt.Errorf("%s: %w", q.label, err)
	}
	processing, err := q.read(s.data[place{0, q.processed()}])
	if err != nil {
		return 0, fmt.Errorf("%s: processing list: %w", q.label, err)
	}
	inProcessing := map[element]bool{}
	for _, el := range processing {
		if inProcessing[el] {
			return 0, fmt.Errorf("%s: %s is twice in the processing list", q.label, el)
		}
		inProcessing[el] = true
	}
	checked := len(q.done) + len(q.taken)
	room := q.inFlight
	for i := range q.producers {
		var own []int
		for _, el := range queued {
			if el.producer == i {
				own = append(own, el.n)
			}
		}
		n, err := q.settleProducer(i, own, inProcessing, &room, e)
		if err != nil {
			return 0, fmt.Errorf("%s: producer %d (base %d to %d, sent up to %d, found %v): %w", q.label, i,
				q.producers[i].first,
				q.producers[i].last, q.producers[i].sent(), own, err)
		}
		checked += n
	}
	for i := range q.producers {
		q.adopt(i, queued)
	}
	q.processing = inProcessing
	q.reset()
	return checked, nil
}

// read lists the elements of a list, or of a sorted set by score.
func (q *queue) read(v *value) ([]element, error) {
	if v == nil {
		return nil, nil
	}
	names := v.list
	if v.kind == "zset" {
		names = v.ranked()
	}
	var elems []element
	for _, s := range names {
		e, err := parseElement(s)
		if err != nil {
			return nil, err
		}
		elems = append(elems, e)
	}
	return elems, nil
}

// settleProducer checks the elements of a producer, of which found are in the queue, and returns the number of
// acknowledged pushes. Missing elements are lost, except for as many as the commands in flight may have taken. room
// counts these down.
func (q *queue) settleProducer(i int, found []int, processing map[element]bool, room *int, e ending) (int, error) {
	p := &q.producers[i]
	sure, acked, boundary := p.last, 0, map[int]bool{p.last: true}
	for _, push := range p.pushes {
		boundary[push.last] = true
		if !push.acked.IsZero() {
			acked++
		}
		if e.survives(push.acked) {
			sure = push.last
		}
	}
	first := sure + 1 // the first number that was not taken
	if len(found) > 0 {
		first = found[0]
		last := found[len(found)-1]
		for j, n := range found {
			if n != first+j {
				return 0, fmt.Errorf("lost or doubled: after %d comes %d", first+j-1, n)
			}
		}
		if last < sure {
			return 0, fmt.Errorf("lost: %d to %d were pushed and acknowledged", last+1, sure)
		}
		if !boundary[last] {
			return 0, fmt.Errorf("a push of several elements is there in part, up to %d", last)
		}
	}
	for el, at := range q.taken {
		if el.producer == i && e.survives(at) && el.n >= first && len(found) > 0 {
			return 0, fmt.Errorf("%d was taken and is in the queue again", el.n)
		}
	}
	for el := range processing {
		if el.producer != i {
			continue
		}
		if el.n > p.sent() || len(found) > 0 && el.n >= first {
			return 0, fmt.Errorf("%d is in the processing list and should not be", el.n)
		}
		if _, done := q.done[el]; el.n < p.first && !done && !q.processing[el] {
			return 0, fmt.Errorf("%d is in the processing list again, long after it was removed", el.n)
		}
		if e.survives(q.done[el]) {
			return 0, fmt.Errorf("%d was removed from the processing list and is there again", el.n)
		}
	}
	for n := p.first; n < first; n++ {
		el := element{i, n}
		_, done := q.done[el]
		if processing[el] || done || q.kind != "BLMOVE" && !q.taken[el].IsZero() {
			continue
		}
		if *room--; *room < 0 {
			return 0, fmt.Errorf("lost: %d is neither in the queue nor taken", n)
		}
	}
	for el := range q.processing {
		if el.producer == i && el.n < p.first && !processing[el] {
			return 0, fmt.Errorf("lost: %d is not in the processing list any more", el.n)
		}
	}
	return acked, nil
}

// adopt accepts the elements in the queue as all that the producer has pushed so far.
func (q *queue) adopt(i int, queued []element) {
	p := &q.producers[i]
	last, count, first := p.sent(), 0, p.sent()+1
	for _, e := range queued {
		if e.producer == i {
			if count++; count == 1 {
				first = e.n
			}
			last = e.n
		}
	}
	*p = producer{first: first, last: last, waiting: count}
}
