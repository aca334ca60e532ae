package raft

import (
	"context"
	"slices"
	"sync"
	"time"

	consensus "github.com/hashicorp/raft"

	"github.com/atomredis/atomredis/internal/replication/quorum"
	"github.com/atomredis/atomredis/persist/journal"
)

// progress has what a leader knows of the other servers' logs. Raft knows it too, but does not tell.
type progress struct {
	wake chan struct{} // signals that a follower may not know what is committed

	mu      sync.Mutex
	heardAt map[consensus.ServerID]time.Time // of the last answer to a leader
	slow    map[consensus.ServerID]bool      // the witness does not wait for these: see forWitness
	term    uint64
	of      map[consensus.ServerID]*follower
	proofs  map[consensus.ServerID]int // requests for proofs without an answer; absent without any
}

// maxProofs limits the requests for proofs to a server that have no answer. A server that is silent keeps each until its
// timeout, while the others answer proof after proof.
const maxProofs = 4

// beginProof counts a request for a proof to a server; ok is false if there are too many.
func (p *progress) beginProof(id consensus.ServerID) (ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proofs[id] >= maxProofs {
		return false
	}
	if p.proofs == nil {
		p.proofs = map[consensus.ServerID]int{}
	}
	p.proofs[id]++
	return true
}

// endProof ends a request that beginProof has counted.
func (p *progress) endProof(id consensus.ServerID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proofs[id]--; p.proofs[id] == 0 {
		delete(p.proofs, id)
	}
}

// follower is what the leader of a term knows of another server.
type follower struct {
	has     uint64 // the last entry up to which its log, on its disk, is the leader's
	hasTerm uint64 // of that entry
	knows   uint64 // the last entry that it knows to be committed
	asking  bool   // it is being told
}

// heard records a server's answer to a request of Raft, and reports whether the server has more than before.
func (p *progress) heard(id consensus.ServerID, args *consensus.AppendEntriesRequest, answer *consensus.AppendEntriesResponse) bool {
	if args.PrevLogEntry == 0 && len(args.Entries) == 0 {
		return false // a heartbeat, which says nothing about the log
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case args.Term < p.term:
		return false
	case args.Term > p.term: // what the logs had in an earlier term may have been replaced
		p.term, p.of = args.Term, map[consensus.ServerID]*follower{}
	}
	f := p.of[id]
	if f == nil {
		f = &follower{}
		p.of[id] = f
	}
	if !answer.Success {
		f.has, f.knows = 0, 0 // it may have lost its data
		return false
	}
	has, term := args.PrevLogEntry, args.PrevLogTerm
	if n := len(args.Entries); n > 0 {
		has, term = args.Entries[n-1].Index, args.Entries[n-1].Term
	}
	f.knows = max(f.knows, min(args.LeaderCommitIndex, has))
	if has <= f.has {
		return false
	}
	f.has, f.hasTerm = has, term
	if has >= args.LeaderCommitIndex {
		delete(p.slow, id)
	}
	return true
}

// answered notes that a server has answered.
func (p *progress) answered(id consensus.ServerID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.heardAt == nil {
		p.heardAt = map[consensus.ServerID]time.Time{}
	}
	p.heardAt[id] = time.Now()
}

// known returns what is known of a server in a term; ok is false if that is nothing.
func (p *progress) known(id consensus.ServerID, term uint64) (f follower, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f = p.in(id, term)
	return f, f.has != 0
}

// in returns what is known of a server in a term, zero if that is nothing. The caller holds mu.
func (p *progress) in(id consensus.ServerID, term uint64) (f follower) {
	if of := p.of[id]; of != nil && p.term == term {
		f = *of
	}
	return f
}

// count returns how many of some servers have an entry.
func (p *progress) count(servers []consensus.Server, entry uint64) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range servers {
		if f := p.of[s.ID]; f != nil && f.has >= entry {
			n++
		}
	}
	return n
}

// untold returns the servers that have an entry of a term, which is committed, and do not know that. They count as asked.
func (p *progress) untold(entry, term uint64) (list []consensus.ServerID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.term != term {
		return nil
	}
	for id, f := range p.of {
		if f.has >= entry && f.knows < entry && !f.asking {
			f.asking = true
			list = append(list, id)
		}
	}
	return list
}

// asked ends a request to a server.
func (p *progress) asked(id consensus.ServerID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.of[id]; f != nil {
		f.asking = false
	}
}

func (p *progress) kick() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// transport is Raft's transport. It notes what the other servers answer.
type transport struct {
	*consensus.NetworkTransport
	n *Node
}

// AppendEntries implements consensus.Transport.
func (t transport) AppendEntries(id consensus.ServerID, addr consensus.ServerAddress, args *consensus.AppendEntriesRequest,
	answer *consensus.AppendEntriesResponse,
) error {
	if isWitnessAt(addr) && len(args.Entries) > 0 {
		if err := t.n.forWitness(args); err != nil {
			return err
		}
	}
	err := t.NetworkTransport.AppendEntries(id, addr, args, answer)
	if err == nil {
		t.n.progress.answered(id)
	}
	if err == nil && t.n.progress.heard(id, args, answer) {
		t.n.progress.kick()
		t.n.machine.Acked()
	}
	return err
}

// tellDelay is how long the leader waits for a further entry before it tells followers that the last one is committed.
const tellDelay = 500 * time.Microsecond

