package crash

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// consumers is a worker in which a producer adds numbered entries to a stream, and the consumers of a group read them
// with XREADGROUP BLOCK and acknowledge most of them.
type consumers struct {
	label string

	mu sync.Mutex
	// base is the stream after the last restart; nil if there was none.
	base *stream
	// adds are the entries sent since, numbered from the length of base.
	adds []added
	// delivered has the entries delivered since, acks those for which XACK was sent.
	delivered map[streamID]delivery
	acks      map[streamID]time.Time
	// reading is the number of entries that each consumer's XREADGROUP in flight may have taken.
	reading [streamConsumers]int
}

const (
	streamConsumers = 2
	// readCount is the COUNT of XREADGROUP.
	readCount = 3
	groupName = "g"
)

type added struct {
	id    streamID // 0-0 until acknowledged
	acked time.Time
}

type delivery struct {
	consumer string
	at       time.Time
}

func newConsumers(label string) *consumers {
	w := &consumers{label: label}
	w.reset()
	return w
}

func (w *consumers) reset() {
	w.adds, w.delivered, w.acks = nil, map[streamID]delivery{}, map[streamID]time.Time{}
	w.reading = [streamConsumers]int{}
}

func (w *consumers) name() string { return w.label }
func (w *consumers) key() string  { return w.label + ":stream" }

func (w *consumers) run(dial dialer, r *rand.Rand) error {
	c, err := dial()
	if err != nil {
		return ignoreNet(err)
	}
	replies, err := do(c, []string{"XGROUP", "CREATE", w.key(), groupName, "0", "MKSTREAM"})
	c.Close()
	if err != nil || replies[0].Kind == transcript.Closed {
		return nil
	}
	if v := replies[0]; v.Kind == transcript.Error && (w.base == nil || v.Text[:min(9, len(v.Text))] != "BUSYGROUP") {
		return fmt.Errorf("%s: XGROUP CREATE: %s", w.label, v.Text)
	} else if v.Kind != transcript.Error && w.base != nil {
		return fmt.Errorf("%s: the group was lost while the server was running", w.label)
	}
	tasks := []func(*transcript.Conn, *rand.Rand) error{w.produce}
	for i := range streamConsumers {
		tasks = append(tasks, func(c *transcript.Conn, r *rand.Rand) error { return w.consume(c, r, i) })
	}
	return runTasks(w.label, dial, r, tasks)
}

// known is the number of entries after the last restart.
func (w *consumers) known() int {
	if w.base == nil {
		return 0
	}
	return len(w.base.entries)
}

func (w *consumers) produce(c *transcript.Conn, r *rand.Rand) error {
	for {
		var commands [][]string
		w.mu.Lock()
		first := len(w.adds)
		full := first-len(w.delivered) > backlog
		for range 1 + r.IntN(4) {
			w.adds = append(w.adds, added{})
			commands = append(commands, []string{"XADD", w.key(), "*", "n", strconv.Itoa(w.known() + len(w.adds))})
		}
		w.mu.Unlock()
		if full || r.IntN(4) == 0 {
			time.Sleep(time.Duration(r.Int64N(int64(idlePause))))
		}
		replies, err := ask(c, commands...)
		if err != nil {
			return err
		}
		w.mu.Lock()
		for i, v := range replies {
			w.adds[first+i] = added{parseID(v.Text), time.Now()}
		}
		w.mu.Unlock()
	}
}

func consumerName(i int) string { return "c" + strconv.Itoa(i) }

func (w *consumers) consume(c *transcript.Conn, r *rand.Rand, i int) error {
	var own []streamID // pending entries
	if w.base != nil {
		for id, p := range w.base.groups[groupName].pending {
			if p.consumer == consumerName(i) {
				own = append(own, id)
			}
		}
	}
	for {
		w.mu.Lock()
		w.reading[i] = readCount
		w.mu.Unlock()
		replies, err := ask(c, []string{"XREADGROUP", "GROUP", groupName, consumerName(i), "COUNT", strconv.Itoa(readCount),
			"BLOCK", "0",
			"STREAMS", w.key(), ">"})
		if err != nil {
			return err
		}
		w.mu.Lock()
		w.reading[i] = 0
		for _, e := range replies[0].Elems[0].Elems[1].Elems {
			id := parseID(e.Elems[0].Text)
			if d, again := w.delivered[id]; again {
				w.mu.Unlock()
				return fmt.Errorf("entry %s was delivered to %s and again to %s", id, d.consumer, consumerName(i))
			}
			w.delivered[id] = delivery{consumerName(i), time.Now()}
			own = append(own, id)
		}
		w.mu.Unlock()
		if own, err = w.acknowledge(c, r, own); err != nil {
			return err
		}
	}
}

