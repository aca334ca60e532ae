package raft

import (
	"testing"
	"time"

	consensus "github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/replication/quorum"
)

// The address of a server in Raft's configuration has its role, and its name.
func TestRolesAreInAddresses(t *testing.T) {
	for _, of := range []struct {
		as      quorum.Role
		witness bool
		addr    consensus.ServerAddress
		votes   consensus.ServerSuffrage
		is      quorum.Role
	}{
		{quorum.Voter, false, "[::1]:1", consensus.Voter, quorum.Voter},
		{quorum.Voter, true, "[::1]:1/witness", consensus.Voter, quorum.Witness},
		{quorum.Joining, false, "[::1]:1", consensus.Nonvoter, quorum.Joining},
		{quorum.Joining, true, "[::1]:1/witness", consensus.Nonvoter, quorum.Joining},
		{quorum.Waiting, false, "[::1]:1?", consensus.Nonvoter, quorum.Waiting},
		{quorum.Waiting, true, "[::1]:1/witness?", consensus.Nonvoter, quorum.Waiting},
		{quorum.Learner, false, "[::1]:1/learner?", consensus.Nonvoter, quorum.Learner},
	} {
		addr := addressAs(of.as, of.witness, "[::1]:1")
		require.Equal(t, of.addr, addr)
		require.Equal(t, of.witness, isWitnessAt(addr), addr)
		require.Equal(t, "[::1]:1", nameAt(addr), addr)
		require.Equal(t, of.is, roleOf(consensus.Server{Suffrage: of.votes, Address: addr}), addr)
	}
}

// Only entries with commands lose their data, and the leader's own entries keep it.
func TestAWitnessGetsNoData(t *testing.T) {
	data := appendRecord(appendHeader(nil, 1), 5, []byte("commands"))
	entries := []*consensus.Log{
		{Index: 1, Term: 1, Type: consensus.LogConfiguration, Data: []byte("servers")},
		{Index: 2, Term: 1, Type: consensus.LogCommand, Data: data},
		{Index: 3, Term: 2, Type: consensus.LogNoop},
	}
	bare := withoutData(entries)
	require.Equal(t, []*consensus.Log{entries[0], {Index: 2, Term: 1, Type: consensus.LogCommand, Data: withheld}, entries[2]}, bare)
	_, records, err := splitEntry(entries[1].Data)
	require.NoError(t, err)
	require.Len(t, records, recordHeader+len("commands"))
	_, _, err = splitEntry(bare[1].Data)
	require.ErrorIs(t, err, errWithheld, "a server with data must not execute it")
}

// A witness waits for the voters that answer, and not for those that are slow.
func TestWhatAWitnessMayGet(t *testing.T) {
	p := &progress{}
	now := time.Now()
	has := func(id consensus.ServerID, term, entry, committed uint64) {
		p.answered(id)
		p.heard(id, &consensus.AppendEntriesRequest{Term: term, LeaderCommitIndex: committed,
			Entries: []*consensus.Log{{Index: entry, Term: term}}}, &consensus.AppendEntriesResponse{Success: true})
	}
	others := []consensus.ServerID{"a", "b"}
	all := ^uint64(0)
	require.Equal(t, all, p.copied(others, 1, now), "nobody answers")
	has("a", 1, 7, 3)
	require.EqualValues(t, 7, p.copied(others, 1, now))
	p.answered("b")
	require.Zero(t, p.copied(others, 1, now), "it answers, and has nothing")
	has("b", 1, 5, 3)
	require.EqualValues(t, 5, p.copied(others, 1, now))
	require.Zero(t, p.copied(others, 2, now), "what they have in another term is unknown")
	require.Equal(t, all, p.copied(others, 1, time.Now().Add(time.Hour)), "they have not answered since")
	require.Equal(t, all, p.copied(nil, 1, now), "there are no others")

	p.tooSlow(others, 1, 7)
	require.EqualValues(t, 7, p.copied(others, 1, now), "b is slow")
	has("b", 1, 6, 7)
	require.EqualValues(t, 7, p.copied(others, 1, now), "it has not all that is committed")
	has("b", 1, 8, 8)
	has("a", 1, 9, 8)
	require.EqualValues(t, 8, p.copied(others, 1, now), "it has")
}
