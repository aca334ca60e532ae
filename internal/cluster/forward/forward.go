package forward

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/atomredis/atomredis/internal/replication/quorum"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

// Host is what Connections needs of the server beside its sessions. Any goroutine may call its methods.
type Host interface {
	// Leader returns the address of the leader; "" without one.
	Leader() string
	// Refuse returns the error for another server's client if the server has too many clients; otherwise "".
	Refuse() string
}

// Node is the server's part in its group; quorum.Node is one.
type Node interface {
	// Dial connects to another server.
	Dial(addr string, purpose peer.Purpose, timeout time.Duration) (*peer.Conn, error)
	// Detach makes a connection of another server count as that of a client.
	Detach(conn *peer.Conn)
	// LastContact returns when a follower has last heard of the leader.
	LastContact() time.Time
}

var _ Node = quorum.Node(nil)

// Shards knows the other shards of a cluster, by their IDs; shards.Shards does.
type Shards interface {
	// Servers returns the addresses of a shard's servers, the last known leader first.
	Servers(shard string) []string
	// LeaderAddr returns the address of a shard's leader; "" if it is unknown.
	LeaderAddr(shard string) string
}

// Connections are the connections on which commands are forwarded: at a follower those of its clients to the leader, at
// the leader those of other servers' clients.
type Connections struct {
	host     Host
	sessions *session.Shared
	node     Node
	shards   Shards
	ctx      context.Context // ends when the server leaves its group
	running  sync.WaitGroup

	mu         sync.Mutex
	closed     bool
	forwarders map[*forwarder]struct{}
	remotes    map[*remoteClient]struct{}
}

const (
	// timeouts is how long commands wait for a leader, in multiples of raft-timeout.
	timeouts = 10
	// maxQueue is how many bytes of commands a forwarder takes before they have been sent.
	maxQueue = 1 << 20
	// maxUnread is how many bytes of replies may wait for the client before no more are read from the leader.
	maxUnread = 1 << 20
)

var errNotLeading = &peer.Error{Code: peer.NotLeading, Text: "the server does not lead"}

// New returns Connections without any. Join comes before the first client.
func New(sessions *session.Shared, host Host) *Connections {
	return &Connections{host: host, sessions: sessions, forwarders: map[*forwarder]struct{}{}, remotes: map[*remoteClient]struct{}{}}
}

// Join sets the server's part in its group, and what it knows of other shards. ctx ends when the server leaves the group.
func (c *Connections) Join(ctx context.Context, node Node, shards Shards) {
	c.ctx, c.node, c.shards = ctx, node, shards
}

// leaders returns the addresses at which the leader of a shard may be, the most likely one first. "" is the own group.
func (c *Connections) leaders(shard string) []string {
	if shard != "" {
		return c.shards.Servers(shard)
	}
	if leader := c.host.Leader(); leader != "" {
		return []string{leader}
	}
	return nil
}

// timeout returns for how long commands wait for a leader.
func (c *Connections) timeout() time.Duration {
	return timeouts * time.Duration(c.sessions.Config.Get().Raft.Timeout) * time.Millisecond
}

// NewForwarder returns a connection to the leader of a shard, of the own group if that is "", for a client of this server. It is
// opened with the first command.
func (c *Connections) NewForwarder(s *session.Session, shard string) session.Forwarder {
	f := newForwarder(c, s, shard)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		f.ended = true
		return f
	}
	c.forwarders[f] = struct{}{}
	c.running.Go(f.run)
	return f
}

// add registers a client of another server. It returns false if the server is closing; otherwise remove must follow.
func (c *Connections) add(r *remoteClient) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.remotes[r] = struct{}{}
	c.running.Add(1)
	return true
}

// remove undoes add.
func (c *Connections) remove(r *remoteClient) {
	c.mu.Lock()
	delete(c.remotes, r)
	c.mu.Unlock()
	c.running.Done()
}

// LeaderChanged closes the connections to a server that is not the leader any more. leader is the address of the present
// one; "" without one.
func (c *Connections) LeaderChanged(leader string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := range c.forwarders {
		f.mu.Lock()
		if f.shard == "" && f.conn != nil && f.leader != leader && (leader != "" || time.Since(c.node.LastContact()) > c.timeout()) {
			f.conn.Close()
		}
		f.mu.Unlock()
	}
}

// ShardsChanged closes the connections to servers that do not lead other shards any more.
func (c *Connections) ShardsChanged() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := range c.forwarders {
		if f.shard == "" {
			continue
		}
		now := c.shards.LeaderAddr(f.shard)
		f.mu.Lock()
		if f.conn != nil && now != "" && f.leader != now {
			f.conn.Close()
		}
		f.mu.Unlock()
	}
}

// LeadLost disconnects other servers' clients, and listeners whose messages are now published at another server.
func (c *Connections) LeadLost() {
	c.disconnectRemotes()
	if c.sessions.Forwards.Load() {
		c.sessions.EndListeners()
	}
}

// disconnectRemotes closes the connections of other servers' clients.
func (c *Connections) disconnectRemotes() {
	c.mu.Lock()
	remotes := slices.Collect(maps.Keys(c.remotes))
	c.mu.Unlock()
	for _, r := range remotes {
		r.conn.Close()
	}
}

// Recheck makes the sessions of other servers' clients look again at what they may send.
func (c *Connections) Recheck() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range c.remotes {
		r.wake()
	}
}

// Close closes all connections and waits for their goroutines.
func (c *Connections) Close() {
	c.mu.Lock()
	c.closed = true
	forwarders := slices.Collect(maps.Keys(c.forwarders))
	c.mu.Unlock()
	for _, f := range forwarders {
		f.Stop()
	}
	c.disconnectRemotes()
	c.running.Wait()
}
