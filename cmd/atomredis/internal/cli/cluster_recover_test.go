package cli

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/replication/quorum"
)

// --force is no directive.
func TestARecoveryIsForced(t *testing.T) {
	for _, args := range [][]string{{}, {"--force"}} {
		var out bytes.Buffer
		code := Run(context.Background(), append([]string{"cluster", "recover", "--dir", t.TempDir()}, args...), nil, &out, &out)
		require.NotZero(t, code)
		require.Contains(t, out.String(), "there is no data in")
	}
}

func TestARecoverySaysWhomItHasNotReached(t *testing.T) {
	lines := recovered("a:1", quorum.Found{NotReached: []error{errors.New("not reached: b:1 (for a reason)")}})
	require.Equal(t, "not reached: b:1 (for a reason)", lines[0])
}

// Servers are asked from bind-source-addr, as the server itself does.
func TestARecoveryDialsFromTheAddressOfTheServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	conf := config.NewConfig()
	require.NoError(t, conf.Set("bind-source-addr", "127.0.0.1", false))
	dial, err := dialRaft(conf)
	require.NoError(t, err)
	c, err := dial(l.Addr().String(), time.Minute)
	require.NoError(t, err)
	defer c.Close()
	require.Equal(t, "127.0.0.1", c.LocalAddr().(*net.TCPAddr).IP.String())
	require.NoError(t, conf.Set("bind-source-addr", "192.0.2.1", false)) // which the machine does not have
	_, err = dial(l.Addr().String(), time.Minute)
	require.Error(t, err)
}
