// Sending a sequence to both servers and finding the first difference.

package differential

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// Language determines the commands that a check sends, and how it compares the replies.
type Language struct {
	// Generate returns the sequence of operations for a seed, with about the given number of commands.
	Generate func(seed uint64, commands int) []Op
	// Same reports whether two servers' replies to a command agree.
	Same func(args []string, a, b transcript.Value) bool
	// Known returns the reason for which a difference is known, "" if it is not.
	Known func(args []string, a, b transcript.Value) string
	// Settle is called before an operation with Op.Settles, with a connection to each server.
	Settle func(a, b *transcript.Conn) error
	// Rewrite returns a command of an operation with Op.Chained, built from the command before it and the server's
	// reply to that.
	Rewrite func(cmd, before []string, reply transcript.Value) []string
}

// Commands are the commands of the core, over keys of all types.
var Commands = Language{Generate: Generate, Same: same, Known: knownReason}

// Runner sends sequences to two servers, whose data it deletes.
type Runner struct {
	lang  Language
	addrs [2]string
	sides [2]*side

	// Known counts the known differences by reason.
	Known map[string]int

	// waited holds the blocking operations of the last run that got no reply at once.
	waited map[int]bool
}

// Difference is the first disagreement of the two servers in a sequence.
type Difference struct {
	// Op is the index of the operation, or -1 if the difference appeared after the last one.
	Op int
	// What is the command, or a description of what else was compared.
	What string
	// A and B are the servers' replies.
	A, B string
	// Check holds the commands that show a difference in the final state, on a connection of their own.
	Check [][]string
}

func (d *Difference) String() string {
	return fmt.Sprintf("%s\n  A: %s\n  B: %s", d.What, d.A, d.B)
}

const (
	// batchTimeout is the most time that a server may take for one batch.
	batchTimeout = 30 * time.Second
	// batchLimit bounds the commands sent before replies are read.
	batchLimit = 100
	// databases is the number of databases that the generator uses.
	databases = 3
)

// side is one of the two servers.
type side struct {
	conns     [connCount]*transcript.Conn
	blockerID string
	markers   int
}

// batchError is a failure of a connection. It counts as a difference: one server hangs or disconnected.
type batchError struct {
	side int
	err  error
}

func (e *batchError) Error() string { return fmt.Sprintf("server %c: %v", 'A'+e.side, e.err) }

// NewRunner makes a runner for the servers at two addresses, in the form that transcript.Dial accepts.
func NewRunner(lang Language, a, b string) *Runner {
	return &Runner{lang: lang, addrs: [2]string{a, b}, Known: map[string]int{}}
}

// Close closes all connections.
func (r *Runner) Close() {
	for i, s := range r.sides {
		if s == nil {
			continue
		}
		for _, c := range s.conns {
			if c != nil {
				c.Close()
			}
		}
		r.sides[i] = nil
	}
}

// connect ensures that both sides have fresh or reset connections and no data.
func (r *Runner) connect() error {
	for i := range r.sides {
		if r.sides[i] != nil {
			continue
		}
		s := &side{}
		r.sides[i] = s
		for n := range s.conns {
			nc, err := transcript.Dial(r.addrs[i])
			if err != nil {
				return &batchError{i, err}
			}
			s.conns[n] = transcript.NewConn(nc)
		}
		id, err := s.conns[blocker].Do(batchTimeout, "CLIENT", "ID")
		if err != nil {
			return &batchError{i, err}
		}
		s.blockerID = id.Text
		// Redis notices timeouts of blocked clients only when its timer ticks. A server without the parameter refuses
		// it, which does no harm.
		if _, err := s.conns[otherConn].Do(batchTimeout, "CONFIG", "SET", "hz", "500"); err != nil {
			return &batchError{i, err}
		}
	}
	replies, err := r.batch(otherConn, [][]string{{"FLUSHALL"},
		{"CONFIG", "SET", "notify-keyspace-events", "", "maxmemory", "0"}})
	if err != nil {
		return err
	}
	for i := range replies {
		for _, v := range replies[i] {
			if v.Kind != transcript.Simple {
				return &batchError{i, fmt.Errorf("cannot start: %s", v)}
			}
		}
	}
	return nil
}

