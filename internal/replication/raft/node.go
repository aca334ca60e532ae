package raft

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	consensus "github.com/hashicorp/raft"

	"github.com/atomredis/atomredis/internal/family"
	"github.com/atomredis/atomredis/internal/replication/quorum"
	"github.com/atomredis/atomredis/internal/wire/peer"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/journal"
	"github.com/atomredis/atomredis/persist/raftlog"
)

// trailing is how many entries before a checkpoint are kept, for servers that were offline for a while. Options.Trailing
// limits their bytes.
const trailing = 10_000

// rpcTimeout is the timeout for a peer's answer; a copy gets more time, by its length.
const rpcTimeout = 2 * time.Second

// Node is a server's part in the group: its journal, as persist.Options.Group needs it. Open makes it, and Start
// lets it take part.
type Node struct {
	*proposals
	o       quorum.Options
	machine quorum.Machine
	log     *raftlog.Log
	trans   transport
	mux     *mux
	raft    atomic.Pointer[consensus.Raft] // nil before the node takes part

	// turn is held while the role changes. held is taken after it and before the shards of the keyspace, while entries are
	// executed and while a checkpoint or a copy begins.
	turn    lock
	held    sync.Mutex
	elected bool // the server was elected and has not led yet; used by watchRole
	// Protected by held, and by all shards where they change the keyspace.
	applied state  // the last entry that the keyspace has, and the members of the group then
	lost    bool   // the keyspace has uncommitted changes
	handed  uint64 // the term in which the lead was to be handed over last

	snapshots snapshots
	peers     peers
	progress  progress
	futures   chan proposed
	handing   atomic.Bool   // the lead is being handed over
	full      atomic.Bool   // the log has failed, or cannot follow the leader's
	executed  atomic.Uint64 // index of the last committed entry that was executed
	removed   atomic.Bool   // the server does not belong to its group any more
	recheck   chan struct{} // signals that the role may have changed
	stop      chan struct{}
	running   sync.WaitGroup
	closing   sync.Once

	failed struct {
		sync.Mutex
		err error
	}
}

// lock is a mutex whose holder may sleep: in a bubble of testing/synctest time stands still while a goroutine waits
// for a sync.Mutex.
type lock chan struct{}

func (l lock) Lock()   { l <- struct{}{} }
func (l lock) Unlock() { <-l }

func init() {
	quorum.Register(quorum.Implementation{Open: func(o quorum.Options) (quorum.Node, error) {
		n, err := Open(o)
		if err != nil {
			return nil, err
		}
		return n, nil
	}, Read: read, Recover: recoverGroup})
}

// Open opens the log. It exchanges nothing with peers before Start.
func Open(o quorum.Options) (*Node, error) {
	stored, err := decodeState(o.State)
	if err != nil {
		return nil, err
	}
	n := &Node{
		proposals: newProposals(o.Timeout), o: o, applied: stored, futures: make(chan proposed, 1024),
		recheck: make(chan struct{}, 1), stop: make(chan struct{}), turn: make(lock, 1),
	}
	n.proposals.at, n.proposals.stored = stored, stored
	n.executed.Store(stored.index)
	n.snapshots.n, n.peers.n, n.peers.wake, n.progress.wake = n, n, make(chan struct{}, 1), make(chan struct{}, 1)
	dir, err := logDir(o.FS, o.Dir)
	if err != nil {
		return nil, err
	}
	n.log, err = openLog(raftlog.Options{FS: o.FS, Dir: dir, SegmentSize: o.SegmentSize, Log: o.Log, Waited: o.Waited}, stored)
	if damage, ok := errors.AsType[*journal.DamageError](err); ok && damage.Err == nil { // what cannot be read now may be sound
		if leader := leaderOfMember(o); leader != "" {
			return nil, &quorum.DamagedError{Leader: leader, Err: err}
		}
	}
	if err != nil {
		return nil, err
	}
	if err := errors.Join(n.checkWitness(), removeCopies(o.FS, o.Dir)); err != nil {
		return nil, errors.Join(err, n.log.Close())
	}
	return n, nil
}

