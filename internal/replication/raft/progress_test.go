package raft

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A server that is silent gets at most maxProofs requests, and others are asked nevertheless.
func TestASilentServerIsNotAskedForMoreAndMoreProofs(t *testing.T) {
	var n Node
	silent, answers := make(chan bool), make(chan bool, 2*maxProofs)
	for range maxProofs {
		n.askForProof("silent", answers, func() bool { return <-silent })
	}
	require.Empty(t, answers)
	n.askForProof("silent", answers, func() bool { panic("asked") })
	require.False(t, <-answers)
	n.askForProof("other", answers, func() bool { return true })
	require.True(t, <-answers)

	silent <- true // it answers one, and is asked again
	require.True(t, <-answers)
	n.askForProof("silent", answers, func() bool { return <-silent })
	require.Empty(t, answers)
	for range maxProofs {
		silent <- true
		require.True(t, <-answers)
	}
	n.running.Wait()
	require.Empty(t, n.progress.proofs)
}