// Run sends a sequence to both servers and returns the first difference, or nil. The error is for failures that are not
// a difference, such as an unreachable server.
func (r *Runner) Run(ops []Op) (*Difference, error) {
	if err := r.connect(); err != nil {
		r.Close()
		return nil, err
	}
	r.waited = map[int]bool{}
	run := &sequence{Runner: r, ops: ops}
	d, err := run.play()
	if err == nil && d == nil {
		d, err = run.compareState()
	}
	if err != nil {
		d = &Difference{Op: run.at, What: "connection", A: "expected to work", B: err.Error()}
	}
	if d != nil {
		r.Close()
	}
	return d, nil
}

// batch sends commands to both servers and reads a reply for each.
func (r *Runner) batch(conn int, cmds [][]string) ([2][]value, error) {
	var replies [2][]value
	for i, s := range r.sides {
		for _, cmd := range cmds {
			s.conns[conn].Append(cmd...)
		}
		if err := s.conns[conn].Flush(); err != nil {
			return replies, &batchError{i, err}
		}
	}
	for i, s := range r.sides {
		replies[i] = make([]value, len(cmds))
		for n := range cmds {
			read := s.conns[conn].ReadBatched
			if n == 0 {
				read = func() (value, error) { return s.conns[conn].Read(batchTimeout) }
			}
			v, err := read()
			if err != nil {
				return replies, &batchError{i, err}
			}
			replies[i][n] = v
		}
	}
	return replies, nil
}

// drain reads everything that has arrived at the subscriber, up to the reply to a PING.
func (r *Runner) drain() ([2][]value, error) {
	var replies [2][]value
	for i, s := range r.sides {
		c := s.conns[subscriber]
		s.markers++
		marker := "marker-" + strconv.Itoa(s.markers)
		c.Append("PING", marker)
		if err := c.Flush(); err != nil {
			return replies, &batchError{i, err}
		}
		for {
			v, err := c.Read(batchTimeout)
			if err != nil {
				return replies, &batchError{i, err}
			}
			if v.Text == marker || len(v.Elems) == 2 && v.Elems[1].Text == marker {
				break
			}
			if aboutConsumer(v) {
				continue // since Redis 7.2 more consumers are created, and so more are removed
			}
			replies[i] = append(replies[i], v)
			if v.Kind == transcript.Closed {
				break
			}
		}
	}
	return replies, nil
}

// aboutConsumer reports whether a message is about the creation or removal of a consumer.
func aboutConsumer(v value) bool {
	n := len(v.Elems)
	if n < 2 {
		return false
	}
	for _, event := range []string{"xgroup-createconsumer", "xgroup-delconsumer"} {
		if v.Elems[n-1].Text == event || strings.HasSuffix(v.Elems[n-2].Text, ":"+event) {
			return true
		}
	}
	return false
}

// sequence is one run of a list of operations.
type sequence struct {
	*Runner
	ops []Op
	// at is the index of the current operation.
	at int
	// queued holds the commands between MULTI and EXEC, per connection.
	queued [connCount][][]string
	// unsettled reports that an operation without Settles was sent after the servers settled.
	unsettled bool
	// blocked reports that the blocker waits, and waiting is its command.
	blocked bool
	waiting []string
}

