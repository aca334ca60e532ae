package raft

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// leading returns the proposals of a leader whose replies always wait.
func leading(t *testing.T) *proposals {
	p := newProposals(time.Hour)
	p.begin(1, true)
	return p
}

// mustNext returns the next entry.
func mustNext(t *testing.T, p *proposals, proof bool) entry {
	t.Helper()
	e, ok := p.next()
	require.True(t, ok)
	require.Equal(t, proof, e.proof())
	return e
}

func TestAReadWaitsForAProofThatWritesNothing(t *testing.T) {
	p := leading(t)
	read := p.WaitPosition()
	require.Equal(t, read, p.WaitPosition(), "one proof is enough for all that wait before it begins")
	first := mustNext(t, p, true)
	require.Less(t, p.Durable(), read)
	later := p.WaitPosition()
	require.Greater(t, later, read, "the proof has begun before")
	_, ok := p.next()
	require.False(t, ok, "one is under way")
	require.True(t, p.awaits(first))
	p.proved(first, time.Now())
	require.Equal(t, read, p.Durable())
	require.False(t, p.awaits(first))
	second := mustNext(t, p, true)
	p.proved(second, time.Now())
	require.Equal(t, later, p.Durable())
	require.Empty(t, p.flying)
}

func TestAnEntryIsAProof(t *testing.T) {
	p := leading(t)
	read := p.WaitPosition()
	p.Append(1, []byte("command"))
	e := mustNext(t, p, false)
	require.Greater(t, e.end, read)
	begun := p.WaitPosition()
	proof := mustNext(t, p, true)
	p.proved(proof, time.Now())
	require.Less(t, p.Durable(), read, "the entry before it is not committed")
	require.NoError(t, p.committed(state{index: 7}))
	require.Equal(t, begun, p.Durable(), "what has been proved is reached with the entry")
	require.Error(t, p.committed(state{index: 8}))

	read = p.WaitPosition()
	proof = mustNext(t, p, true)
	p.Append(2, []byte("command"))
	mustNext(t, p, false)
	require.NoError(t, p.committed(state{index: 8}))
	require.Greater(t, p.Durable(), read)
	require.False(t, p.awaits(proof), "the entry was proposed later")
}

// A checkpoint has the state of the last entry before it, also if proofs are under way or were left out.
func TestACheckpointBetweenProofsHasTheStateBefore(t *testing.T) {
	p := leading(t)
	p.done(10, state{index: 5})
	p.WaitPosition()
	left := p.cut()
	p.Append(1, []byte("command"))
	mustNext(t, p, false)
	p.WaitPosition()
	between := p.cut()
	proof := mustNext(t, p, true)
	p.Append(2, []byte("command"))
	mustNext(t, p, false)
	after := p.cut()
	require.NoError(t, p.committed(state{index: 6}))
	require.True(t, left.settled)
	require.False(t, after.settled)
	s, err := p.await(left)
	require.NoError(t, err)
	require.EqualValues(t, 5, s.index)
	p.proved(proof, time.Now())
	s, err = p.await(between)
	require.NoError(t, err)
	require.EqualValues(t, 6, s.index)
	require.NoError(t, p.committed(state{index: 7}))
	s, err = p.await(after)
	require.NoError(t, err)
	require.EqualValues(t, 7, s.index)
}

// A copy for another server and a checkpoint at the same position end independently of each other.
func TestACopyAndACheckpointAtOnePosition(t *testing.T) {
	n := &Node{proposals: leading(t)}
	n.Append(1, []byte("command"))
	mustNext(t, n.proposals, false)
	lsn := n.Rotate()
	copied := n.proposals.cut()
	require.Equal(t, lsn, copied.lsn)
	require.NoError(t, n.Release(lsn), "nothing is committed, so it releases nothing")
	require.NoError(t, n.committed(state{index: 7}))
	for _, c := range []*cut{n.rotatedAt(lsn), copied} {
		s, err := n.await(c)
		require.NoError(t, err)
		require.EqualValues(t, 7, s.index)
	}
	require.Empty(t, n.cuts)

	n.Append(2, []byte("command"))
	unfinished := n.proposals.cut()
	n.end()
	_, err := n.await(unfinished)
	require.ErrorIs(t, err, errTakenBack)
	require.Empty(t, n.cuts)
}

func TestALostLeadProvesNothing(t *testing.T) {
	p := leading(t)
	read := p.WaitPosition()
	proof := mustNext(t, p, true)
	require.False(t, p.end(), "nothing has changed that must be taken back")
	require.False(t, p.awaits(proof))
	require.True(t, p.Lost(read))
	p.proved(proof, time.Now())
	require.False(t, p.lease.valid())
}

func TestALostLeadTakesBackWhatIsNotCommitted(t *testing.T) {
	for name, change := range map[string]func(p *proposals){
		"proposed":      func(p *proposals) { p.Append(1, nil); p.next() },
		"not proposed":  func(p *proposals) { p.Append(1, nil) },
		"after the end": func(p *proposals) { p.halt(0); p.Append(1, nil) },
	} {
		p := leading(t)
		change(p)
		require.True(t, p.end(), name)
		p.begin(2, false)
		require.False(t, p.end(), name)
	}
}
