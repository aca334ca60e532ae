package session

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/transport"
)

func TestAccessIsForLocalClientsOrAll(t *testing.T) {
	local, remote := &Session{peer: transport.Peer{Addr: "127.0.0.1:1"}}, &Session{peer: transport.Peer{Addr: "192.0.2.1:1"}}
	for access, want := range map[config.Access][2]bool{config.AccessNo: {false, false}, config.AccessYes: {true, true},
		config.AccessLocal: {true, false}} {
		require.Equal(t, want, [2]bool{local.Has(access), remote.Has(access)}, access)
	}
}
