package raft

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/persist/journal"
)

// proposals is the journal of a node: the records of a leader until they are committed. Positions count the bytes of
// records that were appended or, at a follower, executed; they start again with the process.
type proposals struct {
	appended atomic.Uint64 // written under mu
	durable  atomic.Uint64 // likewise
	epoch    atomic.Uint64
	leading  atomic.Bool   // changes with all shards locked, and under Node.held
	lost     atomic.Uint64 // callers that wait for positions up to here are never woken
	lease    lease
	timeout  time.Duration // raft-timeout
	wanted   atomic.Bool   // the lease was used since the last renewal
	confirm  atomic.Bool   // the lease is not used: every reply waits for an entry

	mu      sync.Mutex
	changed *sync.Cond // on mu
	term    uint64     // in which the server leads
	open    []byte     // the entry that is being filled, or nil
	openEnd uint64     // the position after it
	sealed  []entry    // entries that are full, or that a checkpoint has ended
	flying  []flight   // entries that Raft has and has not committed, and proofs under way
	cuts    []*cut     // cuts that are not settled
	rotated *cut       // the cut of the last checkpoint that began, or nil
	at      state      // the state at durable
	inside  bool       // the keyspace has a part of an entry of another leader
	stored  state      // of the last checkpoint
	halted  bool       // nothing is appended any more, and Append does not wait
	dropped bool       // the keyspace has changes whose records were not appended
	closed  bool
	failure error

	retention journal.Retention // see Retain

	wake chan struct{} // signals that there is something to propose
}

// entry is an entry to propose to Raft. Without data it is a proof that the server still leads: what replies show that wait for
// it has been committed before, and needs no entry.
type entry struct {
	data []byte
	end  uint64
	term uint64 // the term in which it was executed
}

// proof reports whether e is a proof.
func (e *entry) proof() bool { return e.data == nil }

// cut is a position between two entries, at which a checkpoint or a copy began. Several may have the same position.
type cut struct {
	lsn     uint64
	epoch   uint64
	settled bool
	state   state // the state there, once it is committed
}

// flight is an entry that Raft has, or a proof.
type flight struct {
	end    uint64
	asked  time.Time // when Raft got it: once it is committed, a majority has heard of this leader after this time
	proof  bool
	proved bool
}

const (
	maxEntry   = 1 << 20   // bytes from which on an entry is full
	maxWaiting = 64 << 20  // bytes that may wait to be committed before Append waits
	firstLSN   = 1         // no position is 0, which means none
	maxRecord  = 1<<31 - 1 // longest commands of a record, in bytes
)

var errTakenBack = errors.New("the lead was lost before the changes were committed")

func newProposals(timeout time.Duration) *proposals {
	p := &proposals{timeout: timeout, lease: lease{began: time.Now()}, wake: make(chan struct{}, 1)}
	p.changed = sync.NewCond(&p.mu)
	p.appended.Store(firstLSN)
	p.durable.Store(firstLSN)
	return p
}

// Append implements journal.Journal. While the server does not lead nothing is appended.
func (p *proposals) Append(now int64, commands []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.usable() && p.appended.Load()-p.durable.Load() > maxWaiting {
		p.changed.Wait()
	}
	if !p.usable() {
		p.appended.Add(1) // a position that never becomes durable, so that the record does not count as committed
		p.dropped = true
		return
	}
	if len(commands) >= maxRecord {
		p.fail(fmt.Errorf("record of %d bytes is too long", len(commands)))
		return
	}
	p.add(func(b []byte) []byte { return appendRecord(b, now, commands) })
}

// usable reports whether appended records can be committed. The caller holds mu.
func (p *proposals) usable() bool {
	return p.leading.Load() && !p.halted && !p.closed && p.failure == nil
}

// add adds to the entry that is being filled. The caller holds mu.
func (p *proposals) add(appendTo func([]byte) []byte) {
	if p.open == nil {
		p.open = appendHeader(nil, p.term)
	}
	before := len(p.open)
	p.open = appendTo(p.open)
	p.openEnd = p.appended.Add(uint64(max(len(p.open)-before, 1)))
	if len(p.open) >= maxEntry {
		p.seal()
	}
}

// seal ends the entry that is being filled. The caller holds mu.
func (p *proposals) seal() {
	if p.open == nil {
		return
	}
	p.sealed = append(p.sealed, entry{p.open, p.openEnd, p.term})
	p.open = nil
	p.kick()
}

func (p *proposals) kick() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// next returns the next entry for Raft and counts it as flying; ok is false if no entry waits. An entry also proves that the
// server leads, so it replaces the proofs before it. At most one proof is under way.
func (p *proposals) next() (e entry, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.sealed) == 0 || p.sealed[len(p.sealed)-1].proof() {
		p.seal()
	}
	for len(p.sealed) > 1 && p.sealed[0].proof() {
		p.sealed = p.sealed[1:]
	}
	if len(p.sealed) == 0 || !p.usable() {
		return e, false
	}
	if e = p.sealed[0]; e.proof() && slices.ContainsFunc(p.flying, func(f flight) bool { return f.proof }) {
		return e, false
	}
	p.sealed = p.sealed[1:]
	p.flying = append(p.flying, flight{end: e.end, asked: time.Now(), proof: e.proof()})
	return e, true
}

