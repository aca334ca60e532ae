package server

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/cluster/forward"
	"github.com/atomredis/atomredis/internal/cluster/migrate"
	"github.com/atomredis/atomredis/internal/cluster/peers"
	"github.com/atomredis/atomredis/internal/cluster/shards"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/commands/search"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/replication/quorum"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

// The methods of the server that package internal/cluster/shards needs, and the errors that name the server of a
// slot.

// shardsHost is the server as shards.Host.
type shardsHost Server

// Leads implements shards.Host.
func (h *shardsHost) Leads() bool { return !h.group.following.Load() }

// Status implements shards.Host.
func (h *shardsHost) Status() *quorum.Status { return h.group.members.Status() }

// SlotsLost implements shards.Host.
func (h *shardsHost) SlotsLost(slots *cluster.SlotSet) {
	h.sessions.SlotsLost(slots)
}

// SlotsGained implements shards.Host.
func (h *shardsHost) SlotsGained() {
	if h.Leads() {
		(*Server)(h).keysArrived()
	}
}

// Tick implements shards.Host.
func (h *shardsHost) Tick() {
	h.migrations.Tick()
	h.forwards.ShardsChanged()
}

// Definitions implements shards.Host.
func (h *shardsHost) Definitions() string { return search.Definitions((*Server)(h)) }

// Defined implements shards.Host.
func (h *shardsHost) Defined(shard, digest string) { search.Heard((*Server)(h), shard, digest) }

// ClusterShards implements search.Sharded.
func (srv *Server) ClusterShards() *shards.Shards {
	if srv.cluster == nil {
		return nil
	}
	return srv.shards
}

// startShards prepares the server as a member of a group.
func (srv *Server) startShards(set *config.Settings) {
	srv.group.members.Configure(set.Raft.Addr, set.Raft.Witness, srv.group.following)
	srv.broadcast = peers.NewBroadcast((*broadcastHost)(srv))
	srv.shards = shards.New(shards.Options{ID: srv.clusterShard, Clustered: srv.cluster != nil, Config: srv.config,
		Keyspace: srv.ks, Host: (*shardsHost)(srv)})
	srv.sessions.Shards = srv.shards
	srv.migrations = migrate.New(migrate.Options{Shards: srv.shards, Keyspace: srv.ks, Config: srv.config, Node: srv.cluster,
		Log: srv.log, Host: (*migrateHost)(srv)})
	srv.sessions.Migrations = srv.migrations
	srv.forwards = forward.New(srv.sessions, (*forwardHost)(srv))
}

// servePeer serves a connection of another server, which may belong to any shard.
func (srv *Server) servePeer(c *peer.Conn) {
	switch c.Purpose() {
	case peer.Shards:
		c.SetDeadline(time.Now().Add(peers.TaskTimeout))
		c.SetLimit(maxQuestion)
		var q peers.Question
		if c.ReadRequest(&q) != nil {
			return
		}
		if a, err := srv.answer(&q); err != nil {
			_ = c.Fail(err)
		} else {
			_ = c.Reply(a)
		}
	case peer.Migration:
		c.SetLimit(maxQuestion)
		if srv.cluster == nil {
			_ = c.Fail(shards.ErrNoCluster)
			return
		}
		srv.migrations.Export(c)
	case peer.Forward:
		srv.forwards.Serve(c)
	case peer.Search:
		search.ServePeer(srv, c)
	case peer.Stream:
		srv.followed.WantedElsewhere()
	default:
		_ = srv.broadcast.Receive(c) // the sender gets an error when it writes
	}
}

// maxQuestion is the longest question of another server, in bytes.
const maxQuestion = 1 << 20

// answer answers a question of another server.
func (srv *Server) answer(q *peers.Question) (a peers.News, err error) {
	switch c := quorum.Change(q.Ask); {
	case c.Known():
		if err = c.Make(srv.group.node(), q.Addr); errors.Is(err, quorum.ErrNotLeader) {
			err = &peer.Error{Code: peer.NotLeading, Text: err.Error()}
		}
		return a, err
	case srv.cluster != nil && migrate.Answers(q.Ask):
		return srv.migrations.Answer(q)
	}
	return srv.shards.Answer(q)
}

// ApplyShardRecord implements cluster.Host.
func (srv *Server) ApplyShardRecord(text []byte) error {
	if srv.shards == nil {
		return nil
	}
	return srv.shards.Apply(text)
}

// In a group a checkpoint has, in addition to the keys: a mark, the length of the result of
// psync.Followers.StoredBefore, that result, and the record of the shard.
const extraMark = "shard\x01"

// extra is persist.Options.Extra.
func (srv *Server) extra() []byte {
	beside, record := srv.followed.StoredBefore(srv.withKept(srv.scripts.Stored())), srv.shards.Stored()
	if record == nil {
		return beside
	}
	b := binary.AppendUvarint([]byte(extraMark), uint64(len(beside)))
	return append(append(b, beside...), record...)
}

// restoreExtra is persist.Options.Restore.
func (srv *Server) restoreExtra(extra []byte) error {
	beside, record, err := splitExtra(extra)
	if err == nil && srv.shards != nil {
		err = srv.shards.Apply(record)
	}
	if err != nil {
		return err
	}
	beside, err = srv.followed.RestoreBefore(beside)
	if err != nil {
		return err
	}
	functions, kept, err := splitKept(beside)
	if err == nil {
		err = srv.restoreFunctions(functions)
	}
	if err == nil {
		err = srv.restoreKept(kept)
	}
	return err
}

// splitExtra returns the parts of a result of extra.
func splitExtra(b []byte) (beside, record []byte, err error) {
	if len(b) < len(extraMark) || string(b[:len(extraMark)]) != extraMark {
		return b, nil, nil
	}
	b = b[len(extraMark):]
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, errors.New("the stored record of the shard is damaged")
	}
	b = b[size:]
	return b[:n:n], b[n:], nil
}

// Elsewhere implements session.Host.
func (srv *Server) Elsewhere(slot int, reads bool) command.Error {
	h, g := srv.shards, &srv.group
	now := h.Now()
	if !now.Own.Has(slot) {
		return owner(h, now, slot)
	}
	if !g.following.Load() || reads || g.node() == nil {
		return "" // it became ours after the session's check, or the server is loading
	}
	switch st := g.members.Status(); {
	case st.Leader == "" || st.Leader != st.Addr && st.LeaderAt == "":
		return session.ErrClusterDown
	case st.Leader == st.Addr:
		return session.ErrTryAgain
	default:
		return movedTo(slot, st.LeaderAt)
	}
}

// owner returns the error that names another shard, which has a slot.
func owner(h *shards.Shards, now *shards.State, slot int) command.Error {
	id, _ := now.Owners.Of(slot)
	switch id {
	case "":
		return session.ErrNotServed
	case now.ID: // it is exported, and not yet claimed
		return session.ErrTryAgain
	}
	addr := h.LeaderOf(id)
	if addr == "" {
		return session.ErrClusterDown
	}
	return movedTo(slot, addr)
}
