package cluster

import (
	"github.com/atomredis/atomredis/internal/clients"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/command"
)

// Host is what the commands of this package need of the server.
type Host interface {
	command.Host
	// Node returns the server as a node of its cluster, nil if cluster mode is off.
	Node() *cluster.Node
	// Shards changes the cluster; it is nil if the server belongs to no group.
	Shards() Shards
	// SlotsGone answers clients that wait for keys of slots which the node has given up. The guard over everything is
	// held: otherwise a command that has found its slot served could begin to wait afterwards.
	SlotsGone(slots *cluster.SlotSet)
	// ApplyShardRecord installs the record of the shard from the journal. The guard over everything is held.
	ApplyShardRecord(text []byte) error
	// ClusterView returns the cluster as seen by a client that has connected to the address local, if cluster mode
	// is on.
	ClusterView(local string) *cluster.View
}

// Shards changes the cluster that the server's shard belongs to. The methods wait until the shard has committed the change;
// no guard may be held.
type Shards interface {
	Meet(host string, bus int) error
	Forget(shard string) error
	AddSlots(slots cluster.SlotSet) error
	DropSlots(slots cluster.SlotSet) error
	FlushSlots() error
	// BumpEpoch makes the epoch of the shard's slots the latest of the cluster, and reports whether it was not.
	BumpEpoch() (epoch uint64, bumped bool, err error)
	// Links returns the connections to other servers, which need not be nodes of the cluster.
	Links() []cluster.Link
	// TakeLead makes this server lead its shard.
	TakeLead() error
	// Import starts an import of slots from the shard that owns them, and returns the name of the task.
	Import(slots cluster.SlotSet) (task string, err error)
	// AwaitImport waits for the end of an import and returns its error.
	AwaitImport(task string) error
	// CancelTasks cancels the named task, or all tasks if the name is empty, and returns their number.
	CancelTasks(task string) int
	// Tasks returns the tasks that the server works on or has worked on, the latest first.
	Tasks() []cluster.MigrationTask
}

// Client is what the commands need of the client.
type Client interface {
	command.Client
	// LocalAddr is the address that the client has connected to, as CLIENT LIST shows it.
	LocalAddr() string
	// Options returns the client's options, for changes.
	Options() *clients.Options
}

func nodeOf(c *command.Ctx) *cluster.Node { return c.Host.(Host).Node() }
func clientOf(c *command.Ctx) Client      { return c.Client.(Client) }

// viewOf returns the cluster as the client sees it.
func viewOf(c *command.Ctx) *cluster.View { return c.Host.(Host).ClusterView(clientOf(c).LocalAddr()) }
