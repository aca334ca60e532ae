package clients_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/clients"
	"github.com/atomredis/atomredis/internal/clients/acl"
)

func TestFilterSparesWhoIsNotMeant(t *testing.T) {
	zero, two := 0, 2
	account := new(acl.Account)
	d := clients.Info{ID: 7, Addr: "[::1]:9", Local: "b:2", Started: 1000, LastActive: 3000, Channels: 1, DB: 2, Multi: 1,
		Name: "n", Library: "l", LibraryVersion: "v", Account: account}
	matches := []clients.Criteria{
		{IDs: []int64{6, 7}}, {Type: clients.PubSub}, {Addr: []byte("[::1]:9")}, {Local: []byte("b:2")}, {IP: []byte("::1")},
		{Account: account}, {Name: []byte("n")}, {Library: []byte("l")}, {Version: []byte("v")}, {Flags: "Px"}, {DB: &two},
	}
	differs := []clients.Criteria{
		{IDs: []int64{6, 8}}, {Type: clients.Normal}, {Addr: []byte("b:2")}, {Local: []byte("[::1]:9")}, {IP: []byte("b")},
		{Account: new(acl.Account)}, {Name: []byte("")}, {Library: []byte("")}, {Version: []byte("l")}, {Flags: "PN"},
		{Capa: "r"}, {DB: &zero},
	}
	for _, k := range matches {
		require.True(t, (&clients.Filter{With: k}).Matches(&d, 5000), "%+v", k)
		require.False(t, (&clients.Filter{Without: k}).Matches(&d, 5000), "%+v", k)
	}
	for _, k := range differs {
		require.False(t, (&clients.Filter{With: k}).Matches(&d, 5000), "%+v", k)
		require.True(t, (&clients.Filter{Without: k}).Matches(&d, 5000), "%+v", k)
	}
	both := clients.Criteria{Name: []byte("n"), Flags: "N"} // the client meets one of the two
	require.False(t, (&clients.Filter{With: both}).Matches(&d, 5000))
	require.False(t, (&clients.Filter{Without: both}).Matches(&d, 5000))
	for _, f := range []clients.Filter{{}, {Except: 8}, {MaxAge: 4}, {Idle: 2}} {
		require.True(t, f.Matches(&d, 5000), "%+v", f)
	}
	for _, f := range []clients.Filter{{Except: 7}, {MaxAge: 5}, {Idle: 3}} {
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
