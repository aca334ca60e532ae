package crash

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/atomredis/atomredis/internal/testing/transcript"
	"github.com/atomredis/atomredis/internal/wire/zmtp"
)

// spiderq is a worker that uses the door of spiderq. A producer adds numbered tasks; consumers borrow them, repay them
// with a higher number, and finally drop and remove some. Some are borrowed for a short time and forgotten. A task is
// queued, lent or dropped, and never two of these; a lend key is given out only once.
type spiderq struct {
	addr string

	mu    sync.Mutex
	tasks map[string]*spiderqTask
	next  int // the number of the next task
	// given has all loans ever, and when they were acknowledged.
	given map[loanID]time.Time
	// inFlight is the number of unanswered requests for a loan.
	inFlight int
	found    spiderqState
}

const (
	spiderqConsumers = 3
	// spiderqTasks is the most tasks at once.
	spiderqTasks = 60
	// spiderqLong is a loan that does not expire in a round, spiderqShort one that does.
	spiderqLong  = 20 * time.Second
	spiderqShort = 10 * time.Millisecond
	// spiderqLate is how long after its expiry a task may still be lent: the duration of a start.
	spiderqLate = 10 * time.Second
)

// The requests and replies of the protocol used here.
const (
	spiderqAdd, spiderqLend, spiderqRepay, spiderqHeartbeat, spiderqPing, spiderqRemove = 2, 4, 5, 6, 0x0b, 0x0c

	spiderqAdded, spiderqNotFound, spiderqLent, spiderqRepaid        = 2, 5, 6, 7
	spiderqHeartbeaten, spiderqEmpty, spiderqPong, spiderqRemovedNow = 8, 0x10, 0x11, 0x12

	spiderqDrop = 4 // the last of the statuses
)

// loanID identifies a loan.
type loanID struct {
	task string
	key  uint64
}

// loan is a task lent to a consumer.
type loan struct {
	id          loanID
	value       int
	sent, acked time.Time
	// due is when the loan expires, at the earliest and at the latest.
	due    window
	repaid bool // a repayment was sent
	// repayment is when the repayment was acknowledged, if it was.
	repayment time.Time
}

// outcome is the state of a task besides queued or lent: its value, 0 if it does not exist, and whether it was dropped.
type outcome struct {
	value   int
	dropped bool
}

// spiderqWrite is a request that gives a task an outcome.
type spiderqWrite struct {
	outcome outcome
	acked   time.Time
	void    bool // it was refused
}

// spiderqTask is the record of a task: its outcome after the last restart, the requests since, and its loans.
type spiderqTask struct {
	base   outcome
	writes []*spiderqWrite
	loans  []*loan
}

func newSpiderq(addr string) *spiderq {
	return &spiderq{addr: addr, tasks: map[string]*spiderqTask{}, given: map[loanID]time.Time{}}
}

func (w *spiderq) name() string { return "spiderq" }

func (w *spiderq) run(_ dialer, r *rand.Rand) error {
	tasks := []func(*spiderqPeer, *rand.Rand) error{w.produce}
	w.mu.Lock()
	var held []*loan
	for _, t := range w.tasks {
		held = append(held, t.loans...)
	}
	w.mu.Unlock()
	for i := range spiderqConsumers {
		var own []*loan
		for j := i; j < len(held); j += spiderqConsumers {
			own = append(own, held[j])
		}
		tasks = append(tasks, func(p *spiderqPeer, r *rand.Rand) error { return w.consume(p, r, own) })
	}
	return runDoorTasks("spiderq", w.dial, r, tasks)
}

// spiderqPeer is a REQ socket.
type spiderqPeer struct {
	conn net.Conn
	z    *zmtp.Conn
}

func (w *spiderq) dial() (*spiderqPeer, func(), error) {
	conn, err := transcript.Dial(w.addr)
	if err != nil {
		return nil, nil, err
	}
	// With NULL both sides send the same handshake.
	z, err := zmtp.Accept(conn, "REQ", []string{"ROUTER"}, zmtp.Limits{Message: 1 << 20, Frames: 8, Time: replyTimeout})
	if err != nil {
		conn.Close()
		return nil, nil, &net.OpError{Op: "handshake", Err: err}
	}
	return &spiderqPeer{conn, z}, func() { conn.Close() }, nil
}