// play sends all operations; consecutive ones on the same connection go in one batch.
func (q *sequence) play() (*Difference, error) {
	for q.at = 0; q.at < len(q.ops); {
		conn, end, n := q.ops[q.at].Conn, q.at, 0
		for end < len(q.ops) && q.ops[end].Conn == conn && n < batchLimit && (end == q.at || q.joins(end)) {
			n += len(q.ops[end].Cmds)
			end++
		}
		if q.ops[q.at].Settles && q.unsettled {
			q.unsettled = false
			if err := q.lang.Settle(q.sides[0].conns[otherConn], q.sides[1].conns[otherConn]); err != nil {
				return nil, err
			}
		}
		q.unsettled = q.unsettled || !q.ops[q.at].Settles
		var d *Difference
		var err error
		switch {
		case conn == blocker:
			d, err = q.block(q.ops[q.at].Cmds[0])
		case q.ops[q.at].Chained:
			d, err = q.chain(q.ops[q.at])
		case conn == subscriber:
			d, err = q.subscribe(q.ops[q.at:end])
		default:
			d, err = q.exchange(conn, q.ops[q.at:end])
		}
		if d != nil || err != nil {
			return d, err
		}
		q.at = end
	}
	q.at = -1
	if d, err := q.unblock(); d != nil || err != nil {
		return d, err
	}
	return q.subscribe(nil)
}

// joins reports whether an operation is sent in one batch with the one before it.
func (q *sequence) joins(op int) bool {
	a, b := q.ops[op-1], q.ops[op]
	return b.Conn != blocker && !a.Chained && !b.Chained && a.Settles == b.Settles
}

// chain sends the commands of an operation one by one, since each may depend on the reply before it. It stops at a
// known difference.
func (q *sequence) chain(op Op) (*Difference, error) {
	var replies [2]value
	for i, cmd := range op.Cmds {
		for s, side := range q.sides {
			sent := cmd
			if i > 0 {
				sent = q.lang.Rewrite(cmd, op.Cmds[i-1], replies[s])
			}
			v, err := side.conns[op.Conn].Do(batchTimeout, sent...)
			if err != nil {
				return nil, &batchError{s, err}
			}
			replies[s] = v
		}
		switch a, b := replies[0], replies[1]; {
		case q.lang.Same(cmd, a, b):
		case q.agreeOne(cmd, a, b) || q.agreeOne(op.Cmds[0], a, b):
			return nil, nil // the following commands depend on it
		default:
			return &Difference{Op: q.at, What: transcript.QuoteCommand(cmd), A: a.String(), B: b.String()}, nil
		}
	}
	return nil, nil
}

// exchange sends a run of operations and compares the replies one by one.
func (q *sequence) exchange(conn int, ops []Op) (*Difference, error) {
	var cmds [][]string
	for _, op := range ops {
		cmds = append(cmds, op.Cmds...)
	}
	replies, err := q.batch(conn, cmds)
	if err != nil {
		return nil, err
	}
	n := 0
	for i, op := range ops {
		for j, cmd := range op.Cmds {
			a, b := replies[0][n], replies[1][n]
			if !q.agree(conn, cmd, a, b) {
				return &Difference{Op: q.at + i, What: transcript.QuoteCommand(cmd), A: a.String(), B: b.String()}, nil
			}
			if j > 0 {
				for side := range replies {
					if full := replies[side][n-1]; !chosenFrom(full, cmd, replies[side][n]) {
						return &Difference{Op: q.at + i, What: transcript.QuoteCommand(cmd) + " is no valid choice of server " +
							string(rune('A'+side)) + " from " + full.String(),
							A: a.String(), B: b.String()}, nil
					}
				}
			}
			n++
		}
	}
	return nil, nil
}

// agree compares two replies; those within EXEC are each compared by the rule for their own command.
func (q *sequence) agree(conn int, cmd []string, a, b value) bool {
	queue := q.queued[conn]
	switch name := strings.ToUpper(cmd[0]); {
	case a.Kind == transcript.Simple && a.Text == "QUEUED":
		q.queued[conn] = append(queue, cmd)
	case name == "EXEC" || name == "DISCARD":
		q.queued[conn] = nil
		if len(a.Elems) != len(queue) || len(b.Elems) != len(queue) || a.Kind != b.Kind {
			break
		}
		for i := range queue {
			if !q.agreeOne(queue[i], a.Elems[i], b.Elems[i]) {
				return false
			}
		}
		return a.Null == b.Null
	}
	return q.agreeOne(cmd, a, b)
}