// committed records that the first flying entry is committed, and the state after it. It proves what the proofs before it
// would prove.
func (p *proposals) committed(s state) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.flying, func(f flight) bool { return !f.proof })
	if i < 0 {
		return errors.New("an unknown entry of this server was committed")
	}
	p.lease.extend(p.flying[i].asked, p.timeout)
	p.reach(p.flying[i].end, s)
	p.flying = p.flying[i+1:]
	p.land()
	return nil
}

// awaits reports whether a proof is still under way.
func (p *proposals) awaits(e entry) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.usable() && p.term == e.term &&
		slices.ContainsFunc(p.flying, func(f flight) bool { return f.proof && f.end == e.end })
}

// proved records that after a time a majority has considered this server the leader.
func (p *proposals) proved(e entry, asked time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.usable() || p.term != e.term {
		return
	}
	p.lease.extend(asked, p.timeout)
	for i := range p.flying {
		p.flying[i].proved = p.flying[i].proved || p.flying[i].proof && p.flying[i].end <= e.end
	}
	p.land()
}

// land removes proofs that are done, up to an entry that is not committed. The caller holds mu.
func (p *proposals) land() {
	for len(p.flying) > 0 && p.flying[0].proved {
		p.reach(p.flying[0].end, p.at)
		p.flying = p.flying[1:]
	}
	p.changed.Broadcast()
}

// reach records that everything up to a position is committed, and the state there. The caller holds mu.
func (p *proposals) reach(end uint64, s state) {
	p.cuts = slices.DeleteFunc(p.cuts, func(c *cut) bool {
		switch {
		case c.lsn > end:
			return false
		case c.lsn == end:
			c.state = s
		default: // there is a proof, which has changed nothing
			c.state = p.at
		}
		c.settled = true
		return true
	})
	p.durable.Store(end)
	p.at = s
}

// pending reports whether there are records that are not committed. The caller holds mu.
func (p *proposals) pending() bool {
	return p.open != nil || slices.ContainsFunc(p.sealed, func(e entry) bool { return !e.proof() }) ||
		slices.ContainsFunc(p.flying, func(f flight) bool { return !f.proof })
}

// entered records that an entry of another leader is being executed, or a copy read: the keyspace has a part of it.
func (p *proposals) entered() {
	p.mu.Lock()
	p.inside = true
	p.mu.Unlock()
}

// done records that the keyspace has reached a state by records of n bytes.
func (p *proposals) done(n int, s state) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.durable.Store(p.appended.Add(uint64(n)))
	p.at, p.inside = s, false
	p.changed.Broadcast()
}

// termOf returns the term in which the server leads, or led last.
func (p *proposals) termOf() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.term
}

// begin proposes later records in a term; confirm says that the lease must not be used.
func (p *proposals) begin(term uint64, confirm bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.term, p.halted, p.dropped = term, false, false
	p.lease.end()
	p.confirm.Store(confirm)
	p.leading.Store(true)
}

// halt stops Append from waiting: the lead in a term is lost, or in the present one if term is 0.
func (p *proposals) halt(term uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if term == 0 || term == p.term {
		p.halted = true
		p.changed.Broadcast()
	}
}

// end ends the proposals of a term. It reports whether changes must be taken back. Callers that still wait are not
// woken: they may have read data that is older than the next leader's.
func (p *proposals) end() (lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leading.Store(false)
	p.lease.end()
	lost = p.dropped || p.pending()
	p.epoch.Add(1)
	to := p.appended.Add(1)
	p.lost.Store(to) // before Durable moves beyond
	p.durable.Store(to)
	p.open, p.sealed, p.flying, p.cuts = nil, nil, nil, nil
	p.changed.Broadcast()
	return lost
}

// Appended implements journal.Journal.
func (p *proposals) Appended() uint64 { return p.appended.Load() }

// Durable implements journal.Journal.
func (p *proposals) Durable() uint64 { return p.durable.Load() }

// Epoch implements journal.Journal.
func (p *proposals) Epoch() uint64 { return p.epoch.Load() }

// Lost implements journal.Journal.
func (p *proposals) Lost(lsn uint64) bool { return lsn != 0 && lsn <= p.lost.Load() }