// ask sends a request and returns the reply.
func (p *spiderqPeer) ask(request []byte) ([]byte, error) {
	if err := p.z.Write(nil, request); err != nil {
		return nil, ended(err)
	}
	p.conn.SetReadDeadline(time.Now().Add(replyTimeout))
	frames, err := p.z.Read()
	if err != nil {
		return nil, ended(err)
	}
	if len(frames) != 2 || len(frames[0]) != 0 || len(frames[1]) == 0 {
		return nil, fmt.Errorf("request %x gave the frames %x", request, frames)
	}
	return frames[1], nil
}

// field appends a text with its length.
func field(b []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...)
}

// cutField splits off a text that field has appended.
func cutField(b []byte) (text string, rest []byte, ok bool) {
	if len(b) < 4 || uint64(len(b)-4) < uint64(binary.BigEndian.Uint32(b)) {
		return "", nil, false
	}
	n := 4 + int(binary.BigEndian.Uint32(b))
	return string(b[4:n]), b[n:], true
}

// write records a request that gives a task an outcome, sends it, and returns the tag of the reply.
func (w *spiderq) write(p *spiderqPeer, task string, o outcome, request []byte) (tag byte, err error) {
	write := &spiderqWrite{outcome: o}
	w.mu.Lock()
	t := w.tasks[task]
	t.writes = append(t.writes, write)
	w.mu.Unlock()
	reply, err := p.ask(request)
	if err != nil {
		return 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	write.acked = time.Now()
	write.void = reply[0] == spiderqNotFound
	return reply[0], nil
}

func (w *spiderq) produce(p *spiderqPeer, r *rand.Rand) error {
	for {
		time.Sleep(time.Duration(r.Int64N(int64(idlePause))))
		w.mu.Lock()
		full := len(w.tasks) >= spiderqTasks
		w.mu.Unlock()
		if full {
			if reply, err := p.ask([]byte{spiderqPing}); err != nil {
				return err
			} else if reply[0] != spiderqPong {
				return fmt.Errorf("Ping gave %x", reply)
			}
			continue
		}
		w.mu.Lock()
		w.next++
		task := strconv.Itoa(w.next)
		w.tasks[task] = &spiderqTask{}
		w.mu.Unlock()
		tag, err := w.write(p, task, outcome{value: 1}, append(field(field([]byte{spiderqAdd}, task), "1"), byte(1+r.IntN(2))))
		if err != nil {
			return err
		}
		if tag != spiderqAdded {
			return fmt.Errorf("adding %s gave %x", task, tag)
		}
	}
}

// consume repays the loans from before the restart, and then borrows and repays.
func (w *spiderq) consume(p *spiderqPeer, r *rand.Rand, held []*loan) error {
	for _, l := range held {
		if r.IntN(4) == 0 {
			continue
		}
		if err := w.repay(p, r, l); err != nil {
			return err
		}
	}
	for {
		length := spiderqLong
		if r.IntN(3) == 0 {
			length = spiderqShort
		}
		l, err := w.lend(p, length, byte(1+r.IntN(2)))
		if err != nil {
			return err
		}
		if l == nil || length == spiderqShort && r.IntN(2) == 0 {
			continue
		}
		if length == spiderqLong && r.IntN(4) == 0 {
			if err := w.heartbeat(p, l); err != nil {
				return err
			}
		}
		if err := w.repay(p, r, l); err != nil {
			return err
		}
	}
}

// lend borrows a task; it returns nil if there is none.
func (w *spiderq) lend(p *spiderqPeer, length time.Duration, mode byte) (*loan, error) {
	w.mu.Lock()
	w.inFlight++
	w.mu.Unlock()
	sent := time.Now()
	reply, err := p.ask(append(binary.BigEndian.AppendUint64([]byte{spiderqLend}, uint64(length.Milliseconds())), mode))
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inFlight--
	if reply[0] == spiderqEmpty && mode == 2 {
		return nil, nil
	}
	if reply[0] != spiderqLent || len(reply) < 9 {
		return nil, fmt.Errorf("Lend gave %x", reply)
	}
	task, rest, ok := cutField(reply[9:])
	text, _, ok2 := cutField(rest)
	value, err := strconv.Atoi(text)
	t := w.tasks[task]
	if !ok || !ok2 || err != nil || t == nil {
		return nil, fmt.Errorf("Lend gave the task %q with %q", task, text)
	}
	now := time.Now()
	l := &loan{id: loanID{task, binary.BigEndian.Uint64(reply[1:])}, value: value, sent: sent, acked: now,
		due: window{sent.Add(length).UnixMilli() - clockSlack, now.Add(length).UnixMilli() + clockSlack}}
	if _, again := w.given[l.id]; again {
		return nil, fmt.Errorf("task %s was lent again with the lend key %d", task, l.id.key)
	}
	for _, other := range t.loans {
		first, second := other, l
		if first.id.key > second.id.key {
			first, second = second, first // whose reply was read earlier
		}
		if left := first.due.from - second.acked.UnixMilli(); !first.repaid && left > 0 {
			return nil, fmt.Errorf("task %s is lent with the lend key %d, and with %d for %d ms more", task, second.id.key,
				first.id.key, left)
		}
	}
	w.given[l.id] = now
	t.loans = append(t.loans, l)
	return l, nil
}

// heartbeat prolongs a loan.
func (w *spiderq) heartbeat(p *spiderqPeer, l *loan) error {
	sent := time.Now()
	w.mu.Lock()
	l.due.to = sent.Add(startTimeout).UnixMilli() // until it is known
	w.mu.Unlock()
	request := field(binary.BigEndian.AppendUint64([]byte{spiderqHeartbeat}, l.id.key), l.id.task)
	reply, err := p.ask(binary.BigEndian.AppendUint64(request, uint64(spiderqLong.Milliseconds())))
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if reply[0] != spiderqHeartbeaten {
		if now.UnixMilli() < l.due.from {
			return fmt.Errorf("the heartbeat of %v gave %x", l.id, reply)
		}
		return nil
	}
	l.due.to = now.Add(spiderqLong).UnixMilli() + clockSlack
	return nil
}

// repay ends a loan, and also removes the task if it drops it.
func (w *spiderq) repay(p *spiderqPeer, r *rand.Rand, l *loan) error {
	status := byte(1 + r.IntN(spiderqDrop-1))
	if r.IntN(8) == 0 {
		status = spiderqDrop
	}
	w.mu.Lock()
	l.repaid = true
	w.mu.Unlock()
	o := outcome{l.value + 1, status == spiderqDrop}
	request := field(binary.BigEndian.AppendUint64([]byte{spiderqRepay}, l.id.key), l.id.task)
	tag, err := w.write(p, l.id.task, o, append(field(request, strconv.Itoa(o.value)), status))
	if err != nil {
		return err
	}
	w.mu.Lock()
	now := time.Now()
	if tag == spiderqRepaid {
		l.repayment = now
	}
	early := now.UnixMilli() < l.due.from
	w.mu.Unlock()
	switch {
	case tag != spiderqRepaid && tag != spiderqNotFound || tag == spiderqNotFound && early:
		return fmt.Errorf("repaying %v, lent until %d, gave %x", l.id, l.due.from, tag)
	case tag == spiderqNotFound || status != spiderqDrop:
		return nil
	}
	tag, err = w.write(p, l.id.task, outcome{}, field([]byte{spiderqRemove}, l.id.task))
	if err == nil && tag != spiderqRemovedNow {
		err = fmt.Errorf("removing %s gave %x", l.id.task, tag)
	}
	return err
}

// spiderqState is the content of the queue's keys.
type spiderqState struct {
	at                                 time.Time
	values, queue, lent, loans, boosts map[string]string
	serial                             string
}

// The keys of the queue that the door serves.
const spiderqKeys = "spiderq:{spiderq}"

func (w *spiderq) inquire(c *transcript.Conn) error {
	replies, err := ask(c, []string{"SELECT", "0"}, []string{"MULTI"}, []string{"HGETALL", spiderqKeys},
		[]string{"ZRANGE", spiderqKeys + ":queue", "0", "-1", "WITHSCORES"},
		[]string{"ZRANGE", spiderqKeys + ":lent", "0", "-1", "WITHSCORES"}, []string{"HGETALL", spiderqKeys + ":loans"},
		[]string{"HGETALL", spiderqKeys + ":boosts"}, []string{"GET", spiderqKeys + ":serial"}, []string{"EXEC"})
	if err != nil {
		return err
	}
	parts := replies[len(replies)-1].Elems
	w.found = spiderqState{time.Now(), fields(parts[0]), fields(parts[1]), fields(parts[2]), fields(parts[3]),
		fields(parts[4]), parts[5].Text}
	return nil
}

func (w *spiderq) settle(_ *snapshot, e ending) (int, error) {
	acked, room := 0, w.inFlight
	w.inFlight = 0
	for _, part := range []map[string]string{w.found.values, w.found.queue, w.found.lent, w.found.loans, w.found.boosts} {
		for task := range part {
			if w.tasks[task] == nil {
				return 0, fmt.Errorf("spiderq: there is a task %s, which was never added or long removed", task)
			}
		}
	}
	for task, t := range w.tasks {
		n, err := w.settleTask(task, t, &room, e)
		if err != nil {
			return 0, fmt.Errorf("spiderq: task %s: %w", task, err)
		}
		acked += n
	}
	for id, at := range w.given {
		if !e.survives(at) {
			delete(w.given, id)
		} else if serial, _ := strconv.ParseUint(w.found.serial, 10, 64); id.key > max(serial, 1) {
			return 0, fmt.Errorf("spiderq: the serial is %d, and the lend key %d was given out", serial, id.key)
		}
		if w.tasks[id.task] == nil {
			delete(w.given, id) // it will not be added again
		}
	}
	return acked, nil
}

// settleTask checks the state of a task. room is the number of possible loans whose reply was lost.
func (w *spiderq) settleTask(task string, t *spiderqTask, room *int, e ending) (acked int, err error) {
	possible := map[outcome]bool{t.base: true}
	for _, write := range t.writes {
		if !write.acked.IsZero() {
			acked++
		}
		if write.void {
			continue
		}
		if e.survives(write.acked) {
			clear(possible)
		}
		possible[write.outcome] = true
	}
	for _, l := range t.loans {
		if !l.acked.IsZero() {
			acked++
		}
	}
	var have outcome
	if text, ok := w.found.values[task]; ok {
		if have.value, err = strconv.Atoi(text); err != nil {
			return 0, err
		}
	}
	_, queued := w.found.queue[task]
	deadline, lent := w.found.lent[task]
	lendKey, hasLoan := w.found.loans[task]
	have.dropped = have.value != 0 && !queued && !lent
	switch {
	case queued && lent:
		return 0, errors.New("it is lent and queued")
	case lent != hasLoan:
		return 0, fmt.Errorf("lent: %t, with a lend key: %t", lent, hasLoan)
	case (queued || lent) && have.value == 0:
		return 0, errors.New("it is queued or lent, and has no value")
	case !possible[have]:
		return 0, fmt.Errorf("lost or changed: it is %+v, and can be %v", have, possible)
	}
	var kept []*loan
	if lent {
		l, known, err := w.settleLoan(task, t, lendKey, deadline, e)
		if err != nil {
			return 0, err
		}
		if !known {
			if *room--; *room < 0 {
				return 0, fmt.Errorf("it is lent as %v, and to nobody", l.id)
			}
			w.given[l.id] = w.found.at
		}
		kept = []*loan{l}
	}
	for _, l := range t.loans {
		if left := l.due.from - w.found.at.UnixMilli(); e.survives(l.acked) && !l.repaid && left > 0 &&
			(len(kept) == 0 || kept[0].id != l.id) {
			return 0, fmt.Errorf("it was lent as %v for %d ms more; now queued: %t, lent: %t %s", l.id, left, queued, lent, lendKey)
		}
	}
	*t = spiderqTask{base: have, loans: kept}
	if have.value == 0 {
		delete(w.tasks, task)
	}
	return acked, nil
}

// settleLoan returns the loan with a lend key, in its state from now on, and whether its reply had been received.
func (w *spiderq) settleLoan(task string, t *spiderqTask, lendKey, deadline string, e ending) (l *loan, known bool,
	err error) {
	key, err := strconv.ParseUint(lendKey, 10, 64)
	if err != nil {
		return nil, false, err
	}
	due, err := strconv.ParseInt(deadline, 10, 64)
	if err != nil {
		return nil, false, err
	}
	value, err := strconv.Atoi(w.found.values[task])
	if err != nil {
		return nil, false, err
	}
	if late := w.found.at.UnixMilli() - due; late > spiderqLate.Milliseconds() {
		return nil, false, fmt.Errorf("its time has been up for %d ms", late)
	}
	now := &loan{id: loanID{task, key}, value: value, due: window{due, due}, acked: w.found.at}
	for _, l := range t.loans {
		switch {
		case l.id != now.id:
			continue
		case e.survives(l.repayment):
			return nil, false, fmt.Errorf("it is lent as %v again, which was repaid", l.id)
		case due < l.due.from || due > l.due.to:
			return nil, false, fmt.Errorf("it is lent as %v until %d, not between %d and %d", l.id, due, l.due.from, l.due.to)
		}
		return now, true, nil
	}
	return now, false, nil
}
