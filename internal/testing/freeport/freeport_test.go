package freeport

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// A process never gets an address twice, nor one of a block that another process has.
func TestAddressesAreOfTheProcessAlone(t *testing.T) {
	seen := map[string]bool{}
	for range 2*block + 1 {
		addr := Addr(t)
		require.False(t, seen[addr], addr)
		seen[addr] = true
	}
	require.GreaterOrEqual(t, len(own.guards), 3)
	for _, guard := range own.guards {
		require.NotContains(t, seen, guard.Addr().String())
		_, err := net.Listen("tcp", guard.Addr().String())
		require.Error(t, err, "another process gets no such block")
	}
}
