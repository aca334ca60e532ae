// Package replication has the commands by which servers follow each other, and those that wait until others have the
// client's writes.
package replication

import (
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/replication"
)

func init() { command.Register(replicaCommands) }

var replicaCommands = []*command.Command{
	{Name: "failover", Group: "server", Since: "6.2.0", Arity: -1, Flags: command.Admin | command.NoScript | command.Stale,
		Summary: "Changes places with a replica, without losing anything",
		Syntax:  "[TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds]", Complexity: "O(1)", Do: failover},
	{Name: "replicaof", Group: "server", Since: "5.0.0", Arity: 3,
		Flags:   command.NoAsyncLoading | command.Admin | command.NoScript | command.Stale | command.WholeKeyspace,
		Summary: "Makes the server a replica of another, or promotes it",
		Syntax:  "<host port | NO ONE>", Complexity: "O(1)", Do: replicaOf},
	{Name: "slaveof", Group: "server", Since: "1.0.0", Deprecated: "5.0.0", Instead: "`REPLICAOF`", Arity: 3,
		Flags:   command.NoAsyncLoading | command.Admin | command.NoScript | command.Stale | command.WholeKeyspace,
		Summary: "REPLICAOF by its old name", Syntax: "<host port | NO ONE>",
		Complexity: "O(1)", Do: replicaOf},
	{Name: "role", Group: "server", Since: "2.8.12", Arity: 1,
		Flags:   command.NoScript | command.Loading | command.Stale | command.Fast,
		ACL:     command.CatAdmin | command.CatDangerous,
		Summary: "Returns the server's role in replication", Complexity: "O(1)", Do: role},
}

const (
	errReplicaInCluster command.Error = "ERR REPLICAOF not allowed in cluster mode."
	errReplicaInGroup   command.Error = "ERR REPLICAOF not allowed for a server of a group that elects its leader."
	errReplicaClient    command.Error = "ERR Command is not valid when client is a replica."
	errMasterPort       command.Error = "ERR Invalid master port"

	errFailoverInCluster command.Error = "ERR FAILOVER not allowed in cluster mode."
	errNoFailover        command.Error = "ERR No failover in progress."
	errFailoverTimeout   command.Error = "ERR FAILOVER timeout must be greater than 0"
	errFailoverOfReplica command.Error = "ERR FAILOVER is not valid when server is a replica."
	errFailoverAlone     command.Error = "ERR FAILOVER requires connected replicas."
	errFailoverForce     command.Error = "ERR FAILOVER with force option requires both a timeout and target HOST and IP."
	errFailoverTarget    command.Error = "ERR FAILOVER target HOST and PORT is not a replica."
	errFailoverOffline   command.Error = "ERR FAILOVER target replica is not online."
	errFailoverTwice     command.Error = "ERR FAILOVER already in progress."
	errFailoverInGroup   command.Error = "ERR FAILOVER not allowed for a server of a group that elects its leader."
	errReplicaOfFailing  command.Error = "ERR REPLICAOF not allowed while failing over."
)

// failover makes the server change places with a follower.
func failover(c *command.Ctx) {
	if c.ClusterMode() {
		c.Err(errFailoverInCluster)
		return
	}
	if len(c.Args) == 2 && command.EqualFold(c.Args[1], "abort") {
		if !hostOf(c).FailingOver() {
			c.Err(errNoFailover)
			return
		}
		hostOf(c).AbortFailover()
		c.W.OK()
		return
	}
	var target string
	var port, timeout int64
	force := false
	for o := c.Options(1); o.Next(); {
		ok := true
		switch {
		case o.Is("timeout") && o.More() && timeout == 0:
			if timeout, ok = c.Int(o.Arg()); ok && timeout <= 0 {
				c.Err(errFailoverTimeout)
				return
			}
		case o.Is("to") && o.Left() >= 2 && target == "":
			target = string(o.Arg())
			port, ok = c.Int(o.Arg())
		case o.Is("force") && !force:
			force = true
		default:
			c.Err(command.ErrSyntax)
			return
		}
		if !ok {
			return
		}
	}
	host := hostOf(c)
	_, follows := host.Master()
	list, _ := host.Followers()
	at := slices.IndexFunc(list, func(f replication.Follower) bool { return f.Host == target && f.Port == port })
	switch {
	case host.InGroup():
		c.Err(errFailoverInGroup)
	case host.FailingOver():
		c.Err(errFailoverTwice)
	case follows:
		c.Err(errFailoverOfReplica)
	case len(list) == 0:
		c.Err(errFailoverAlone)
	case force && (timeout == 0 || target == ""):
		c.Err(errFailoverForce)
	case target != "" && at < 0:
		c.Err(errFailoverTarget)
	case target != "" && list[at].State != replication.FollowerOnline:
		c.Err(errFailoverOffline)
	default:
		host.Failover(target, port, force, timeout)
		c.W.OK()
	}
}

func replicaOf(c *command.Ctx) {
	host, client := hostOf(c), clientOf(c)
	if c.ClusterMode() {
		c.Err(errReplicaInCluster)
		return
	}
	if host.InGroup() {
		c.Err(errReplicaInGroup)
		return
	}
	if host.FailingOver() {
		c.Err(errReplicaOfFailing)
		return
	}
	link, follows := host.Master()
	if command.EqualFold(c.Args[1], "no") && command.EqualFold(c.Args[2], "one") {
		if follows {
			host.Lead(c.G)
			host.Log().Info("the server is a master again", "client", client.ID())
		}
		c.W.OK()
		return
	}
	if client.Following() {
		c.Err(errReplicaClient)
		return
	}
	port, ok := c.IntIn(c.Args[2], 0, 65535, errMasterPort)
	if !ok {
		return
	}
	name := string(c.Args[1])
	if follows && strings.EqualFold(link.Host, name) && link.Port == int(port) {
		c.W.Simple("OK Already connected to specified master")
		return
	}
	host.Log().Info("the server becomes a replica", "host", name, "port", port, "client", client.ID())
	host.Follow(c.G, name, int(port))
	c.W.OK()
}

func role(c *command.Ctx) {
	link, follows := hostOf(c).Master()
	if !follows {
		list, offset := hostOf(c).Followers()
		list = slices.DeleteFunc(list, func(f replication.Follower) bool { return f.State != replication.FollowerOnline })
		c.W.Array(3)
		c.W.BulkString("master")
		c.W.Int(offset)
		c.W.Array(len(list))
		for _, f := range list {
			c.W.Array(3)
			c.W.BulkString(f.Host)
			c.W.BulkString(strconv.FormatInt(f.Port, 10))
			c.W.BulkString(strconv.FormatInt(f.Acked, 10))
		}
		return
	}
	c.W.Array(5)
	c.W.BulkString("slave")
	c.W.BulkString(link.Host)
	c.W.Int(int64(link.Port))
	c.W.BulkString(link.State.String())
	c.W.Int(link.Offset)
}