func (q *sequence) agreeOne(cmd []string, a, b value) bool {
	if q.lang.Same(cmd, a, b) {
		return true
	}
	reason := q.lang.Known(cmd, a, b)
	if reason != "" {
		q.Known[reason]++
	}
	return reason != ""
}

// block sends a command that may wait forever, and returns when both servers have replied or are waiting.
func (q *sequence) block(cmd []string) (*Difference, error) {
	if d, err := q.unblock(); d != nil || err != nil {
		return d, err
	}
	q.blocked, q.waiting = true, cmd
	var waits [2]bool
	for i, s := range q.sides {
		c := s.conns[blocker]
		c.Append(cmd...)
		if err := c.Flush(); err != nil {
			return nil, &batchError{i, err}
		}
		for end := time.Now().Add(batchTimeout); !waits[i] && !c.Ready(100*time.Microsecond); {
			n, err := transcript.BlockedClients(s.conns[otherConn])
			if err != nil {
				return nil, &batchError{i, err}
			}
			waits[i] = n > 0
			if time.Now().After(end) {
				return nil, &batchError{i, fmt.Errorf("%s neither blocks nor replies", transcript.QuoteCommand(cmd))}
			}
		}
	}
	if waits[0] != waits[1] {
		said := map[bool]string{true: "blocks", false: "replies at once"}
		return &Difference{Op: q.at, What: transcript.QuoteCommand(cmd), A: said[waits[0]], B: said[waits[1]]}, nil
	}
	q.waited[q.at] = waits[0]
	if waits[0] {
		return nil, nil
	}
	return q.collect()
}

// unblock ends the wait of the blocker, if it still waits, and compares its replies.
func (q *sequence) unblock() (*Difference, error) {
	if !q.blocked {
		return nil, nil
	}
	var replies [2]value
	for i, s := range q.sides {
		v, err := s.conns[otherConn].Do(batchTimeout, "CLIENT", "UNBLOCK", s.blockerID)
		if err != nil {
			return nil, &batchError{i, err}
		}
		replies[i] = v
	}
	// Which streams wake XREAD differs between releases; then its reply must be a known difference.
	if !replies[0].Equal(replies[1]) && !strings.EqualFold(q.waiting[0], "XREAD") {
		return &Difference{Op: q.at, What: "CLIENT UNBLOCK of " + transcript.QuoteCommand(q.waiting),
			A: replies[0].String(), B: replies[1].String()}, nil
	}
	return q.collect()
}

// collect reads and compares the blocker's reply.
func (q *sequence) collect() (*Difference, error) {
	q.blocked = false
	var replies [2]value
	for i, s := range q.sides {
		v, err := s.conns[blocker].Read(batchTimeout)
		if err != nil {
			return nil, &batchError{i, err}
		}
		replies[i] = v
	}
	if a, b := replies[0], replies[1]; !q.agreeOne(q.waiting, a, b) {
		return &Difference{Op: q.at, What: "blocked " + transcript.QuoteCommand(q.waiting), A: a.String(), B: b.String()}, nil
	}
	return nil, nil
}

// subscribe sends the subscriber's commands and compares everything that it has received so far.
func (q *sequence) subscribe(ops []Op) (*Difference, error) {
	for i, s := range q.sides {
		for _, op := range ops {
			for _, cmd := range op.Cmds {
				s.conns[subscriber].Append(cmd...)
			}
		}
		if err := s.conns[subscriber].Flush(); err != nil {
			return nil, &batchError{i, err}
		}
	}
	got, err := q.drain()
	if err != nil {
		return nil, err
	}
	for i := range got {
		slices.SortStableFunc(got[i], compareSources)
	}
	for n := range max(len(got[0]), len(got[1])) {
		text := [2]string{"nothing", "nothing"}
		var v [2]value
		for i := range got {
			if n < len(got[i]) {
				v[i] = got[i][n]
				text[i] = v[i].String()
			}
		}
		if text[0] != text[1] && !isGreeting(v[0], v[1]) {
			return &Difference{Op: q.at, What: "message to a subscriber", A: text[0], B: text[1]}, nil
		}
	}
	return nil, nil
}

