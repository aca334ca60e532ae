package fanout

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/cluster/peers"
	"github.com/atomredis/atomredis/internal/cluster/shards"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

// Cluster is what a Caller needs of the server; shards.Shards is one.
type Cluster interface {
	Now() *shards.State
	// Servers returns the addresses of another shard's servers, the last known leader first.
	Servers(shard string) []string
	Dial(addr string, purpose peer.Purpose, timeout time.Duration) (*peer.Conn, error)
}

// Caller asks the other shards. It reuses connections. Any goroutine may call its methods.
type Caller struct {
	cluster  Cluster
	retryFor time.Duration // for which shards are asked again

	mu     sync.Mutex
	idle   map[string][]idleConn // by address, the latest last
	closed bool
}

// idleConn is an idle connection, and the time since when.
type idleConn struct {
	*peer.Conn
	since time.Time
}

const (
	maxIdle   = 8 // connections to a server that are kept
	idleFor   = 30 * time.Second
	retryFor  = 3 * time.Second
	pause     = 10 * time.Millisecond
	errOldest = "a shard runs a version without search across shards"
)

// NewCaller returns a Caller without connections.
func NewCaller(c Cluster) *Caller {
	return &Caller{cluster: c, retryFor: retryFor, idle: map[string][]idleConn{}}
}

// Close closes idle connections, now and as they become idle.
func (c *Caller) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, list := range c.idle {
		for _, conn := range list {
			conn.Close()
		}
	}
	clear(c.idle)
}

// take returns an idle connection, nil if there is none.
func (c *Caller) take(addr string) *peer.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.idle[addr]
	if len(list) == 0 {
		return nil
	}
	conn := list[len(list)-1]
	c.idle[addr] = list[:len(list)-1]
	return conn.Conn
}

// put keeps a connection for the next question, and closes those that have been idle for long.
func (c *Caller) put(addr string, conn *peer.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for addr, list := range c.idle {
		c.idle[addr] = slices.DeleteFunc(list, func(old idleConn) bool {
			if now.Sub(old.since) < idleFor {
				return false
			}
			old.Close()
			return true
		})
	}
	if c.closed || len(c.idle[addr]) >= maxIdle {
		conn.Close()
		return
	}
	c.idle[addr] = append(c.idle[addr], idleConn{conn, now})
}

// Unreachable is the error for a shard that does not answer.
type Unreachable struct {
	Shard string
	Err   error
}

// Error implements error.
func (e *Unreachable) Error() string {
	return fmt.Sprintf("CLUSTERDOWN Shard %s does not answer: %s", e.Shard, strings.ReplaceAll(e.Err.Error(), "\n", ": "))
}

// Unwrap implements the interface of errors.As.
func (e *Unreachable) Unwrap() error { return e.Err }

var errNoServer = errors.New("it has no leader")

// Ask asks the leader of another shard. The answer must begin before the deadline.
func (c *Caller) Ask(shard string, q *Question, deadline time.Time) (Answer, error) {
	err := errNoServer
	for _, addr := range c.cluster.Servers(shard) {
		var a *remote
		a, err = c.ask(addr, q, deadline)
		switch {
		case err == nil && a.view.Shard == shard:
			return a, nil
		case err == nil:
			a.drop()
			err = errNoServer
		case errors.Is(err, peer.Again), errors.Is(err, peer.Refused):
			return nil, err
		}
	}
	return nil, &Unreachable{shard, err}
}

// ask asks a server. A connection that was idle may have been closed by the other end.
func (c *Caller) ask(addr string, q *Question, deadline time.Time) (*remote, error) {
	if conn := c.take(addr); conn != nil {
		a, err := c.begin(addr, conn, q, deadline)
		var answered *peer.Error
		if err == nil || errors.As(err, &answered) {
			return a, err
		}
	}
	conn, err := c.cluster.Dial(addr, peer.Search, min(peers.Timeout, time.Until(deadline)))
	switch {
	case errors.Is(err, peer.BadPurpose):
		return nil, Refused("ERR " + errOldest)
	case err != nil:
		return nil, err
	case conn.Version() == 0:
		conn.Close()
		return nil, Refused("ERR " + errOldest)
	}
	conn.SetLimit(maxFrame)
	return c.begin(addr, conn, q, deadline)
}

// begin sends a question and reads how the answer begins.
func (c *Caller) begin(addr string, conn *peer.Conn, q *Question, deadline time.Time) (*remote, error) {
	conn.SetDeadline(deadline)
	a := &remote{caller: c, addr: addr, conn: conn, deadline: deadline}
	err := conn.Request(q)
	if err == nil {
		var payload []byte
		if payload, err = a.receive(viewFrame); err == nil {
			err = json.Unmarshal(payload, &a.view)
		}
	}
	if err != nil {
		a.drop()
		return nil, err
	}
	return a, nil
}

// remote is the answer of another server.
type remote struct {
	caller   *Caller
	addr     string
	conn     *peer.Conn // nil when the answer has ended
	deadline time.Time
	view     View
	wanted   bool
}

