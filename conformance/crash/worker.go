package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// replyTimeout is the most time that a reply may take. Blocked commands end when the server ends.
const replyTimeout = 30 * time.Second

// worker writes to keys of its own, which begin with its name and a colon, and knows their expected values.
type worker interface {
	name() string
	// run loads the server until the connection ends, which is not an error.
	run(dial dialer, r *rand.Rand) error
	// settle compares the server's data after a restart with everything sent and acknowledged since the last time,
	// accepts it as the state from then on, and returns the number of acknowledged writes that were checked.
	settle(s *snapshot, e ending) (int, error)
}

// dialer makes a new connection to the server.
type dialer func() (*transcript.Conn, error)

// ending describes how a server ended.
type ending struct {
	// killed is the time of its end.
	killed time.Time
	// sure is the time up to which everything acknowledged must have survived.
	sure time.Time
}

// op is the unit that is executed completely or not at all: a command, a transaction, a script.
type op struct {
	wire [][]string
	// commands are its commands, in order.
	commands []command
	// replyAt has for each command the index of the reply that shows its outcome. It may be shorter than commands: the
	// other ones need no reply.
	replyAt []int
	// exec means that the wire is a transaction, and that replyAt counts in the reply to its EXEC.
	exec bool
	// loose means that the server makes a choice that only the reply shows. The op is sent as the last one of a
	// pipeline.
	loose bool
	// mayFail means that an error is a possible reply, with no effect.
	mayFail bool
	// void means that the server has refused it: it has no effect.
	void        bool
	sent, acked time.Time
	replies     []transcript.Value
}

// plain makes an op of one command in database 0.
func plain(args ...string) *op { return inDatabase(0, args...) }

// inDatabase makes an op of one command, with SELECT around it if need be.
func inDatabase(db int, args ...string) *op {
	o := &op{commands: []command{{db: db, args: args}}, wire: [][]string{args}, replyAt: []int{0}}
	if db != 0 {
		o.wire = [][]string{{"SELECT", strconv.Itoa(db)}, args, {"SELECT", "0"}}
		o.replyAt[0] = 1
	}
	return o
}

// transaction makes an op of several commands, with SELECT between them where the database changes.
func transaction(commands ...command) *op {
	o := &op{exec: true, commands: commands, wire: [][]string{{"MULTI"}}}
	db := 0
	for _, c := range commands {
		if c.db != db {
			db = c.db
			o.wire = append(o.wire, []string{"SELECT", strconv.Itoa(db)})
		}
		o.wire = append(o.wire, c.args)
		o.replyAt = append(o.replyAt, len(o.wire)-2)
	}
	if db != 0 {
		o.wire = append(o.wire, []string{"SELECT", "0"})
	}
	o.wire = append(o.wire, []string{"EXEC"})
	return o
}

// learn keeps the replies, and returns an unexpected error among them.
func (o *op) learn(replies []transcript.Value) error {
	o.replies = replies
	outcome, sent := replies, o.wire
	if o.exec {
		outcome = replies[len(replies)-1].Elems
		sent = slices.Concat(sent, sent[1:len(sent)-1])
	}
	for i, v := range slices.Concat(replies, outcome) {
		if v.Kind != transcript.Error {
			continue
		}
		// A script that arrives while the server is being closed is stopped before its first instruction. On a slow machine
		// FUNCTION LOAD may exceed its time.
		if strings.HasPrefix(v.Text, "NOSCRIPT") || strings.Contains(v.Text, "killed because the server is shutting down") ||
			strings.HasSuffix(v.Text, "FUNCTION LOAD timeout") {
			o.void = true
		} else if !o.mayFail {
			return fmt.Errorf("%s: unexpected error: %s", transcript.QuoteCommand(sent[i%len(sent)]), v.Text)
		}
	}
	if o.exec && len(outcome) != len(o.wire)-2 {
		return fmt.Errorf("EXEC of %d commands gave %s", len(o.wire)-2, replies[len(replies)-1])
	}
	for i, at := range o.replyAt {
		o.commands[i].reply = &outcome[at]
	}
	return nil
}

// send puts an op's commands into the output buffer.
func (o *op) send(c *transcript.Conn) {
	o.sent = time.Now()
	for _, args := range o.wire {
		c.Append(args...)
	}
}

// errEnded means that the connection has ended, which happens when the server is killed.
var errEnded = errors.New("the connection has ended")

// receive reads n replies. Only a missing reply is a failure; every other error is the end of the connection.
func receive(c *transcript.Conn, n int) ([]transcript.Value, error) {
	replies := make([]transcript.Value, 0, n)
	for range n {
		v, err := c.Read(replyTimeout)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, fmt.Errorf("no reply in %v", replyTimeout)
		}
		if err != nil || v.Kind == transcript.Closed {
			return nil, errEnded
		}
		replies = append(replies, v)
	}
	return replies, nil
}

// do sends commands and reads their replies.
func do(c *transcript.Conn, commands ...[]string) ([]transcript.Value, error) {
	for _, args := range commands {
		c.Append(args...)
	}
	if err := c.Flush(); err != nil {
		return nil, errEnded
	}
	return receive(c, len(commands))
}

