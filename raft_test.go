package atomredis_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
)

// memoryNetwork connects servers of one program.
type memoryNetwork struct {
	mu        sync.Mutex
	listeners map[string]*memoryListener
}

type memoryListener struct {
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func (n *memoryNetwork) listen(addr string) net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &memoryListener{accepted: make(chan net.Conn), closed: make(chan struct{})}
	if n.listeners == nil {
		n.listeners = map[string]*memoryListener{}
	}
	n.listeners[addr] = l
	return l
}

func (n *memoryNetwork) dial(addr string, _ time.Duration) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[addr]
	n.mu.Unlock()
	if l == nil {
		return nil, errors.New("nobody listens")
	}
	here, there := net.Pipe()
	select {
	case l.accepted <- there:
		return here, nil
	case <-l.closed:
		return nil, errors.New("nobody listens any more")
	}
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *memoryListener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

// openGroup opens three servers that share a journal, each with a directory of its own below dir.
func openGroup(dir string) (dbs []*atomredis.DB, err error) {
	var network memoryNetwork
	peers := []string{"a:1", "b:1", "c:1"}
	for _, addr := range peers {
		db, err := atomredis.Open(atomredis.Options{
			Dir:    filepath.Join(dir, addr[:1]),
			Raft:   &atomredis.Raft{Addr: addr, Peers: peers, Listener: network.listen(addr), Dial: network.dial},
			Config: map[string]string{"raft-timeout": "2000"}, // a leader that is only busy keeps the lead
		})
		if err != nil {
			return dbs, err
		}
		dbs = append(dbs, db)
	}
	return dbs, nil
}

// leader waits until one of the servers leads, and returns it.
func leader(dbs []*atomredis.DB) *atomredis.DB {
	for ; ; time.Sleep(10 * time.Millisecond) {
		for _, db := range dbs {
			if reply, err := db.Do(context.Background(), "INFO", "replication"); err == nil {
				if text, _ := reply.Text(); strings.Contains(text, "raft_state:leader") {
					return db
				}
			}
		}
	}
}

// Three servers share their data. Here they run in one program, with connections in memory; without Listener and Dial
// they connect by TCP.
func ExampleOptions_raft() {
	dir, err := os.MkdirTemp("", "group")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	dbs, err := openGroup(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer func() {
		for _, db := range dbs {
			db.Close()
		}
	}()
	ctx := context.Background()
	fmt.Println(leader(dbs).Do(ctx, "SET", "greeting", "hello")) // a majority has it on its disks
	// Output: OK <nil>
}

// In a bubble of testing/synctest waits take no time. The next leader has every change that the first one acknowledged.
func TestAGroupOfEmbeddedServers(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		dbs, err := openGroup(dir)
		defer func() {
			for _, db := range dbs {
				db.Close()
			}
		}()
		require.NoError(t, err)
		first := leader(dbs)
		reply, err := first.Do(t.Context(), "SET", "key", "value")
		require.NoError(t, err)
		require.Equal(t, "OK", text(t, reply))
		_, err = first.Do(t.Context(), "RAFT.TRANSFER")
		require.NoError(t, err)
		second := leader(dbs)
		for second == first { // it has not heard of the new term yet
			time.Sleep(10 * time.Millisecond)
			second = leader(dbs)
		}
		reply, err = second.Do(t.Context(), "GET", "key")
		require.NoError(t, err)
		require.Equal(t, "value", text(t, reply))
		_, err = first.Do(t.Context(), "SET", "key", "other")
		require.ErrorContains(t, err, "READONLY")
	})
}

// With replicated-proxy a follower sends the commands of connections to the leader. Those of Do and Tx it executes itself.
func TestAFollowerForwardsCommandsOfConnectionsAlone(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		dbs, err := openGroup(dir)
		defer func() {
			for _, db := range dbs {
				db.Close()
			}
		}()
		require.NoError(t, err)
		first := leader(dbs)
		follower := dbs[0]
		if follower == first {
			follower = dbs[1]
		}
		_, err = follower.Do(t.Context(), "CONFIG", "SET", "replicated-proxy", "yes")
		require.NoError(t, err)
		conn, err := follower.Dial(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, "SET key value\r\n")
		require.NoError(t, err)
		answer := make([]byte, 5)
		_, err = io.ReadFull(conn, answer)
		require.NoError(t, err)
		require.Equal(t, "+OK\r\n", string(answer))
		reply, err := first.Do(t.Context(), "GET", "key")
		require.NoError(t, err)
		require.Equal(t, "value", text(t, reply))

		_, err = follower.Do(t.Context(), "SET", "key", "other")
		require.ErrorContains(t, err, "READONLY")
		err = follower.Tx(t.Context(), func(tx *atomredis.Tx) error {
			tx.Do("SET", "key", "other")
			return nil
		})
		require.ErrorContains(t, err, "READONLY")
	})
}

func TestOptionsOfAGroup(t *testing.T) {
	raft := &atomredis.Raft{Addr: "a:1", Peers: []string{"a:1"}}
	_, err := atomredis.Open(atomredis.Options{Raft: raft})
	require.ErrorContains(t, err, "needs a data directory")
	_, err = atomredis.Open(atomredis.Options{Dir: t.TempDir(), Raft: &atomredis.Raft{Addr: "a:1", Peers: []string{"b:1"}}})
	require.ErrorContains(t, err, "raft-peers must name raft-addr")
	_, err = atomredis.Open(atomredis.Options{Dir: t.TempDir(), Raft: raft, Config: map[string]string{"raft-addr": "b:1"}})
	require.ErrorContains(t, err, `Raft.Addr is "a:1"`)
}
