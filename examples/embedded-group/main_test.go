package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
)

// node is a running node.
type node struct {
	url  string
	stop func() // ends it as a signal does
}

// runNode runs a node until the test ends. members accepts the connections of the other nodes.
func runNode(t *testing.T, dir string, members net.Listener, peers []string) *node {
	ln := listen(t, "127.0.0.1:0")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	addr := members.Addr().String()
	go func() {
		ended <- run(ctx, ln, atomredis.Options{Dir: dir, Raft: &atomredis.Raft{Addr: addr, Peers: peers, Listener: members}})
	}()
	stop := sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	t.Cleanup(stop)
	return &node{"http://" + ln.Addr().String(), stop}
}

func listen(t *testing.T, addr string) net.Listener {
	ln, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	return ln
}

func (n *node) vote(t *testing.T) string { return n.ask(t, http.MethodPost, "/votes/tea") }

func (n *node) get(t *testing.T, path string) string { return n.ask(t, http.MethodGet, path) }

// ask sends a request, again as long as there is no leader.
func (n *node) ask(t *testing.T, method, path string) string {
	for {
		request, err := http.NewRequestWithContext(t.Context(), method, n.url+path, nil)
		require.NoError(t, err)
		r, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		if text := text(t, r); r.StatusCode != http.StatusServiceUnavailable {
			require.Equal(t, http.StatusOK, r.StatusCode, text)
			return text
		}
	}
}

func text(t *testing.T, r *http.Response) string {
	defer r.Body.Close()
	content, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(content)
}

func TestThePollContinuesWithoutAnyOneNode(t *testing.T) {
	var (
		dir     = t.TempDir()
		members []net.Listener
		peers   []string
		nodes   []*node
	)
	for range 3 {
		ln := listen(t, "127.0.0.1:0")
		members, peers = append(members, ln), append(peers, ln.Addr().String())
	}
	for i, ln := range members {
		nodes = append(nodes, runNode(t, filepath.Join(dir, strconv.Itoa(i)), ln, peers))
	}
	require.Equal(t, "tea: 1\n", nodes[0].vote(t))
	require.Equal(t, "tea: 2\n", nodes[1].vote(t))
	require.Equal(t, "tea: 2\n", nodes[2].get(t, "/votes"))

	leader := -1
	for leader < 0 { // it may change
		for i, n := range nodes {
			if n.get(t, "/role") == "leader\n" {
				leader = i
			}
		}
	}
	nodes[leader].stop()
	others := append(nodes[leader+1:len(nodes):len(nodes)], nodes[:leader]...)
	require.Equal(t, "tea: 3\n", others[0].vote(t))
	require.Equal(t, "tea: 3\n", others[1].get(t, "/votes"))

	var ln net.Listener
	require.Eventually(t, func() bool { // the system may have given the port to another connection meanwhile
		var err error
		ln, err = net.Listen("tcp", peers[leader])
		return err == nil
	}, time.Minute, time.Millisecond)
	again := runNode(t, filepath.Join(dir, strconv.Itoa(leader)), ln, peers)
	require.Equal(t, "tea: 4\n", again.vote(t))
}
