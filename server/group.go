package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/cluster/peers"
	"github.com/atomredis/atomredis/internal/cluster/shards"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/eviction"
	"github.com/atomredis/atomredis/internal/replication/membership"
	"github.com/atomredis/atomredis/internal/replication/quorum"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/transfer"
	"github.com/atomredis/atomredis/internal/wire/peer"
	"github.com/atomredis/atomredis/persist"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/journal"
	"github.com/atomredis/atomredis/persist/rdb"
)

// The server as a member of a group that shares a journal (package internal/replication/quorum). The leader is a master
// whose replies wait until the changes that they show are committed. The others are its replicas: they execute committed
// records one after the other, at the time that the leader had.

// GroupNetwork connects the servers of a group; where a field is nil they use TCP at raft-addr.
type GroupNetwork struct {
	// Listener accepts the connections of the other servers; the server closes it.
	Listener net.Listener
	// Dial connects to another server.
	Dial func(addr string, timeout time.Duration) (net.Conn, error)
	// SegmentSize is the length of a segment of the shared journal, in bytes; 0 means 64 MiB.
	SegmentSize int64
}

// group is the state of the server as a member of a group.
type group struct {
	srv    *Server
	joined atomic.Pointer[quorum.Node] // see node
	r      *session.Replayer

	network GroupNetwork
	ctx     context.Context // ends when the server leaves the group
	cancel  context.CancelFunc

	following *atomic.Bool // session.Shared.Following
	members   membership.Membership
	// deposed is when the server has lost the lead; nil at other times. For a while clients may still come that were told that
	// it leads: they must not read here.
	deposed atomic.Pointer[time.Time]
}

// node returns the server's part in its group; nil before the data has been read, and without a group.
func (g *group) node() quorum.Node {
	if n := g.joined.Load(); n != nil {
		return *n
	}
	return nil
}

// dial connects to another server's raft-addr. It fails before the data has been read: the record of a cluster's shards is
// known earlier.
func (g *group) dial(addr string, purpose peer.Purpose, timeout time.Duration) (*peer.Conn, error) {
	node := g.node()
	if node == nil {
		return nil, net.ErrClosed
	}
	return node.Dial(addr, purpose, timeout)
}

// deposedFor is that while in multiples of raft-timeout. Other servers name the leader for half of one after its last message,
// which may be late.
const deposedFor = 2

var (
	errGroupDurable = errors.New("raft-addr needs a data directory")
	errGroupReplica = errors.New("replicaof directive not allowed with raft-addr")
	errGroupPeers   = errors.New("raft-peers must name raft-addr")
	errWitnessAlone = errors.New("raft-witness needs raft-addr: a witness votes in a group")
	errWitnessShard = errors.New("a witness has no slots: raft-witness needs cluster-enabled no, also if the group is a shard")
)

// checkGroup returns an error if a server with these settings cannot belong to the group that they name.
func checkGroup(set *config.Settings) error {
	switch {
	case set.Raft.Addr == "" && set.Raft.Witness:
		return errWitnessAlone
	case set.Raft.Addr == "":
		return nil
	case set.Raft.Witness && set.Cluster.Enabled:
		return errWitnessShard
	case !set.Durable():
		return errGroupDurable
	case set.Replication.ReplicaOf.Host != "":
		return errGroupReplica
	case !slices.Contains(set.Raft.Peers, set.Raft.Addr):
		return errGroupPeers
	}
	return nil
}