// openLog opens the log that continues a stored state.
func openLog(o raftlog.Options, stored state) (*raftlog.Log, error) {
	o.Start = stored.start
	log, err := raftlog.Open(o)
	if err != nil {
		return nil, err
	}
	last, err := log.LastIndex()
	if err == nil && last > 0 && last < stored.index {
		// A copy was stored, but the log that it replaces was not cleared yet.
		var first uint64
		if first, err = log.FirstIndex(); err == nil {
			err = log.DeleteRange(first, last)
		}
	}
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return log, nil
}

// logDir creates the directory of the log.
func logDir(fs disk.FS, in string) (string, error) {
	dir := fs.PathJoin(in, journal.DirName)
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return dir, disk.SyncDir(fs, in)
}

// Start lets the node take part in the group, once it is known that it may.
func (n *Node) Start(m quorum.Machine) error {
	n.machine = m
	listener := n.o.Listener
	if listener == nil {
		var err error
		if listener, err = net.Listen(family.Network(n.o.Addr), n.o.Addr); err != nil {
			return err
		}
	}
	conns := newMux(n, listener)
	n.failed.Lock()
	n.mux = conns
	n.failed.Unlock()
	n.run(conns.accept)
	n.run(func() {
		if err := n.join(); err != nil && !n.stopped() {
			n.giveUp(err)
		}
	})
	return nil
}

// run runs fn in the background; Close waits for it.
func (n *Node) run(fn func()) {
	n.running.Add(1)
	go func() {
		defer n.running.Done()
		fn()
	}()
}

func (n *Node) stopped() bool {
	select {
	case <-n.stop:
		return true
	default:
		return false
	}
}

// pause waits for d; it returns false if the node closes.
func (n *Node) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-n.stop:
		return false
	}
}

// giveUp ends the node's part in the group after an error that only an operator can repair.
func (n *Node) giveUp(err error) {
	n.o.Log.Error("the server takes no part in its group any more", "error", err.Error())
	n.failed.Lock()
	n.failed.err = errors.Join(n.failed.err, err)
	n.failed.Unlock()
	n.mu.Lock()
	n.fail(err)
	n.mu.Unlock()
	if r := n.consensus(); r != nil {
		go r.Shutdown() // in the background, because it waits for the goroutine that may have called giveUp
	}
	n.machine.Told()
	n.machine.Changed()
}

// join joins the group: the one in the log and the store, an existing one among the peers, or a new one.
func (n *Node) join() error {
	if !n.log.Empty() || n.o.State != nil {
		if gone, err := n.log.GetUint64(removedKey); err != nil {
			return err
		} else if gone != 0 {
			if again, err := n.readmitted(); !again {
				return err
			}
		}
		n.peers.may.Store(true)
		// The server may have promised a leader not to elect another, and has forgotten that.
		if !n.pause(n.o.Timeout) {
			return nil
		}
		return n.begin(nil)
	}
	first, err := n.peers.find()
	if err != nil || n.stopped() {
		return err
	}
	return n.begin(first)
}