// acknowledge acknowledges some of a consumer's pending entries with one command, and returns the others.
func (w *consumers) acknowledge(c *transcript.Conn, r *rand.Rand, own []streamID) ([]streamID, error) {
	n := min(r.IntN(2*readCount), len(own))
	if n == 0 {
		return own, nil
	}
	r.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
	args := []string{"XACK", w.key(), groupName}
	w.mu.Lock()
	for _, id := range own[:n] {
		args = append(args, id.String())
		w.acks[id] = time.Time{}
	}
	w.mu.Unlock()
	replies, err := ask(c, args)
	if err != nil {
		return nil, err
	}
	if replies[0].Text != strconv.Itoa(n) {
		return nil, fmt.Errorf("%s gave %s", transcript.QuoteCommand(args), replies[0].Text)
	}
	w.mu.Lock()
	for _, id := range own[:n] {
		w.acks[id] = time.Now()
	}
	w.mu.Unlock()
	return own[n:], nil
}

func (w *consumers) settle(s *snapshot, e ending) (int, error) {
	v := s.data[place{0, w.key()}]
	acked := len(w.acks) + len(w.delivered)
	for _, a := range w.adds {
		if !a.acked.IsZero() {
			acked++
		}
	}
	var found *stream
	if v != nil {
		if found = v.stream; found == nil || found.groups[groupName] == nil {
			return 0, fmt.Errorf("%s: the key has become %s without the group", w.label, v.summary())
		}
		if err := w.check(found, e); err != nil {
			return 0, fmt.Errorf("%s: stream up to %s, group up to %s: %w", w.label, found.last, found.groups[groupName].last,
				err)
		}
	} else if w.base != nil || len(w.adds) > 0 && e.survives(w.adds[0].acked) {
		return 0, fmt.Errorf("%s: the stream is lost", w.label)
	}
	w.base = found
	w.reset()
	return acked, nil
}

func (w *consumers) check(found *stream, e ending) error {
	if w.base != nil && (len(found.entries) < w.known() || !slices.Equal(found.entries[:w.known()], w.base.entries)) {
		return fmt.Errorf("lost or changed: the first %d entries are not those of before", w.known())
	}
	last := streamID{}
	for i, en := range found.entries {
		if want := "n\x00" + strconv.Itoa(i+1); en.fields != want || !en.id.after(last) {
			return fmt.Errorf("lost or doubled: expected %s as entry %d, after %s, found %s %s", short(want), i+1, last, en.id,
				short(en.fields))
		}
		last = en.id
	}
	for i, a := range w.adds {
		n := w.known() + i
		if n >= len(found.entries) {
			if e.survives(a.acked) {
				return fmt.Errorf("lost: entry %d with ID %s was acknowledged", n+1, a.id)
			}
		} else if !a.acked.IsZero() && a.id != found.entries[n].id {
			return fmt.Errorf("entry %d was acknowledged as %s and is now %s", n+1, a.id, found.entries[n].id)
		}
	}
	if extra := len(found.entries) - w.known() - len(w.adds); extra > 0 || found.added != len(found.entries) ||
		found.last != last {
		return fmt.Errorf("%d entries of which %d were never sent; XINFO says %d added up to %s", len(found.entries),
			max(0, extra),
			found.added, found.last)
	}
	return w.checkPending(found, found.groups[groupName], e)
}

// deliveredBefore reports whether the entry had been delivered by the last restart.
func (w *consumers) deliveredBefore(id streamID) bool {
	return w.base != nil && !id.after(w.base.groups[groupName].last)
}

// checkPending checks the group's deliveries. Every entry up to its last one is pending, or XACK was sent for it.
func (w *consumers) checkPending(found *stream, g *group, e ending) error {
	room := map[string]int{}
	for i, n := range w.reading {
		room[consumerName(i)] = n
	}
	before := map[streamID]pending{}
	if w.base != nil {
		before = w.base.groups[groupName].pending
	}
	left := len(g.pending)
	for _, en := range found.entries {
		have, is := g.pending[en.id]
		if is {
			left--
		}
		ackedAt, ackSent := w.acks[en.id]
		d, delivered := w.delivered[en.id]
		earlier, wasPending := before[en.id]
		switch behind := en.id.after(g.last); {
		case is && behind:
			return fmt.Errorf("%s is pending and not delivered", en.id)
		case is && e.survives(ackedAt):
			return fmt.Errorf("%s was acknowledged and is pending again", en.id)
		case behind && (e.survives(d.at) || w.deliveredBefore(en.id)):
			return fmt.Errorf("%s was delivered and will be delivered again", en.id)
		case behind:
		case wasPending && (!is && !ackSent || is && have != earlier):
			return fmt.Errorf("%s was pending as %v, is pending now: %t, %v", en.id, earlier, is, have)
		case wasPending:
		case delivered && (!is && !ackSent || is && have != pending{d.consumer, 1}):
			return fmt.Errorf("%s was delivered to %s, is pending now: %t, %v", en.id, d.consumer, is, have)
		case delivered:
		case w.deliveredBefore(en.id):
			if is {
				return fmt.Errorf("%s was acknowledged long ago and is pending again", en.id)
			}
		case !is:
			return fmt.Errorf("lost: %s counts as delivered, was given to nobody and is not pending", en.id)
		default:
			if room[have.consumer]--; room[have.consumer] < 0 || have.count != 1 {
				return fmt.Errorf("%s is pending as %v, which it cannot have been given to", en.id, have)
			}
		}
	}
	if left != 0 {
		return fmt.Errorf("%d pending entries are not in the stream", left)
	}
	return nil
}
