package clients_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/clients"
)

func TestFilterSparesWhoIsNotMeant(t *testing.T) {
	d := clients.Info{ID: 7, Addr: "a:1", Local: "b:2", Started: 1000, Channels: 1}
	for _, f := range []clients.Filter{
		{}, {ID: 7}, {Except: 8}, {Type: clients.PubSub}, {Addr: []byte("a:1")}, {Local: []byte("b:2")}, {MaxAge: 4},
	} {
		require.True(t, f.Matches(&d, 5000), "%+v", f)
	}
	for _, f := range []clients.Filter{
		{ID: 8}, {Except: 7}, {Type: clients.Normal}, {Addr: []byte("b:2")}, {Local: []byte("a:1")}, {MaxAge: 5},
	} {
		require.False(t, f.Matches(&d, 5000), "%+v", f)
	}
}

func TestSkipLastsForOneCommand(t *testing.T) {
	r := clients.SkipNext // as CLIENT REPLY SKIP leaves it
	require.True(t, r.Begin())
	r.EndSkipped()
	require.False(t, r.Begin())
	r = clients.ReplyOff
	require.True(t, r.Begin())
	r.EndSkipped()
	require.True(t, r.Begin())
}