// WaitPosition implements journal.Journal. The changes that a reply shows must be committed, and no other server may have been
// elected before now: the lease guarantees this or, if it has ended, the commitment of an entry that is proposed later.
func (p *proposals) WaitPosition() uint64 {
	if !p.leading.Load() {
		return 0
	}
	if !p.confirm.Load() {
		p.wanted.Store(true)
		if p.lease.valid() {
			return p.appended.Load()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ask()
	return p.appended.Load()
}

// ask proposes an entry if there are records, and otherwise a proof. The caller holds mu.
func (p *proposals) ask() {
	switch n := len(p.sealed); {
	case !p.usable():
		p.appended.Add(1) // never becomes durable
	case p.open == nil && (n == 0 || !p.sealed[n-1].proof()):
		p.sealed = append(p.sealed, entry{end: p.appended.Add(1), term: p.term})
	}
}

// renew extends the lease, if it was used since the last call.
func (p *proposals) renew() {
	if !p.leading.Load() || p.confirm.Load() || !p.wanted.Swap(false) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.usable() && p.open == nil && len(p.sealed) == 0 {
		p.ask()
		p.kick()
	}
}

// Told implements journal.Journal.
func (p *proposals) Told() uint64 { return p.durable.Load() }

// Buffered implements journal.Journal.
func (p *proposals) Buffered() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.open)
	for _, e := range p.sealed {
		n += len(e.data)
	}
	return int64(n)
}

// Sync implements journal.Journal.
func (p *proposals) Sync(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() {
		p.mu.Lock()
		p.changed.Broadcast()
		p.mu.Unlock()
	})()
	p.Kick()
	p.mu.Lock()
	defer p.mu.Unlock()
	lsn, epoch := p.appended.Load(), p.epoch.Load()
	for p.durable.Load() < lsn && p.epoch.Load() == epoch {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case p.failure != nil:
			return p.failure
		case p.closed:
			return journal.ErrClosed
		}
		p.changed.Wait()
	}
	if p.epoch.Load() != epoch {
		return errTakenBack
	}
	return nil
}

// Kick implements journal.Journal.
func (p *proposals) Kick() { p.kick() }

// Commit implements journal.Journal. The proposer does it.
func (p *proposals) Commit() { p.kick() }

// SetPolicy implements journal.Journal. There is only one policy.
func (p *proposals) SetPolicy(journal.Policy) {}

// Err implements journal.Journal.
func (p *proposals) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failure
}

// fail ends the journal for good. The caller holds mu.
func (p *proposals) fail(err error) {
	if p.failure == nil {
		p.failure, p.dropped = err, true
		p.appended.Add(1)
	}
	p.changed.Broadcast()
}

// FailedNext implements journal.Journal.
func (p *proposals) FailedNext() uint64 { return p.appended.Load() }

// Resume implements journal.Journal. A failed server must be restarted.
func (p *proposals) Resume() error { return p.Err() }

// Rotate implements journal.Journal.
func (p *proposals) Rotate() uint64 {
	c := p.cut()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rotated = c; c == nil {
		return 0
	}
	return c.lsn
}

// cut returns the position of a checkpoint or copy with all changes until now, or nil within an entry.
func (p *proposals) cut() *cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inside {
		return nil
	}
	p.seal()
	c := &cut{lsn: p.appended.Load(), epoch: p.epoch.Load()}
	if p.durable.Load() == c.lsn {
		c.settled, c.state = true, p.at
	} else {
		p.cuts = append(p.cuts, c)
	}
	return c
}

// await waits until all records before a cut are committed, and returns the group's state there.
func (p *proposals) await(c *cut) (state, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !c.settled {
		switch {
		case p.epoch.Load() != c.epoch:
			return state{}, errTakenBack
		case p.failure != nil:
			return state{}, p.failure
		case p.closed:
			return state{}, journal.ErrClosed
		}
		p.changed.Wait()
	}
	return c.state, nil
}

// rotatedAt returns the cut of the last checkpoint that began, if that is at a position.
func (p *proposals) rotatedAt(lsn uint64) *cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rotated == nil || p.rotated.lsn != lsn {
		return nil
	}
	return p.rotated
}

// Anchor implements journal.Journal.
func (n *Node) Anchor(lsn uint64) (journal.Anchor, error) {
	c := n.rotatedAt(lsn)
	if c == nil {
		return journal.Anchor{}, fmt.Errorf("no checkpoint began at position %d", lsn)
	}
	s, err := n.await(c)
	if err != nil {
		return journal.Anchor{}, err
	}
	size := int64(math.MaxInt64)
	if n.o.Trailing != nil {
		size = n.o.Trailing()
	}
	others := n.log.Before(s.index+1, trailing, size)
	if s.start, err = n.log.Anchor(n.kept(s.index, others, time.Now().UnixMilli())); err != nil {
		return journal.Anchor{}, err
	}
	n.mu.Lock()
	c.state.start = s.start
	n.mu.Unlock()
	return journal.Anchor{Group: s.appendTo(nil)}, nil
}

// Release implements journal.Journal.
func (n *Node) Release(before uint64) error {
	c := n.rotatedAt(before)
	n.mu.Lock()
	if c == nil || !c.settled {
		n.mu.Unlock()
		return nil
	}
	n.stored = c.state
	n.mu.Unlock()
	return n.log.Release(c.state.start)
}

// Hold implements journal.Journal.
func (n *Node) Hold() (release func()) {
	n.held.Lock()
	return n.held.Unlock
}

// Size implements journal.Journal.
func (n *Node) Size() int64 { return n.log.Size() }

var _ journal.Journal = (*Node)(nil)