// tell tells followers what is committed soon after it is. Raft tells them with the next entry, or after CommitTimeout: a
// follower's reads would be that old. Under load the next entry is there within tellDelay, so this costs nothing.
func (n *Node) tell() {
	for {
		select {
		case <-n.progress.wake:
		case <-n.stop:
			return
		}
		if !n.pause(tellDelay) {
			return
		}
		at, term, quiet := n.quiet()
		if !quiet {
			continue // the next entry carries the commit index, and its own commit wakes this loop
		}
		for _, id := range n.progress.untold(at.index, term) {
			n.run(func() {
				told := n.inform(id, term, at.index)
				n.progress.asked(id)
				if told { // otherwise Raft tells it later
					n.progress.kick() // there may be more by now
				}
			})
		}
	}
}

// inform tells another server which entries of the leader of a term are committed, as Raft does with the next entry. It reports
// whether the server considers this one the leader: it then elects no other for the group's timeout. Unlike Raft's heartbeats
// the message is handled in order with the server's own elections.
func (n *Node) inform(id consensus.ServerID, term, committed uint64) bool {
	f, ok := n.progress.known(id, term)
	if !ok {
		return false
	}
	own := n.trans.EncodePeer(consensus.ServerID(n.o.Addr), n.trans.LocalAddr())
	args := consensus.AppendEntriesRequest{
		RPCHeader: consensus.RPCHeader{ProtocolVersion: consensus.ProtocolVersionMax, ID: []byte(n.o.Addr), Addr: own},
		Term:      term, PrevLogEntry: f.has, PrevLogTerm: f.hasTerm, LeaderCommitIndex: min(committed, f.has),
	}
	var answer consensus.AppendEntriesResponse
	return n.trans.AppendEntries(id, consensus.ServerAddress(id), &args, &answer) == nil && answer.Success
}

// prove makes sure that this server still leads, without an entry: it asks the others until a majority agrees, or the lead is
// lost.
func (n *Node) prove(e entry) {
	defer n.kick() // for the next proof
	for n.awaits(e) {
		asked := time.Now()
		if n.agreed(e.term) {
			n.proved(e, asked)
			n.machine.Told()
			return
		}
		n.pause(n.o.Timeout / 20)
	}
}

// askForProof asks a server with ask, in the background, and sends the answer to answers. A server that owes maxProofs answers
// is not asked, which counts as a no.
func (n *Node) askForProof(id consensus.ServerID, answers chan<- bool, ask func() bool) {
	if !n.progress.beginProof(id) {
		answers <- false
		return
	}
	n.run(func() {
		yes := ask()
		n.progress.endProof(id)
		answers <- yes
	})
}

// agreed reports whether a majority considers this server the leader of a term.
func (n *Node) agreed(term uint64) bool {
	f := n.consensus().GetConfiguration()
	if f.Error() != nil {
		return false
	}
	n.mu.Lock()
	committed := n.at.index
	n.mu.Unlock()
	voters, votes := 0, 1 // its own
	answers := make(chan bool, len(f.Configuration().Servers))
	for _, s := range f.Configuration().Servers {
		if isLearner(s) {
			continue
		}
		if voters++; string(s.ID) != n.o.Addr {
			n.askForProof(s.ID, answers, func() bool { return n.inform(s.ID, term, committed) })
		}
	}
	for range voters - 1 {
		if votes > voters/2 {
			break
		}
		select {
		case yes := <-answers:
			if yes {
				votes++
			}
		case <-n.stop:
			return false
		}
	}
	return votes > voters/2
}

// quiet reports whether all entries are committed, and returns the state after the last one and the term of the lead.
func (p *proposals) quiet() (at state, term uint64, quiet bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at, p.term, p.usable() && !p.pending()
}

// EntryAt implements quorum.Node.
func (n *Node) EntryAt(lsn uint64) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.durable.Load() < lsn {
		return 0
	}
	return n.at.index
}

// AwaitEntry implements quorum.Node.
func (n *Node) AwaitEntry(ctx context.Context, entry uint64) error {
	defer context.AfterFunc(ctx, func() {
		n.mu.Lock()
		n.changed.Broadcast()
		n.mu.Unlock()
	})()
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.at.index < entry {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case n.failure != nil:
			return n.failure
		case n.closed:
			return journal.ErrClosed
		}
		n.changed.Wait()
	}
	return nil
}

// Holders implements quorum.Node.
func (n *Node) Holders(entry uint64) int {
	return n.progress.count(n.servers(func(s consensus.Server) bool { return n.isOther(s) && roleOf(s) != quorum.Witness }), entry)
}

// Committers implements quorum.Node.
func (n *Node) Committers() int {
	voters := n.servers(func(s consensus.Server) bool { return !isLearner(s) })
	witnesses := n.servers(func(s consensus.Server) bool { return roleOf(s) == quorum.Witness })
	return max(len(voters)/2-len(witnesses), 0)
}

func (n *Node) isOther(s consensus.Server) bool { return string(s.ID) != n.o.Addr }

// servers returns the servers of a leader's group for which is is true, none at a follower. The configuration is Raft's, because
// the caller may hold shards, which are locked after held.
func (n *Node) servers(is func(consensus.Server) bool) []consensus.Server {
	r := n.consensus()
	if r == nil || !n.leading.Load() {
		return nil
	}
	f := r.GetConfiguration()
	if f.Error() != nil {
		return nil
	}
	all := slices.Clone(f.Configuration().Servers)
	return slices.DeleteFunc(all, func(s consensus.Server) bool { return !is(s) })
}