// generator makes the operations of a linear worker.
type generator interface {
	// next makes an operation.
	next(r *rand.Rand) *op
	// observe receives an acknowledged operation.
	observe(o *op)
	// restart receives the state of the keys after a restart.
	restart(m model)
}

// noObserver is for generators that need no replies.
type noObserver struct{}

func (noObserver) observe(*op) {}

// linear is a worker with one connection: its operations happen in the order in which they are sent, so the state after
// a restart must be the result of some first part of them.
type linear struct {
	label string
	gen   generator
	// depth is the most operations in a pipeline; pause is the longest time between two pipelines.
	depth int
	pause time.Duration
	model model
	// log has the operations sent since the last restart.
	log []*op
}

func newLinear(label string, gen generator, depth int, pause time.Duration) *linear {
	return &linear{label: label, gen: gen, depth: depth, pause: pause, model: model{}}
}

func (w *linear) name() string { return w.label }

func (w *linear) run(dial dialer, r *rand.Rand) error {
	c, err := dial()
	if err != nil {
		return ignoreNet(err)
	}
	defer c.Close()
	for err == nil {
		if err = w.exchange(c, r); w.pause > 0 && err == nil {
			time.Sleep(time.Duration(r.Int64N(int64(w.pause))))
		}
	}
	if errors.Is(err, errEnded) {
		return nil
	}
	return fmt.Errorf("%s: %w", w.label, err)
}

// exchange sends some operations and reads the replies.
func (w *linear) exchange(c *transcript.Conn, r *rand.Rand) error {
	first := len(w.log)
	for range 1 + r.IntN(w.depth) {
		o := w.gen.next(r)
		w.log = append(w.log, o)
		o.send(c)
		if o.loose {
			break
		}
	}
	if c.Flush() != nil {
		return errEnded
	}
	for _, o := range w.log[first:] {
		replies, err := receive(c, len(o.wire))
		if err != nil {
			return err
		}
		o.acked = time.Now()
		if err := o.learn(replies); err != nil {
			return err
		}
		w.gen.observe(o)
	}
	return nil
}

// ignoreNet drops the error of a connection that cannot be made, which happens when the server is killed early.
func ignoreNet(err error) error {
	var netErr net.Error
	if errors.As(err, &netErr) {
		return nil
	}
	return err
}

// survives reports whether data acknowledged at the given time must exist; a zero time means not acknowledged.
func (e ending) survives(acked time.Time) bool { return !acked.IsZero() && !acked.After(e.sure) }

func (w *linear) settle(s *snapshot, e ending) (int, error) {
	acked, i := 0, 0
	for _, o := range w.log {
		if !o.acked.IsZero() {
			acked += len(o.commands)
		}
	}
	for ; i < len(w.log) && e.survives(w.log[i].acked); i++ {
		w.execute(w.log[i], s, e)
	}
	sure := i
	differing := map[place]bool{}
	compare := func(p place) {
		delete(differing, p)
		if !same(w.model[p], s.data[p], s.read) {
			differing[p] = true
		}
	}
	for p := range w.model {
		compare(p)
	}
	for _, p := range s.owned[w.label] {
		compare(p)
	}
	best, report := len(differing), w.report(differing, s, i)
	for ; len(differing) > 0 && i < len(w.log); i++ {
		for _, p := range w.execute(w.log[i], s, e) {
			compare(p)
		}
		if len(differing) < best {
			best, report = len(differing), w.report(differing, s, i+1)
		}
	}
	if len(differing) > 0 {
		return acked, fmt.Errorf("%s: sent %d operations, %d of them surely durable; what is there is no state after any of the"+
			" %d to %d; closest is%s", w.label, len(w.log), sure, sure, len(w.log), report)
	}
	for p, v := range w.model {
		if found := s.data[p]; found != nil {
			v.lo, v.hi = found.lo, found.hi
			v.settleFields(found)
		} else {
			delete(w.model, p) // expired
		}
	}
	w.log = nil
	w.gen.restart(w.model)
	return acked, nil
}

// report describes a few differences to the state after n operations.
func (w *linear) report(differing map[place]bool, s *snapshot, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, " the one after %d, with %d keys different:", n, len(differing))
	shown := 0
	for p := range differing {
		if shown++; shown > 3 {
			break
		}
		fmt.Fprintf(&b, "\n  key %s: %s", p, difference(w.model[p], s.data[p]))
	}
	for i := max(0, n-3); i < min(n+5, len(w.log)); i++ {
		fmt.Fprintf(&b, "\n  operation %d, acknowledged %t: ", i+1, !w.log[i].acked.IsZero())
		for _, c := range w.log[i].commands {
			line := transcript.QuoteCommand(c.args)
			fmt.Fprintf(&b, "[%d] %s; ", c.db, line[:min(len(line), 120)])
		}
	}
	return b.String()
}

// execute applies an operation to the model and returns the keys that may have changed.
func (w *linear) execute(o *op, s *snapshot, e ending) []place {
	if o.void {
		return nil
	}
	until := o.acked
	if until.IsZero() {
		until = e.killed
	}
	when := window{o.sent.UnixMilli() - clockSlack, until.UnixMilli() + clockSlack}
	var touched []place
	for _, c := range o.commands {
		touched = append(touched, w.model.apply(&call{command: c, when: when, found: s})...)
	}
	return touched
}