// openGroup is persist.Options.Group.
func (srv *Server) openGroup(fs disk.FS, dir string, state []byte) (journal.Journal, error) {
	g, set := &srv.group, srv.config.Get()
	g.ctx, g.cancel = context.WithCancel(context.Background())
	stored, err := srv.storage.HasData()
	if err != nil {
		return nil, err
	}
	o := quorum.Options{
		Addr: set.Raft.Addr, Peers: set.Raft.Peers, Timeout: time.Duration(set.Raft.Timeout) * time.Millisecond,
		Quorum: set.Raft.Quorum, Client: srv.clientAddr(set), Sentinel: srv.sentinelAddr(set), FS: fs, Dir: dir, State: state,
		HasData: state == nil && stored, Log: srv.log, Waited: srv.sessions.Waited,
		Listener: g.network.Listener, Dial: g.network.Dial, SegmentSize: g.network.SegmentSize,
		Serve: srv.servePeer, Connections: int(srv.maxRaftConnections()),
		Secret:      func() string { return srv.config.Get().Raft.Secret },
		Protected:   func() bool { return g.network.Listener == nil && srv.config.Get().Network.ProtectedMode },
		AutoJoin:    func() bool { return srv.config.Get().Raft.Join },
		Witness:     set.Raft.Witness,
		Zone:        func() string { return srv.config.Get().Raft.Zone },
		LeaderZones: func() []string { return srv.config.Get().Raft.LeaderZones },
		WriteProblem: func() string {
			if f := srv.storageFailure(); f != nil {
				return f.Err.Error()
			}
			return ""
		},
		Known:    srv.otherShards,
		Trailing: func() int64 { return eviction.CheckpointSize(srv.config.Get()) },
	}
	if o.Dial == nil {
		o.Dial = func(addr string, timeout time.Duration) (net.Conn, error) {
			return srv.tls.Dial(g.ctx, addr, timeout, set.TLS.Replication)
		}
	}
	if set.TLS.Replication {
		o.TLS = srv.tls.Peers()
	}
	node, err := quorum.Open(o)
	if damaged, ok := errors.AsType[*quorum.DamagedError](err); ok {
		return nil, &persist.AsideError{Err: fmt.Errorf("%w; %s leads the group: the next start copies its data", err, damaged.Leader),
			Files: []string{set.Files.DBFilename, set.Files.AppendDirname, set.Files.AppendFilename}}
	}
	if err != nil {
		return nil, err
	}
	srv.shards.Join(g.ctx, node)
	srv.migrations.Join(g.ctx, node)
	srv.forwards.Join(g.ctx, node, srv.shards)
	srv.sessions.Forwards.Store(set.Raft.Proxy)
	srv.config.Follow(func(set *config.Settings) { srv.sessions.Forwards.Store(set.Raft.Proxy) }, "replicated-proxy")
	g.r = srv.sessions.NewReplayer(command.FromJournal)
	g.r.Obey()
	g.members.Join(node)
	var guard engine.Guard
	guard.Lock(srv.ks, engine.AllShards, srv.ks.Now())
	g.follow(&guard)
	guard.Unlock()
	g.joined.Store(&node) // last, because it tells commands that the rest is there
	return node, nil
}

// startGroup makes the server take part in its group.
func (srv *Server) startGroup() error {
	node := srv.group.node()
	if node == nil {
		return nil
	}
	if err := node.Start(&srv.group); err != nil {
		return err
	}
	srv.shards.Start()
	srv.warnOfOpenGroup()
	return nil
}

// warnOfOpenGroup logs what it means that servers on other machines prove nothing at raft-addr.
func (srv *Server) warnOfOpenGroup() {
	set := srv.config.Get()
	host, _, _ := net.SplitHostPort(set.Raft.Addr)
	ip := net.ParseIP(host)
	switch {
	case srv.group.network.Listener != nil: // the program that the server is part of decides who connects
	case set.TLS.Replication || set.Raft.Secret != "" || host == "localhost" || ip != nil && ip.IsLoopback():
	case set.Network.ProtectedMode:
		srv.log.Warn("raft-addr is open to programs on the machines of the group's servers, and no others: raft-secret, " +
			"or tls-replication, lets in only servers that prove who they are")
	default:
		srv.log.Warn("raft-addr is open: anyone who can connect to it can join the group, read and change all data, and remove " +
			"servers; set raft-secret, or tls-replication, on all servers")
	}
}

// otherShards returns the addresses of the servers of the cluster's other shards.
func (srv *Server) otherShards() (addrs []string) {
	for _, o := range srv.shards.Committed().Others {
		addrs = append(addrs, o.Addrs...)
	}
	return addrs
}

// readMember is persist.Options.Member.
func (srv *Server) readMember(fs disk.FS, dir string, state []byte) error {
	r := srv.sessions.NewReplayer(command.FromJournal)
	r.Obey()
	_, err := quorum.Stopped{FS: fs, Dir: dir, State: state}.Read(r.Apply)
	return err
}