// compareSources orders messages by kind and by channel or pattern. The messages of one source keep their order. Which
// of a client's patterns receives a message first is undefined.
func compareSources(a, b value) int {
	for i := range min(2, len(a.Elems), len(b.Elems)) {
		if c := strings.Compare(a.Elems[i].Text, b.Elems[i].Text); c != 0 {
			return c
		}
	}
	return len(a.Elems) - len(b.Elems)
}

// isGreeting recognises the replies to HELLO, which name the server and the connection.
func isGreeting(a, b value) bool {
	return a.Kind == transcript.Map && b.Kind == transcript.Map && listedModules([]string{"HELLO"}, a, b)
}

// stateReads maps a type to the command, without the key, that reads the whole value of a key.
var stateReads = map[string][]string{
	"string": {"GET", ""},
	"hash":   {"HGETALL", ""},
	"list":   {"LRANGE", "", "0", "-1"},
	"set":    {"SMEMBERS", ""},
	"zset":   {"ZRANGE", "", "0", "-1", "WITHSCORES"},
	"stream": {"XINFO", "STREAM", "", "FULL", "COUNT", "0"},
}

// compareState ends all sessions and compares all data of the servers.
func (q *sequence) compareState() (*Difference, error) {
	if err := q.reset(); err != nil {
		return nil, err
	}
	var cmds [][]string
	for db := range databases {
		cmds = append(cmds, []string{"SELECT", strconv.Itoa(db)}, []string{"KEYS", "*"})
	}
	replies, err := q.batch(otherConn, cmds)
	if err != nil {
		return nil, err
	}
	var about [][]string
	for db := range databases {
		n := 2*db + 1
		if d := q.stateDifference(db, cmds[n], replies[0][n], replies[1][n]); d != nil {
			return d, nil
		}
		var keys []string
		for _, e := range replies[0][n].Elems {
			keys = append(keys, e.Text)
		}
		slices.Sort(keys)
		if len(keys) > 0 {
			about = append(about, cmds[2*db])
		}
		for _, key := range keys {
			about = append(about, []string{"TYPE", key}, []string{"PEXPIRETIME", key})
		}
	}
	replies, err = q.batch(otherConn, about)
	if err != nil {
		return nil, err
	}
	var reads [][]string
	db := 0
	for n, cmd := range about {
		if d := q.stateDifference(db, cmd, replies[0][n], replies[1][n]); d != nil {
			return d, nil
		}
		switch cmd[0] {
		case "SELECT":
			db, _ = strconv.Atoi(cmd[1])
			reads = append(reads, cmd)
		case "TYPE":
			if read := slices.Clone(stateReads[replies[0][n].Text]); read != nil {
				read[slices.Index(read, "")] = cmd[1]
				reads = append(reads, read)
			}
		}
	}
	replies, err = q.batch(otherConn, reads)
	if err != nil {
		return nil, err
	}
	for n, cmd := range reads {
		if cmd[0] == "SELECT" {
			db, _ = strconv.Atoi(cmd[1])
		}
		if d := q.stateDifference(db, cmd, replies[0][n], replies[1][n]); d != nil {
			return d, nil
		}
	}
	return nil, nil
}

func (q *sequence) stateDifference(db int, cmd []string, a, b value) *Difference {
	if q.agreeOne(cmd, a, b) {
		return nil
	}
	return &Difference{Op: -1, What: fmt.Sprintf("state of database %d: %s", db, transcript.QuoteCommand(cmd)),
		A: a.String(), B: b.String(),
		Check: [][]string{{"SELECT", strconv.Itoa(db)}, cmd}}
}

// reset returns every connection to its initial state.
func (q *sequence) reset() error {
	for conn := range connCount {
		replies, err := q.batch(conn, [][]string{{"RESET"}})
		if err != nil {
			return err
		}
		for i := range replies {
			if v := replies[i][0]; v.Kind != transcript.Simple || v.Text != "RESET" {
				return &batchError{i, fmt.Errorf("RESET gave %s", v)}
			}
		}
	}
	return nil
}
