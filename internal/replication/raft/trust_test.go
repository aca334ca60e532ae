package raft

import (
	"net"
	"net/netip"
	"testing"
	"time"

	consensus "github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/memconn"
	"github.com/atomredis/atomredis/internal/replication/quorum"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

func tcp(ip string) net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(ip), 4711))
}

// Without a secret and without TLS only the machines of known servers may connect, as long as protected-mode is on.
func TestWhichMachinesMayConnect(t *testing.T) {
	protected := func() bool { return true }
	known := quorum.Options{Addr: "192.0.2.1:1", Peers: []string{"192.0.2.1:1", "192.0.2.2:1"}, Protected: protected,
		Known: func() []string { return []string{"[2001:db8::7]:1"} }}
	n := &Node{o: known, proposals: newProposals(time.Second)}
	n.peers.n = n
	n.stored.config = consensus.Configuration{Servers: []consensus.Server{{ID: "192.0.2.3:1", Address: "192.0.2.3:1?"}}}
	n.peers.seen = map[string]contact{"192.0.2.4:1": {}}
	n.mux = newMux(n, nil)
	require.False(t, n.mux.trusts(tcp("192.0.2.4")), "it has answered, and is no member")
	members := n.stored.config
	n.stored.config = consensus.Configuration{}
	n.mux.machines = machines{}
	require.True(t, n.mux.trusts(tcp("192.0.2.4")), "it has answered, and the node has no group yet")
	n.stored.config, n.mux.machines = members, machines{}
	for ip, want := range map[string]bool{
		"127.0.0.1": true, "::1": true, "::ffff:127.0.0.1": true, // this machine
		"192.0.2.1": true, "192.0.2.2": true, "::ffff:192.0.2.2": true, // raft-peers
		"192.0.2.3": true, "2001:db8::7": true, // a member, another shard
		"192.0.2.5": false, "2001:db8::8": false, "0.0.0.0": false,
	} {
		require.Equal(t, want, n.mux.trusts(tcp(ip)), ip)
	}
	require.True(t, n.mux.trusts(memconn.Addr{}), "within the process")

	n.o.Protected = func() bool { return false }
	require.True(t, n.mux.trusts(tcp("192.0.2.5")))
	n.o.Protected, n.o.Secret = protected, func() string { return "s3cret" }
	require.True(t, n.mux.trusts(tcp("192.0.2.5")), "it must prove the secret")
}

// A machine whose address becomes known may connect soon.
func TestAddressesAreLookedUpAgain(t *testing.T) {
	var m machines
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	require.True(t, m.have(a, []string{"192.0.2.1:1"}))
	require.False(t, m.have(b, []string{"192.0.2.1:1"}))
	m.when = time.Now().Add(-resolveAgain)
	require.True(t, m.have(b, []string{"192.0.2.1:1", "192.0.2.2:1"}))
	require.False(t, m.have(a, []string{"192.0.2.2:1"}), "a server that is not known any more")
}

// fromListener gives connections another remote address.
type fromListener struct {
	net.Listener
	addr net.Addr
}

type fromConn struct {
	net.Conn
	addr net.Addr
}

func (l fromListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return fromConn{c, l.addr}, err
}

func (c fromConn) RemoteAddr() net.Addr { return c.addr }

// A stranger gets a reason, and connections of servers that know the secret work for each purpose.
func TestStrangersAreRefused(t *testing.T) {
	serve := func(c *peer.Conn) { _ = c.Reply("served") }
	open := func(connect func(string) net.Conn, purpose peer.Purpose, secret string) error {
		_, err := peer.Open(connect(""), purpose, "", "x:1", secret, time.Now().Add(deadline))
		return err
	}
	purposes := []peer.Purpose{peer.Raft, peer.Members, peer.Shards, peer.Migration, peer.Forward, peer.Stream, peer.Broadcast,
		peer.BroadcastShard, peer.Search}

	machine := listeningFrom(t, tcp("192.0.2.9"), quorum.Options{Addr: "127.0.0.1:1", Protected: func() bool { return true }, Serve: serve})
	secret := listening(t, quorum.Options{Addr: "x:1", Secret: func() string { return "s3cret" }, Serve: serve})
	for _, purpose := range purposes {
		require.ErrorIs(t, open(machine, purpose, ""), peer.Untrusted)
		require.ErrorIs(t, open(secret, purpose, ""), peer.Untrusted)
		require.ErrorIs(t, open(secret, purpose, "guessed"), peer.Untrusted)
		require.NoError(t, open(secret, purpose, "s3cret"))
	}
	for _, old := range []string{"R", "Q{}\n", "S{}\n"} { // the forms of old servers prove nothing
		for _, connect := range []func(string) net.Conn{machine, secret} {
			c := connect(old)
			answer := make([]byte, 1)
			n, err := c.Read(answer)
			require.Error(t, err)
			require.Zero(t, n)
		}
	}
}

// A server with the secret does not let itself in when the server that it dials passes the connection back.
func TestAServerDoesNotProveItsSecretToItself(t *testing.T) {
	connect := listening(t, quorum.Options{Addr: "x:1", Secret: func() string { return "s3cret" }})
	n := &Node{proposals: newProposals(time.Second), o: quorum.Options{Addr: "x:1", Secret: func() string { return "s3cret" },
		Dial: func(string, time.Duration) (net.Conn, error) { return connect(""), nil }}}
	m := newMux(n, nil)
	_, err := m.dial("y:1", peer.Raft, deadline)
	require.ErrorIs(t, err, peer.Untrusted)
	c, err := m.dial("x:1", peer.Raft, deadline)
	require.NoError(t, err)
	c.Close()
}

func TestAnswersOfServersThatAreNoMembersAreForgotten(t *testing.T) {
	p := peers{seen: map[string]contact{"a:1": {}, "b:1": {}}}
	p.forget(consensus.Configuration{})
	require.ElementsMatch(t, []string{"a:1", "b:1"}, p.asked(), "the server has no group yet")
	p.forget(consensus.Configuration{Servers: []consensus.Server{{ID: "b:1"}}})
	require.Equal(t, []string{"b:1"}, p.asked())
}
