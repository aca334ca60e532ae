package replication

import (
	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/replication"
)

// Host is what the commands of this package need of the server.
type Host interface {
	command.Host
	// Master tells of the link to the master; ok is false if there is none.
	Master() (link replication.Link, ok bool)
	// Followers tells of those that follow the server, and the offset at which their stream is.
	Followers() (list []replication.Follower, offset int64)
	// InGroup reports whether the server is one of a group that elects its leader.
	InGroup() bool
	// Follow makes the server a replica, and Lead a master with the data that it has. The guard holds everything.
	Follow(g *engine.Guard, host string, port int)
	Lead(g *engine.Guard)
	// HasStream reports whether others can follow the server now: not while it is not connected with its own master.
	HasStream() bool
	// Recall does what a note of the history says that the journal has, in database db.
	Recall(note [][]byte, db int) error
	// HasJournal reports whether there is a journal, and Durable whether all of it is on the disk.
	HasJournal() bool
	Durable() bool
	// AwaitDurable has finish called once what the journal has now is on the disk.
	AwaitDurable(finish func())
}

// Client is what they need of the client.
type Client interface {
	command.Client
	ID() int64
	// Following reports whether the client is a follower: it gets the data, and perhaps what changes.
	Following() bool
	// StartFollowing makes it one, according to its wishes; announce says that it is told which history it gets.
	StartFollowing(announce bool)
	// GoOn makes it a follower that has the first bytes of a history, up to an offset, if it can be sent all that followed;
	// ok is false if it cannot.
	GoOn(id string, offset int64) (ok bool)
	// Wishes are what the client has said of itself as a follower, to be changed.
	Wishes() *replication.Wishes
	// Acknowledge notes the offset up to which it has executed the stream, if it is a follower.
	Acknowledge(offset int64)
}

func hostOf(c *command.Ctx) Host     { return c.Host.(Host) }
func clientOf(c *command.Ctx) Client { return c.Client.(Client) }