// leave ends the server's participation in the group.
func (g *group) leave() {
	if node := g.node(); node != nil {
		g.cancel()
		node.Leave()
		g.srv.shards.Wait()
		g.srv.migrations.Wait()
		g.srv.broadcast.Close()
	}
}

// Do implements quorum.Machine.
func (g *group) Do(now int64, commands []byte) error { return g.r.Do(now, commands) }

// Lead implements quorum.Machine.
func (g *group) Lead(at func()) {
	srv := g.srv
	var guard engine.Guard
	guard.Lock(srv.ks, engine.AllShards, srv.ks.Now())
	at()
	g.following.Store(false)
	g.deposed.Store(nil)
	guard.SetJournal(g.node())
	guard.SetReplica(false)
	srv.shards.Led()
	srv.followed.Led(&guard)
	guard.Unlock()
	srv.shards.Kick()
	srv.roleChanged()
	srv.servicesLoaded()
	srv.eviction.Schedule(0)
}

// Follow implements quorum.Machine.
func (g *group) Follow(at func()) {
	var guard engine.Guard
	guard.Lock(g.srv.ks, engine.AllShards, g.srv.ks.Now())
	at()
	g.follow(&guard)
	g.srv.followed.LeadLost() // replicas would miss later committed records
	g.depose()
	guard.Unlock()
	g.srv.forwards.LeadLost()
	g.srv.roleChanged()
}

// Unelected implements quorum.Machine.
func (g *group) Unelected() { g.depose() }

// depose refuses clients that take the server for the leader, before any of their next commands is executed.
func (g *group) depose() {
	now := time.Now()
	g.deposed.Store(&now)
	g.srv.restrict()
	g.sendAway()
}

// separate reports whether clients must look for the leader: in a cluster they are sent there, and a follower may forward
// their commands.
func (g *group) separate() bool { return g.srv.cluster == nil && !g.srv.sessions.Forwards.Load() }

// sendAway disconnects clients that take the server for the leader, so that they look for the present one.
func (g *group) sendAway() {
	if g.separate() {
		g.srv.sessions.SendAway()
	}
}

// refuses reports whether clients of a follower must not read, because they may take it for the leader.
func (g *group) refuses() bool {
	return g.separate() && (g.deposed.Load() != nil || g.node().Elected())
}

// forgive lets clients read again, once another server leads and clients know. Those that have come too early look again.
func (g *group) forgive(leader string) {
	since := g.deposed.Load()
	enough := deposedFor * time.Duration(g.srv.config.Get().Raft.Timeout) * time.Millisecond
	if since == nil || leader == "" || leader == g.members.Status().Addr || time.Since(*since) < enough {
		return
	}
	g.sendAway()
	g.deposed.CompareAndSwap(since, nil)
}

// follow makes the server a replica.
func (g *group) follow(guard *engine.Guard) {
	g.following.Store(true)
	guard.SetReplica(true)
	guard.SetJournal(nil)
	g.srv.withdrawWriters()
}

// Reset implements quorum.Machine.
func (g *group) Reset(at func(group []byte) error) error {
	srv := g.srv
	srv.replica.SetLoading(true)
	srv.followed.Drop() // disconnects replicas that have received records which are now undone
	var failed error
	err := srv.storage.Reset(func(guard *engine.Guard) {
		failed = at(srv.storage.Group())
		guard.SetJournal(nil) // SetJournal completes the reset
	})
	return errors.Join(err, failed)
}

// Restored implements quorum.Machine.
func (g *group) Restored() { g.srv.replica.SetLoading(false) }

// Copy implements quorum.Machine.
func (g *group) Copy(w io.Writer, at func()) error {
	var record, history []byte
	how := transfer.Copy{Content: transfer.All, Wait: true, At: func(*engine.Guard) {
		at()
		record, history = g.srv.shards.Stored(), g.srv.followed.Stored()
	}, About: func() []rdb.Aux {
		return []rdb.Aux{{Name: auxRecord, Value: string(record)}, {Name: auxHistory, Value: string(history)}}
	}}
	return g.srv.exporter.Copy(g.ctx, w, how)
}