// View implements Answer.
func (a *remote) View() *View { return &a.view }

// receive returns the payload of the next frame. After an error of the other server the connection is as before.
func (a *remote) receive(want peer.Kind) ([]byte, error) {
	kind, payload, err := a.conn.Receive()
	switch {
	case err != nil:
		return nil, err
	case kind == peer.Failed:
		a.release()
		return nil, peer.AsFailure(payload)
	case kind != want:
		return nil, peer.ErrFrame
	}
	return payload, nil
}

// release keeps the connection for the next question.
func (a *remote) release() {
	a.caller.put(a.addr, a.conn)
	a.conn = nil
}

// drop closes the connection.
func (a *remote) drop() {
	if a.conn != nil {
		a.conn.Close()
		a.conn = nil
	}
}

// Keep implements Answer.
func (a *remote) Keep(n int) error {
	a.conn.SetDeadline(a.deadline)
	return a.conn.Send(keepFrame, binary.AppendUvarint(nil, uint64(n)))
}

// Want implements Answer.
func (a *remote) Want() error {
	if a.wanted || a.conn == nil {
		return nil
	}
	a.wanted = true
	a.conn.SetDeadline(time.Now().Add(sendTimeout))
	return errors.Join(a.conn.Send(nextFrame), a.conn.Flush())
}

// Part implements Answer.
func (a *remote) Part() (part []byte, more bool, err error) {
	if err := a.Want(); err != nil {
		return nil, false, a.failed(err)
	}
	a.wanted = false
	a.conn.SetDeadline(time.Now().Add(partTimeout))
	payload, err := a.receive(partFrame)
	if err == nil && len(payload) == 0 {
		err = peer.ErrFrame
	}
	if err != nil {
		return nil, false, a.failed(err)
	}
	if more = payload[0] != 0; !more {
		a.release()
	}
	return payload[1:], more, nil
}

// failed ends an answer.
func (a *remote) failed(err error) error {
	a.drop()
	if answered := (*peer.Error)(nil); errors.As(err, &answered) {
		return err
	}
	return &Unreachable{a.view.Shard, err}
}

// partTimeout is how long a shard may compute a part.
const partTimeout = 5 * time.Minute

// Close implements Answer.
func (a *remote) Close() {
	if a.conn == nil {
		return
	}
	if a.wanted { // a requested part will still arrive
		a.drop()
		return
	}
	a.conn.SetDeadline(time.Now().Add(sendTimeout))
	if errors.Join(a.conn.Send(endFrame), a.conn.Flush()) != nil {
		a.drop()
		return
	}
	a.release()
}

// ErrIncomplete says that no shard has answered for some slots.
var ErrIncomplete = errors.New("CLUSTERDOWN Hash slot not served")

// Gather asks all shards the question of ask, and repeats that until each slot with an owner is in exactly one view.
// own answers for the server's own shard. timeout is how long a shard may take. With partial, incomplete answers are
// accepted in the end; whole reports whether they are complete. The answers are in the order of their shards' names.
func (c *Caller) Gather(ask func() *Question, own func(q *Question) (Answer, error), timeout time.Duration, partial bool) (answers []Answer, whole bool, err error) {
	for until := time.Now().Add(c.retryFor); ; time.Sleep(pause) {
		answers, err = c.askAll(ask(), own, time.Now().Add(timeout))
		if errors.Is(err, peer.Refused) {
			CloseAll(answers)
			return nil, false, err
		}
		all, once := apart(Views(answers))
		if err == nil && once {
			free := c.cluster.Now().Owners.SlotsOf("")
			owned := cluster.AllSlots.Without(&free)
			if rest := owned.Without(&all); rest.Empty() {
				return answers, true, nil
			}
		}
		if time.Now().After(until) {
			if partial && once && len(answers) > 0 {
				return answers, false, nil
			}
			CloseAll(answers)
			if err == nil {
				err = ErrIncomplete
			}
			return nil, false, err
		}
		CloseAll(answers)
	}
}

// CloseAll closes answers.
func CloseAll(answers []Answer) {
	for _, a := range answers {
		a.Close()
	}
}

// askAll asks each shard once. It needs no answer of shards without slots. With an error, it also returns the
// answers so far.
func (c *Caller) askAll(q *Question, own func(q *Question) (Answer, error), deadline time.Time) (answers []Answer, err error) {
	st := c.cluster.Now()
	var mu sync.Mutex
	var asking sync.WaitGroup
	keep := func(a Answer, failed error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case failed == nil:
			answers = append(answers, a)
		case err == nil || errors.Is(failed, peer.Refused):
			err = failed
		}
	}
	for _, o := range st.Record.Others {
		asking.Go(func() {
			a, failed := c.Ask(o.ID, q, deadline)
			if slots := st.Owners.SlotsOf(o.ID); failed == nil || !slots.Empty() {
				keep(a, failed)
			}
		})
	}
	keep(own(q))
	asking.Wait()
	slices.SortFunc(answers, func(a, b Answer) int { return strings.Compare(a.View().Shard, b.View().Shard) })
	return answers, err
}