// begin starts Raft; first is the configuration of a new group, nil otherwise.
func (n *Node) begin(first *consensus.Configuration) error {
	if n.o.Witness {
		if err := n.log.SetUint64(witnessKey, 1); err != nil {
			return err
		}
	}
	logger, log := newLogger(n.o.Log, n.stopped), stores{n.log, n}
	conf := consensus.DefaultConfig()
	conf.LocalID = consensus.ServerID(n.o.Addr)
	conf.HeartbeatTimeout, conf.ElectionTimeout = n.o.Timeout, n.o.Timeout
	conf.LeaderLeaseTimeout = n.o.Timeout * 7 / 10
	conf.CommitTimeout = min(conf.CommitTimeout, n.o.Timeout/10)
	conf.MaxAppendEntries = 256
	conf.SnapshotThreshold, conf.SnapshotInterval = 1<<63, 24*time.Hour // never: see Anchor
	conf.NoSnapshotRestoreOnStart = true
	conf.NoLegacyTelemetry = true
	conf.Logger = logger
	// Without pipelining: in v1.8.0 a sender waits for ever if the receiver of its pipeline ends during a request.
	// Entries that gather meanwhile go into one request.
	trans := transport{consensus.NewNetworkTransportWithConfig(&consensus.NetworkTransportConfig{
		Stream: n.mux.raft, MaxPool: 4, MaxRPCsInFlight: 1, Timeout: max(rpcTimeout, 3*n.o.Timeout), Logger: logger,
		MsgpackUseNewTimeFormat: true,
	}), n}
	if first != nil && n.o.HasData {
		// The present data precedes all later entries, as if it were the first entry.
		n.applied = state{index: 1, term: 1, config: *first, configIndex: 1}
		n.proposals.done(0, n.applied)
		if err := errors.Join(n.log.SetUint64(termKey, 1), n.machine.Store()); err != nil {
			return errors.Join(err, trans.Close())
		}
	} else if first != nil {
		if err := consensus.BootstrapCluster(conf, log, log, &n.snapshots, trans, *first); err != nil {
			return errors.Join(fmt.Errorf("form a group: %w", err), trans.Close())
		}
	}
	r, err := consensus.NewRaft(conf, (*fsm)(n), log, log, &n.snapshots, trans)
	if err != nil {
		return errors.Join(err, trans.Close())
	}
	n.trans = trans
	n.raft.Store(r) // last, because it tells others that the rest is there
	n.run(n.watchRole)
	n.run(n.propose)
	n.run(n.awaitFutures)
	n.run(n.keepLease)
	n.run(n.tell)
	n.run(n.peers.watch)
	if n.stopped() { // leave may not have seen Raft
		r.Shutdown().Error() // closes the transport too
	}
	return nil
}

// problem returns why the node takes no part in the group any more.
func (n *Node) problem() error {
	n.failed.Lock()
	defer n.failed.Unlock()
	return n.failed.err
}

// consensus returns Raft, nil before the node takes part.
func (n *Node) consensus() *consensus.Raft { return n.raft.Load() }

// connections returns the mux, nil before Start.
func (n *Node) connections() *mux {
	n.failed.Lock()
	defer n.failed.Unlock()
	return n.mux
}

// proposed is an entry that Raft got, with its term.
type proposed struct {
	consensus.ApplyFuture
	term uint64
}

// propose passes the appended records to Raft.
func (n *Node) propose() {
	for {
		e, ok := n.next()
		if !ok {
			select {
			case <-n.wake:
			case <-time.After(n.o.Timeout / 10): // collects results that nobody waits for
			case <-n.stop:
				return
			}
			continue
		}
		if e.proof() {
			n.run(func() { n.prove(e) })
			continue
		}
		f := n.consensus().ApplyLog(consensus.Log{Data: e.data}, 0)
		select {
		case n.futures <- proposed{f, e.term}:
		case <-n.stop:
			return
		}
	}
}

// awaitFutures checks whether Raft has accepted all proposed entries.
func (n *Node) awaitFutures() {
	for {
		select {
		case f := <-n.futures:
			if n.outcome(f.ApplyFuture) != nil && !n.stopped() {
				n.mustRecheck(f.term)
			}
		case <-n.stop:
			return
		}
	}
}

// mustRecheck takes back the uncommitted records of a term: Raft has refused some of them, or will.
func (n *Node) mustRecheck(term uint64) {
	n.halt(term)
	n.kickRole()
}

func (n *Node) kickRole() {
	select {
	case n.recheck <- struct{}{}:
	default:
	}
}

// watchRole follows Raft's changes of the leader.
func (n *Node) watchRole() {
	observed := make(chan consensus.Observation, 16)
	observer := consensus.NewObserver(observed, false, func(o *consensus.Observation) bool {
		switch o.Data.(type) {
		case consensus.LeaderObservation, consensus.RaftState, consensus.PeerObservation:
			return true
		}
		return false
	})
	n.consensus().RegisterObserver(observer)
	defer n.consensus().DeregisterObserver(observer)
	for {
		n.takeRole()
		select {
		case <-n.consensus().LeaderCh():
		case <-observed:
		case <-n.recheck:
		case <-n.stop:
			return
		}
		n.machine.Changed()
	}
}

