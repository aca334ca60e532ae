package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/cluster"
)

// The commands that tools use to move a slot key by key move the slot as a whole.
func TestSetslotMigratesASlotWithItsKeys(t *testing.T) {
	t.Parallel()
	list := startShards(t, 2, 1)
	a, b := list[0].leader().client(), list[1].leader().client()
	idA, idB := a.do("CLUSTER MYID"), b.do("CLUSTER MYID")
	key := "k{" + cluster.TagOf(7) + "}"
	require.Equal(t, "+OK", a.do("SET "+key+" x"))

	for command, reply := range map[string]string{
		"IMPORTING " + idB:        "-ERR I'm already the owner of hash slot 7",
		"MIGRATING nobody":        "-ERR I don't know about node nobody",
		"NODE nobody":             "-ERR Unknown node nobody",
		"NODE " + idB:             "-ERR the slot has not moved: CLUSTER SETSLOT IMPORTING at its new node moves it",
		"NODE " + idA:             "+OK",
		"STABLE":                  "+OK",
		"MIGRATING " + idB:        "+OK",
		"MIGRATING " + idB + " x": "-ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP",
	} {
		require.Equal(t, reply, a.do("CLUSTER SETSLOT 7 "+command), command)
	}
	require.Equal(t, "-ERR I'm not the owner of hash slot 7", b.do("CLUSTER SETSLOT 7 MIGRATING "+idB))
	require.Equal(t, "+OK", b.do("CLUSTER SETSLOT 7 IMPORTING "+idA))
	require.Equal(t, "+OK", a.do("CLUSTER SETSLOT 7 MIGRATING "+idB))
	require.Empty(t, a.list("CLUSTER GETKEYSINSLOT 7 10"))
	require.Equal(t, "+OK", b.do("CLUSTER SETSLOT 7 NODE "+idB))
	require.Equal(t, "+OK", a.do("CLUSTER SETSLOT 7 NODE "+idB))
	require.Equal(t, "x", b.do("GET "+key))
	require.Contains(t, a.do("GET "+key), "MOVED 7 ")

	// A slot that no node has.
	require.Equal(t, "+OK", a.do("CLUSTER DELSLOTS 8"))
	b.waitFor("CLUSTER INFO", "cluster_slots_assigned:16383")
	require.Equal(t, "+OK", b.do("CLUSTER SETSLOT 8 NODE "+idB))
	require.Equal(t, "+OK", b.do("SET {"+cluster.TagOf(8)+"} y"))
}
