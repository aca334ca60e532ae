package family

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNetwork(t *testing.T) {
	for address, want := range map[string]string{
		"0.0.0.0:1": "tcp4", "127.0.0.1:0": "tcp4", "[::]:1": "tcp6", "[::1]:1": "tcp6", "[fe80::1%eth0]:1": "tcp6",
		"[::ffff:127.0.0.1]:1": "tcp4", "localhost:1": "tcp", ":1": "tcp", "none": "tcp", "": "tcp",
	} {
		require.Equal(t, want, Network(address), address)
	}
}