// takeRole gives the server its role in Raft.
func (n *Node) takeRole() {
	for !n.stopped() {
		leads, term := n.Elected(), n.consensus().CurrentTerm()
		n.held.Lock()
		lost := n.lost
		n.held.Unlock()
		n.mu.Lock()
		leading := n.leading.Load()
		wrong := leading && (!leads || n.term != term || n.halted) || lost || n.failure != nil
		n.mu.Unlock()
		switch {
		case wrong:
			if err := n.follow(); err != nil {
				n.giveUp(err)
				return
			}
		case leads && !leading && !n.handing.Load():
			if n.elected = !n.lead(term); n.elected {
				n.pause(n.o.Timeout / 20)
			}
			continue
		default:
			if n.elected && !leads {
				n.elected = false
				n.machine.Unelected()
			}
			return
		}
		if n.Err() != nil {
			return
		}
	}
}

// Elected implements quorum.Node.
func (n *Node) Elected() bool {
	r := n.consensus()
	return r != nil && r.State() == consensus.Leader
}

// lead makes the server lead in a term, and reports whether it does.
func (n *Node) lead(term uint64) bool {
	if n.outcome(n.consensus().Barrier(n.o.Timeout)) != nil { // after it, all committed entries have been executed
		return false
	}
	n.turn.Lock()
	defer n.turn.Unlock()
	n.held.Lock()
	defer n.held.Unlock()
	if n.lost || n.handing.Load() || n.consensus().State() != consensus.Leader || n.consensus().CurrentTerm() != term {
		return false
	}
	n.machine.Lead(func() { n.proposals.begin(term, n.o.Quorum || n.handed == term) })
	n.o.Log.Info("the server leads its group", "term", term)
	n.peers.kick()
	return true
}

// follow ends the lead and takes back uncommitted changes.
func (n *Node) follow() error {
	n.halt(0)
	n.turn.Lock()
	defer n.turn.Unlock()
	n.held.Lock()
	if n.leading.Load() {
		n.machine.Follow(func() { n.lost = n.proposals.end() })
		n.o.Log.Info("the server follows", "taken back", n.lost)
	}
	lost := n.lost
	n.held.Unlock()
	n.machine.Told()
	if !lost {
		return nil
	}
	last := n.applied.index // no further entry is executed before the lost changes are found
	err := n.machine.Reset(func(group []byte) (err error) {
		n.applied, err = decodeState(group)
		n.proposals.done(0, n.applied)
		return err
	})
	if err != nil {
		return fmt.Errorf("uncommitted changes cannot be taken back: %w", err)
	}
	n.held.Lock()
	defer n.held.Unlock()
	err = n.log.Each(n.applied.index+1, last, n.do)
	if err != nil {
		return err
	}
	n.lost = false
	n.machine.Restored()
	return nil
}

// fsm is the node as Raft's state machine.
type fsm Node

// Apply implements consensus.FSM.
func (f *fsm) Apply(l *consensus.Log) any { return f.ApplyBatch([]*consensus.Log{l})[0] }

// ApplyBatch implements consensus.BatchingFSM.
func (f *fsm) ApplyBatch(logs []*consensus.Log) []any {
	n := (*Node)(f)
	for _, l := range logs {
		if err := n.take(l); err != nil {
			n.giveUp(fmt.Errorf("entry %d of the group's journal: %w", l.Index, err))
			break
		}
		n.executed.Store(l.Index)
	}
	n.machine.Told()
	return make([]any, len(logs))
}

// take applies a committed entry.
func (n *Node) take(l *consensus.Log) error {
	if err := n.Err(); err != nil {
		return err
	}
	n.held.Lock()
	for n.lost || n.leading.Load() && l.Type == consensus.LogCommand && l.Term != n.proposals.termOf() {
		n.held.Unlock()
		if err := n.follow(); err != nil {
			return err
		}
		n.held.Lock()
	}
	defer n.held.Unlock()
	if l.Index <= n.applied.index {
		return nil // the store has it, or it was executed again
	}
	if n.leading.Load() && l.Type == consensus.LogCommand {
		term, _, err := splitEntry(l.Data)
		if err != nil {
			return err
		}
		if term != l.Term {
			n.mustRecheck(0)
			return nil
		}
		n.applied.index, n.applied.term = l.Index, l.Term
		defer n.progress.kick()
		return n.committed(n.applied)
	}
	return n.do(l)
}

