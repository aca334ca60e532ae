package server

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

// A message published at one server reaches all servers of all shards, in order, even if some servers are killed.
func TestPublishedMessagesAreHeardAtAllServers(t *testing.T) {
	t.Parallel()
	list := startShards(t, 2, 2)
	var nodes []*groupNode
	for _, g := range list {
		nodes = append(nodes, g.nodes...)
	}
	var hearing []*testClient
	for _, n := range nodes {
		c := n.client()
		require.Contains(t, c.do("SUBSCRIBE news"), "subscribe")
		hearing = append(hearing, c)
	}
	long := strings.Repeat("x", 100_000)
	for i, n := range nodes {
		c := n.client()
		for j := range 100 {
			require.Equal(t, "1", c.do(fmt.Sprintf("PUBLISH news %d-%d-%s", i, j, long[:j*j])))
		}
		for _, h := range hearing {
			for j := range 100 {
				require.Contains(t, h.read(), fmt.Sprintf("%d-%d-%s", i, j, long[:j*j]))
			}
		}
	}
	// Messages of shard channels reach only the shard, and may be published and received at followers.
	own, other := list[0], list[1]
	if !own.nodes[0].shards.Now().Own.Has(cluster.SlotOf([]byte("news"))) {
		own, other = other, own
	}
	var listening []*testClient
	for _, n := range own.nodes {
		c := n.client()
		require.Contains(t, c.do("SSUBSCRIBE news"), "ssubscribe")
		listening = append(listening, c)
	}
	require.Contains(t, other.nodes[0].client().do("SSUBSCRIBE news"), "MOVED")
	require.Contains(t, other.nodes[1].client().do("SPUBLISH news x"), "MOVED")
	for i, n := range own.nodes {
		require.Equal(t, "1", n.client().do(fmt.Sprint("SPUBLISH news shard-", i)))
		for _, h := range listening {
			require.Contains(t, h.read(), fmt.Sprint("shard-", i))
		}
	}
	// A server that was down receives the messages published after its return.
	away := list[1].followers()[0]
	away.kill()
	publisher := nodes[0].client()
	publisher.do("PUBLISH news unheard")
	away.start()
	c := away.client()
	require.Contains(t, c.do("SUBSCRIBE news"), "subscribe")
	heard := make(chan string, 1)
	go func() { heard <- c.read() }()
	for n := 0; ; n++ {
		publisher.do("PUBLISH news again")
		select {
		case message := <-heard:
			require.Contains(t, message, "again")
			return
		default:
		}
	}
}

// The record of the shards is known before the data has been read, and messages have receivers from then on.
func TestMessagesOfAServerThatLoadsAreDropped(t *testing.T) {
	t.Parallel()
	_, err := (*broadcastHost)(new(Server)).Dial("127.0.0.1:1", peer.Broadcast, testTimeout)
	require.ErrorIs(t, err, net.ErrClosed)
}
