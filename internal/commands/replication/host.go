package replication

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/replication"
)

// Host is what the commands of this package need of the server.
type Host interface {
	command.Host
	// Master returns the state of the link to the master; ok is false if there is none.
	Master() (link replication.Link, ok bool)
	// Followers returns the server's followers, and the offset of their stream.
	Followers() (list []replication.Follower, offset int64)
	// InGroup reports whether the server belongs to a group that elects its leader.
	InGroup() bool
	// Group returns the server's group for replicas; ok is false without a group.
	Group() (g replication.Group, ok bool)
	// Follow makes the server a replica, and Lead makes it a master with its present data. The guard holds
	// everything.
	Follow(g *engine.Guard, host string, port int)
	Lead(g *engine.Guard)
	// HasStream reports whether others can follow the server now: not while the link to its own master is down, or
	// while the leader of its group makes no stream, which a follower that wants only a copy does not need.
	HasStream(copyOnly bool) bool
	// Recall applies a note about the replication history from the journal, in database db.
	Recall(note [][]byte, db int) error
	// Acked returns how many followers, and other servers of the group, have executed changes, or, if synced is set, have them
	// on disk. AwaitAcked asks them, and calls finish with their number once n have; a client waits for one such number at a
	// time.
	Acked(written replication.Written, synced bool) int64
	AwaitAcked(client Client, written replication.Written, n int64, synced bool, finish func(acked int64))
	// Failover begins to hand the lead over to a follower: the one at host and port, or with host "" the first that has all
	// data. After timeout ms (0 is for ever) the server keeps the lead, or with force hands it over although the follower
	// lacks data.
	Failover(host string, port int64, force bool, timeout int64)
	// FailingOver reports whether a failover is under way; AbortFailover ends it.
	FailingOver() bool
	AbortFailover()
	// TakeOver makes a replica a master at its master's request, if id is the name of its history.
	TakeOver(id string) command.Error
	// HasJournal reports whether there is a journal, and Durable whether all of it is on the disk, or will be before the reply
	// is sent.
	HasJournal() bool
	Durable() bool
	// AwaitDurable calls finish once the present end of the journal is on the disk.
	AwaitDurable(finish func())
}

// Client is what the commands need of the client.
type Client interface {
	command.Client
	ID() int64
	// Following reports whether the client is a follower: it gets a copy of the data, and perhaps the changes.
	Following() bool
	// StartFollowing makes the client a follower with its announced capabilities; announce says that the reply names
	// the history.
	StartFollowing(announce bool)
	// GoOn makes the client a follower that already has a history up to an offset. ok is false if the server cannot
	// send all changes since then.
	GoOn(id string, offset int64) (ok bool)
	// Capabilities returns the client's announced capabilities as a follower, for changes.
	Capabilities() *replication.Capabilities
	// Acknowledge records the offset up to which a follower has executed the stream, and the offset up to which it
	// has the stream on disk, -1 if unknown.
	Acknowledge(offset, synced int64)
	// Wrote returns the place of the client's last change.
	Wrote() replication.Written
}

func hostOf(c *command.Ctx) Host     { return c.Host.(Host) }
func clientOf(c *command.Ctx) Client { return c.Client.(Client) }