// do executes an entry. The caller holds held.
func (n *Node) do(l *consensus.Log) error {
	before := n.applied
	n.applied.index, n.applied.term = l.Index, l.Term
	switch l.Type {
	case consensus.LogConfiguration:
		config, err := decodeConfiguration(l.Data)
		if err != nil {
			return err
		}
		n.applied.config, n.applied.configIndex = config, l.Index
		n.kickRole()
		if !n.leading.Load() { // a leader's state advances with its own entries
			n.proposals.done(0, n.applied)
		}
	case consensus.LogCommand:
		if n.o.Witness {
			n.proposals.done(witnessed, n.applied)
			return nil
		}
		term, records, err := splitEntry(l.Data)
		if err != nil || term != l.Term {
			return err
		}
		n.applied = before // until the whole entry is executed
		n.entered()
		size := 0
		err = eachRecord(records, func(now int64, commands []byte) error {
			size += len(commands)
			return n.machine.Do(now, commands)
		})
		if err != nil {
			return err
		}
		n.applied.index, n.applied.term = l.Index, l.Term
		n.proposals.done(size, n.applied)
	}
	return nil
}

// keepLease extends the lease before it ends, as long as clients read.
func (n *Node) keepLease() {
	for n.pause(n.o.Timeout / 5) {
		n.renew()
	}
}

// Dial connects to the server at an address, of this group or another one; that server's Options.Serve gets the connection. It
// is closed with the node.
func (n *Node) Dial(addr string, purpose peer.Purpose, timeout time.Duration) (*peer.Conn, error) {
	m := n.connections()
	if m == nil {
		return nil, net.ErrClosed
	}
	return m.dial(addr, purpose, timeout)
}

// Leave ends the node's part in the group: no entry is executed or appended any more. A leader first hands the lead
// over if another server can take it.
func (n *Node) Leave() {
	if n.leading.Load() {
		if err := n.Transfer(""); err == nil {
			for end := time.Now().Add(n.o.Timeout); n.leading.Load() && time.Now().Before(end) && n.pause(time.Millisecond); {
			}
		}
	}
	n.leave()
}

func (n *Node) leave() {
	n.closing.Do(func() {
		n.mu.Lock()
		n.closed = true
		n.changed.Broadcast()
		n.mu.Unlock()
		close(n.stop)
		var ended consensus.Future
		if r := n.consensus(); r != nil {
			ended = r.Shutdown()
		}
		if m := n.connections(); m != nil {
			m.close() // ends Raft's pending requests to peers, for which it waits
		}
		if ended != nil {
			ended.Error()
			n.trans.Close()
		}
		n.running.Wait()
	})
}

// Close implements journal.Journal.
func (n *Node) Close() error {
	n.leave()
	return n.log.Close()
}

