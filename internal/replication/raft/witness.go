package raft

import (
	"bytes"
	"errors"
	"io"
	"math"
	"time"

	consensus "github.com/hashicorp/raft"

	"github.com/atomredis/atomredis/internal/replication/quorum"
)

// A witness votes and has the log, but no data: two servers with data and a small third one make a group that survives the loss
// of one. What must stay true:
//
//   - Only a witness gets entries without their data. A server that gets one and is no witness stops, and so does a witness
//     that is started as an ordinary server: its log cannot give anybody the data.
//   - A witness does not ask for votes, so it never leads.
//   - While the other voters are online, a witness gets an entry only once they have it. Otherwise the loss of the leader could
//     leave the witness with entries that nobody else has, and it would vote for nobody.

// witnessKey is 1 in the log of a witness.
var witnessKey = []byte("Witness")

// withheld takes the place of an entry's data at a witness. Entries with data begin with a level, which is not 0.
var withheld = []byte{0}

// witnessed is how many bytes an entry without its data counts for in a witness's journal, whose length decides when the next
// checkpoint is made: about those that the log takes.
const witnessed = 64

var (
	errWithheld = errors.New("it came without data, because the group takes this server for a witness: " +
		"remove it from the group, and give it an empty directory")
	errOfWitness = errors.New("the directory is that of a witness, which has no data: " +
		"set raft-witness, or give the server an empty directory")
	errNotOfWitness  = errors.New("the directory has data, and a witness begins without: give it an empty directory")
	errWitnessLearns = errors.New("a witness has no data, and cannot be a learner")
)

// checkWitness returns an error if the directory is not of the server's kind. A directory that is empty is of any.
func (n *Node) checkWitness() error {
	switch was := n.number(witnessKey) == 1; {
	case n.log.Empty() && n.o.State == nil && !(n.o.HasData && n.o.Witness):
		return nil
	case was && !n.o.Witness:
		return errOfWitness
	case !was && n.o.Witness:
		return errNotOfWitness
	}
	return nil
}

// isWitnessAt reports whether an address in Raft's configuration is that of a witness.
func isWitnessAt(addr consensus.ServerAddress) bool {
	return bytes.HasSuffix(bytes.TrimSuffix([]byte(addr), []byte(waits)), []byte(watches))
}

// withoutData returns entries as a witness gets them.
func withoutData(entries []*consensus.Log) []*consensus.Log {
	out := make([]*consensus.Log, len(entries))
	for i, e := range entries {
		if e.Type == consensus.LogCommand {
			bare := *e
			bare.Data = withheld
			e = &bare
		}
		out[i] = e
	}
	return out
}

// errNoLongerLeads ends a request to a witness.
var errNoLongerLeads = errors.New("the server leads no more")

// forWitness shortens a request to the entries that a witness may get, and takes their data out. It waits until there is one, and
// for half of raft-timeout at most: a voter that is slower counts as slow until it has everything again.
func (n *Node) forWitness(args *consensus.AppendEntriesRequest) error {
	first, last := args.Entries[0].Index, args.Entries[len(args.Entries)-1].Index
	for end := time.Now().Add(n.o.Timeout / 2); ; {
		r := n.consensus()
		if r == nil || r.State() != consensus.Leader || r.CurrentTerm() != args.Term {
			return errNoLongerLeads
		}
		others := n.votersWithData(r)
		has := n.progress.copied(others, args.Term, time.Now().Add(-n.o.Timeout/2))
		if has < first && !time.Now().Before(end) {
			n.progress.tooSlow(others, args.Term, last)
			has = last
		}
		if has >= first {
			args.Entries = withoutData(args.Entries[:min(has, last)-first+1])
			return nil
		}
		if !n.pause(n.o.Timeout / 50) {
			return errNoLongerLeads
		}
	}
}

// votersWithData returns the other voters that are no witnesses.
func (n *Node) votersWithData(r *consensus.Raft) (ids []consensus.ServerID) {
	f := r.GetConfiguration()
	if f.Error() != nil {
		return nil
	}
	for _, s := range f.Configuration().Servers {
		if roleOf(s) == quorum.Voter && n.isOther(s) {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// successor returns the voter that the lead is handed to: an online voter that may lead, with the most entries. A server that refuses
// changes is chosen only if there is no other. Without such a voter it is empty.
func (n *Node) successor(r *consensus.Raft) (best consensus.ServerID) {
	most, refuses := uint64(0), false
	for _, id := range n.votersWithData(r) {
		f, _ := n.progress.known(id, r.CurrentTerm())
		m := n.peers.known(string(id))
		bad := m.WriteProblem != ""
		if m.Online && (best == "" || refuses && !bad || refuses == bad && f.has > most) {
			best, most, refuses = id, f.has, bad
		}
	}
	return best
}

// copied returns the last entry of a term that all of some servers have, without those that are slow or were not heard of since a
// time.
func (p *progress) copied(ids []consensus.ServerID, term uint64, since time.Time) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	least := uint64(math.MaxUint64)
	for _, id := range ids {
		if p.slow[id] || p.heardAt[id].Before(since) {
			continue
		}
		least = min(least, p.in(id, term).has)
	}
	return least
}

// tooSlow notes which of some servers have not an entry of a term yet.
func (p *progress) tooSlow(ids []consensus.ServerID, term, entry uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slow == nil {
		p.slow = map[consensus.ServerID]bool{}
	}
	for _, id := range ids {
		if p.in(id, term).has < entry {
			p.slow[id] = true
		}
	}
}

// RequestPreVote implements consensus.WithPreVote.
func (t transport) RequestPreVote(id consensus.ServerID, addr consensus.ServerAddress, args *consensus.RequestPreVoteRequest,
	answer *consensus.RequestPreVoteResponse,
) error {
	if t.n.o.Witness {
		answer.Term, answer.Granted = args.Term, false
		return nil
	}
	return t.NetworkTransport.RequestPreVote(id, addr, args, answer)
}

// RequestVote implements consensus.Transport.
func (t transport) RequestVote(id consensus.ServerID, addr consensus.ServerAddress, args *consensus.RequestVoteRequest,
	answer *consensus.RequestVoteResponse,
) error {
	if t.n.o.Witness {
		answer.Term, answer.Granted = args.Term, false
		return nil
	}
	return t.NetworkTransport.RequestVote(id, addr, args, answer)
}

// InstallSnapshot implements consensus.Transport. A witness gets an empty copy.
func (t transport) InstallSnapshot(id consensus.ServerID, addr consensus.ServerAddress, args *consensus.InstallSnapshotRequest,
	answer *consensus.InstallSnapshotResponse, data io.Reader,
) error {
	if isWitnessAt(addr) {
		args.Size, data = 0, bytes.NewReader(nil)
	}
	return t.NetworkTransport.InstallSnapshot(id, addr, args, answer, data)
}

// nothing returns the copy that a witness replaces its data by: that of its own, which is empty.
func (n *Node) nothing() (io.Reader, error) {
	var b bytes.Buffer
	err := n.machine.Copy(&b, func() {})
	return &b, err
}
