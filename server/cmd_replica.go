package server

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/command"
	servercommands "github.com/atomredis/atomredis/commands/server"
	"github.com/atomredis/atomredis/stats"
)

// The commands that make the server a replica of another one and tell about it. What a replica does is in replica.go.

func init() { command.Register(replicaCommands) }

var replicaCommands = []*command.Command{
	{Name: "replicaof", Group: "server", Since: "5.0.0", Arity: 3,
		Flags:   command.NoAsyncLoading | command.Admin | command.NoScript | command.Stale | command.WholeKeyspace,
		Summary: "Makes the server a replica of another, or promotes it",
		Syntax:  "<host port | NO ONE>", Complexity: "O(1)", Do: cmdReplicaOf},
	{Name: "slaveof", Group: "server", Since: "1.0.0", Deprecated: "5.0.0", Instead: "`REPLICAOF`", Arity: 3,
		Flags:   command.NoAsyncLoading | command.Admin | command.NoScript | command.Stale | command.WholeKeyspace,
		Summary: "REPLICAOF by its old name", Syntax: "<host port | NO ONE>",
		Complexity: "O(1)", Do: cmdReplicaOf},
	{Name: "role", Group: "server", Since: "2.8.12", Arity: 1,
		Flags:   command.NoScript | command.Loading | command.Stale | command.Fast,
		ACL:     command.CatAdmin | command.CatDangerous,
		Summary: "Returns the server's role in replication", Complexity: "O(1)", Do: cmdRole},
}

const (
	errReplicaInCluster command.Error = "ERR REPLICAOF not allowed in cluster mode."
	errReplicaClient    command.Error = "ERR Command is not valid when client is a replica."
	errMasterPort       command.Error = "ERR Invalid master port"
)

func cmdReplicaOf(c *command.Ctx) {
	srv := serverOf(c)
	if c.ClusterMode() {
		c.Err(errReplicaInCluster)
		return
	}
	if command.EqualFold(c.Args[1], "no") && command.EqualFold(c.Args[2], "one") {
		if srv.replica.link() != nil {
			srv.stopFollowing(c.G)
			srv.config.SetReplicaOf("", 0)
			srv.log.Info("the server is a master again", "client", sessionOf(c).id)
		}
		c.W.OK()
		return
	}
	if sessionOf(c).follower.following.Load() {
		c.Err(errReplicaClient)
		return
	}
	port, ok := c.IntIn(c.Args[2], 0, 65535, errMasterPort)
	if !ok {
		return
	}
	host := string(c.Args[1])
	if l := srv.replica.link(); l != nil && strings.EqualFold(l.host, host) && l.port == int(port) {
		c.W.Simple("OK Already connected to specified master")
		return
	}
	srv.log.Info("the server becomes a replica", "host", host, "port", port, "client", sessionOf(c).id)
	srv.config.SetReplicaOf(host, int(port))
	srv.startFollowing(c.G, host, int(port))
	c.W.OK()
}

func cmdRole(c *command.Ctx) {
	l := serverOf(c).replica.link()
	if l == nil {
		list, offset := serverOf(c).followed.status()
		list = slices.DeleteFunc(list, func(f followerStatus) bool { return f.state != feedOnline })
		c.W.Array(3)
		c.W.BulkString("master")
		c.W.Int(offset)
		c.W.Array(len(list))
		for _, f := range list {
			c.W.Array(3)
			c.W.BulkString(f.host)
			c.W.BulkString(strconv.FormatInt(f.port, 10))
			c.W.BulkString(strconv.FormatInt(f.acked, 10))
		}
		return
	}
	st := l.status()
	c.W.Array(5)
	c.W.BulkString("slave")
	c.W.BulkString(l.host)
	c.W.Int(int64(l.port))
	c.W.BulkString(st.state.String())
	c.W.Int(st.offset)
}

// replication tells of both parts, as far as the server has them.
func infoReplication(b *servercommands.InfoText, c *command.Ctx) {
	list, offset := serverOf(c).followed.status()
	if l := serverOf(c).replica.link(); l == nil {
		b.Text("role", "master")
	} else {
		st := l.status()
		offset = max(st.offset, 0)
		b.Text("role", "slave")
		b.Text("master_host", l.host)
		b.Number("master_port", int64(l.port))
		up := "down"
		if st.state == linkConnected {
			up = "up"
		}
		b.Text("master_link_status", up)
		heard := int64(-1)
		if st.state == linkConnected {
			heard = int64(time.Since(st.heard).Seconds())
		}
		b.Number("master_last_io_seconds_ago", heard)
		b.Flag("master_sync_in_progress", st.state == linkSync)
		b.Number("slave_read_repl_offset", st.offset)
		b.Number("slave_repl_offset", st.offset)
		if st.state == linkSync {
			b.Number("master_sync_total_bytes", max(st.size, 0))
			b.Number("master_sync_read_bytes", st.received)
			b.Number("master_sync_left_bytes", max(st.size-st.received, 0))
			b.Text("master_sync_perc", strconv.FormatFloat(100*stats.Ratio(st.received, st.size), 'f', 2, 64))
			b.Number("master_sync_last_io_seconds_ago", int64(time.Since(st.heard).Seconds()))
		}
		if st.state != linkConnected {
			b.Number("master_link_down_since_seconds", int64(time.Since(st.down).Seconds()))
		}
		if st.problem != "" {
			b.Text("master_link_last_error", command.OneLine(st.problem))
		}
		set := serverOf(c).config.Get()
		b.Number("slave_priority", int64(set.ReplicaPriority))
		b.Number("slave_read_only", 1)
		b.Flag("replica_announced", set.ReplicaAnnounced)
	}
	b.Number("connected_slaves", int64(len(list)))
	if set := serverOf(c).config.Get(); set.MinReplicasToWrite > 0 && set.MinReplicasMaxLag > 0 {
		b.Number("min_slaves_good_slaves", int64(serverOf(c).followed.good(set)))
	}
	for i, f := range list {
		b.Text("slave"+strconv.Itoa(i), fmt.Sprintf("ip=%s,port=%d,state=%s,offset=%d,lag=%d", f.host, f.port, f.state,
			f.acked, f.lag))
	}
	b.Text("master_failover_state", "no-failover")
	b.Text("master_replid", serverOf(c).replID())
	b.Text("master_replid2", strings.Repeat("0", len(serverOf(c).runID)))
	b.Number("master_repl_offset", offset)
	b.Number("second_repl_offset", -1)
	b.Zeros("repl_backlog_active", "repl_backlog_size", "repl_backlog_first_byte_offset", "repl_backlog_histlen")
}

// errReplicaOfInCluster is returned by New.
var errReplicaOfInCluster = errors.New("replicaof directive not allowed in cluster mode")