// Status returns the state of the node and its group.
func (n *Node) Status() quorum.Status {
	r, failed := n.consensus(), n.problem()
	s := quorum.Status{Addr: n.o.Addr, State: "joining", LogBytes: n.log.Size(), Err: failed}
	switch {
	case n.removed.Load():
		s.State = "removed"
	case failed != nil:
		s.State = "failed"
	}
	if r == nil {
		return s
	}
	_, id := r.LeaderWithID()
	s.Leader, s.Term, s.Committed, s.Applied = string(id), r.CurrentTerm(), r.CommitIndex(), r.AppliedIndex()
	switch {
	case failed != nil || n.removed.Load():
	case n.leading.Load():
		s.State = "leader"
	case r.State() == consensus.Candidate:
		s.State = "candidate"
	default:
		s.State = "follower"
	}
	s.LastContact = r.LastContact()
	if f := r.GetConfiguration(); f.Error() == nil {
		for _, m := range f.Configuration().Servers {
			known := n.peers.known(string(m.ID))
			known.Addr, known.Role = string(m.ID), roleOf(m)
			if known.Addr == s.Addr {
				known.Client, known.Sentinel, known.Online, known.Index = n.o.Client, n.o.Sentinel, true, s.Applied
				known.Zone, known.LogBytes = n.zone(), s.LogBytes
				switch follows := s.State == "follower"; {
				case known.Role == quorum.Witness && (follows || s.State == "candidate"):
					s.State = "witness"
				case follows && known.Role != quorum.Voter:
					s.State = "learner"
				}
			}
			if known.Addr == s.Leader {
				s.LeaderAt = known.Client
			}
			s.Members = append(s.Members, known)
		}
	}
	slices.SortFunc(s.Members, func(a, b quorum.Member) int { return compare(a.Addr, b.Addr) })
	return s
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// LastContact returns the time of the last contact with the leader; at a leader that is now.
func (n *Node) LastContact() time.Time {
	r := n.consensus()
	switch {
	case r == nil:
		return time.Time{}
	case n.leading.Load():
		return time.Now()
	}
	return r.LastContact()
}

// Transfer hands the lead to another server: the one with an address or, if that is "", the one with the most
// entries. If the server does not take the lead within the group's timeout, because it is busy, it is asked again
// for a while. If no server takes the lead, this one continues to lead, without a lease: the other one may still be
// elected although this one is alive.
func (n *Node) Transfer(addr string) error {
	return n.asLeader(func(r *consensus.Raft) error {
		if err := n.canLead(addr); err != nil {
			return err
		}
		if !n.handing.CompareAndSwap(false, true) {
			return errHanding
		}
		defer n.kickRole()
		defer n.handing.Store(false)
		n.settle()
		var problem error
		for end := time.Now().Add(answerTimeout); ; {
			to := consensus.ServerID(addr)
			if to == "" {
				to = n.successor(r)
			}
			err := errNobody
			if to != "" {
				err = n.outcome(r.LeadershipTransferToServer(to, consensus.ServerAddress(to)))
			}
			if err == nil || r.State() != consensus.Leader { // the lead was taken, even if late
				return nil
			}
			if problem == nil || !errors.Is(err, consensus.ErrLeadershipTransferInProgress) { // from an earlier attempt
				problem = err
			}
			if time.Now().After(end) || !n.pause(n.o.Timeout/20) {
				return problem
			}
		}
	})
}

var errHanding = errors.New("the lead is being handed over already")

// canLead returns nil if a server, or any other one if addr is "", may take the lead.
func (n *Node) canLead(addr string) error {
	f := n.consensus().GetConfiguration()
	if err := f.Error(); err != nil {
		return err
	}
	if addr == n.o.Addr {
		return errLeads
	}
	if addr != "" && !isMember(f.Configuration(), addr) {
		return errNoMember
	}
	for _, s := range f.Configuration().Servers {
		id := string(s.ID)
		if id != n.o.Addr && (addr == "" || id == addr) && roleOf(s) == quorum.Voter && n.peers.known(id).Online {
			return nil
		}
	}
	return errNobody
}

var (
	errLeads  = errors.New("the server leads already")
	errNobody = errors.New("no other server can lead: it must be online, count for majorities, and be no witness")
)

// settle ends the lead when all changes are committed, so that nothing must be taken back.
func (n *Node) settle() {
	n.turn.Lock()
	defer n.turn.Unlock()
	n.held.Lock()
	if !n.leading.Load() {
		n.held.Unlock()
		return
	}
	n.handed = n.termOf()
	n.machine.Follow(func() {}) // nothing is appended from now on
	n.held.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), n.o.Timeout)
	defer cancel()
	_ = n.Sync(ctx) // changes that are not committed by then are taken back
	n.held.Lock()
	defer n.held.Unlock()
	if n.leading.Load() {
		n.lost = n.proposals.end()
	}
}

func (n *Node) asLeader(do func(r *consensus.Raft) error) error {
	r := n.consensus()
	if r == nil || r.State() != consensus.Leader {
		return quorum.ErrNotLeader
	}
	return do(r)
}

// removeCopies removes the files of copies that an earlier process has left.
func removeCopies(fs disk.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if path.Ext(name) == copySuffix {
			if err := fs.Remove(fs.PathJoin(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}