// The fields of a copy that have the record of a shard, and the history of the stream from a group's leader to
// replicas.
const (
	auxRecord  = "atomredis-shard"
	auxHistory = "atomredis-history"
)

// Replace implements quorum.Machine.
func (g *group) Replace(r io.Reader, at func()) error {
	srv := g.srv
	srv.replica.SetLoading(true)
	srv.followed.Drop() // the copy has the history, if there is one
	err := srv.storage.Replace(func() error {
		var failed error
		err := srv.fill(g.ctx, r, g.r, func(history []byte) { failed = srv.followed.Restore(history) })
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		at()
		return nil
	})
	if err != nil {
		return fmt.Errorf("the leader's copy: %w", err)
	}
	srv.replica.SetLoading(false)
	return nil
}

// Store implements quorum.Machine.
func (g *group) Store() error { return g.srv.storage.Save() }

// Told implements quorum.Machine.
func (g *group) Told() {
	g.srv.storageChanged()
	g.srv.followed.Heard()
}

// Acked implements quorum.Machine.
func (g *group) Acked() { g.srv.followed.Heard() }

// Changed implements quorum.Machine.
func (g *group) Changed() {
	leader := g.members.Refresh()
	g.srv.forwards.LeaderChanged(leader)
	g.forgive(leader)
}

// roleChanged makes the server's new role visible.
func (srv *Server) roleChanged() {
	if srv.group.node() != nil {
		srv.group.Changed()
	}
	srv.restrict()
	srv.scoreForRole()
}

// follows reports whether only another server's commands change the data.
func (srv *Server) follows() bool { return srv.replica.Following() || srv.group.following.Load() }

// MasterAddr implements session.Host.
func (srv *Server) MasterAddr() (host string, port int, ok bool) {
	if st, ok := srv.replica.Status(); ok {
		return st.Host, st.Port, true
	}
	return srv.group.members.Leader()
}

// restriction returns the error for a command with these flags on a server that follows its group's leader, "" if
// the command may run.
func (g *group) restriction(flags command.Flag, writes bool, set *config.Settings) command.Error {
	switch {
	case !g.members.Follows() || g.node() == nil: // while it reads its data it has another error
		return ""
	case writes:
		return command.ErrReadOnly
	case g.members.Witness() && flags&(command.ReadOnly|command.MayReplicate) != 0:
		return errWitness
	case g.srv.replica.Loading() && flags&command.Loading == 0:
		return command.ErrLoading
	case flags&(command.ReadOnly|command.MayReplicate) != 0 && g.refuses():
		return command.ErrMasterDown
	case flags&command.Stale == 0 && set.Raft.MaxLag > 0 && g.members.SilentFor(set.Raft.MaxLag):
		return command.ErrMasterDown
	}
	return ""
}

// errWitness answers reads at a witness. Clients know the word: the server cannot answer, and another one can.
const errWitness command.Error = "MASTERDOWN The server is a witness of its group, and has no data"

// ChangeGroup implements raftcommands.Host.
func (srv *Server) ChangeGroup(change quorum.Change, addr string) error {
	node := srv.group.node()
	err := change.Make(node, addr)
	st := node.Status()
	if !errors.Is(err, quorum.ErrNotLeader) || st.Leader == "" || st.Leader == st.Addr {
		return err
	}
	c, err := node.Dial(st.Leader, peer.Shards, peers.Timeout)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(peers.TaskTimeout))
	err = c.Call(peers.Question{Ask: string(change), Addr: addr}, &peers.News{})
	if errors.Is(err, peer.NotLeading) || shards.Unknown(err) { // or the leader is too old to be asked
		return quorum.ErrNotLeader
	}
	return err
}

// InGroup implements replication.Host.
func (srv *Server) InGroup() bool { return srv.group.members.Configured() }

// GroupNode implements raftcommands.Host.
func (srv *Server) GroupNode() quorum.Node { return srv.group.node() }

// GroupStatus returns the status of the server and its group; the zero Status if it belongs to none.
func (srv *Server) GroupStatus() quorum.Status {
	if node := srv.group.node(); node != nil {
		return node.Status()
	}
	return quorum.Status{}
}
