// Package cluster has the commands of clusters; package internal/cluster explains them.
package cluster

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/resp"
)

func init() { command.Register(clusterCommands) }

// clusterCommands are the commands of a cluster's node. They assign slots to shards and move them, and make shards
// meet and forget each other. Changing the servers of a shard, or its leader, is an error, because the shard does
// that itself. A server outside a group only gives up slots and takes them back. The other changes are errors there: those
// of Redis for a single node, where it has one.
var clusterCommands = []*command.Command{
	{Name: "asking", Group: "cluster", Since: "3.0.0", Arity: 1, Flags: command.Fast, ACL: command.CatConnection,
		Summary:    "Lets the next command use a slot that is being imported; without effect",
		Complexity: "O(1)", Do: inCluster(asking)},
	{Name: "cluster", Group: "cluster", Since: "3.0.0", Arity: -2, Summary: "Groups the commands about the cluster",
		Complexity: "That of the sub-command", Subs: []*command.Command{
			{Name: "cluster|addslots", Group: "cluster", Since: "3.0.0", Arity: -3,
				Flags:   command.NoAsyncLoading | command.Admin | command.Stale,
				Summary: "Assigns slots that nobody has to the node, or to its shard", Syntax: "slot [slot ...]",
				Complexity: "O(N), where N is the number of slots", Do: inCluster(addslots)},
			{Name: "cluster|addslotsrange", Group: "cluster", Since: "7.0.0", Arity: -4,
				Flags:      command.NoAsyncLoading | command.Admin | command.Stale,
				Summary:    "Assigns ranges of slots that nobody has to the node, or to its shard",
				Syntax:     "start-slot end-slot [start-slot end-slot ...]",
				Complexity: "O(N), where N is the number of ranges", Do: inCluster(addslotsrange)},
			{Name: "cluster|bumpepoch", Group: "cluster", Since: "3.0.0", Arity: 2,
				Flags:      command.NoAsyncLoading | command.Admin | command.Stale,
				Summary:    "Makes the epoch of the shard's slots the latest",
				Complexity: "O(1)", Do: inCluster(bumpepoch)},
			{Name: "cluster|count-failure-reports", Group: "cluster", Since: "3.0.0", Arity: 3,
				Flags:   command.Admin | command.Loading | command.Stale,
				Summary: "Counts the nodes that report another node as failed", Syntax: "node-id",
				Complexity: "O(1)", Do: inCluster(countFailureReports)},
			{Name: "cluster|countkeysinslot", Group: "cluster", Since: "3.0.0", Arity: 3,
				Flags:   command.Stale | command.WholeKeyspace | command.AllKeys,
				Summary: "Counts the keys of a slot", Syntax: "slot",
				Complexity: "O(1)", Do: inCluster(countkeysinslot)},
			{Name: "cluster|delslots", Group: "cluster", Since: "3.0.0", Arity: -3,
				Flags:   command.NoAsyncLoading | command.Admin | command.Stale | command.WholeKeyspace,
				Summary: "Unassigns slots of the node, or of its shard; their keys stay", Syntax: "slot [slot ...]",
				Complexity: "O(N), where N is the number of slots", Do: inCluster(delslots)},
			{Name: "cluster|delslotsrange", Group: "cluster", Since: "7.0.0", Arity: -4,
				Flags:      command.NoAsyncLoading | command.Admin | command.Stale | command.WholeKeyspace,
				Summary:    "Unassigns ranges of slots of the node, or of its shard; their keys stay",
				Syntax:     "start-slot end-slot [start-slot end-slot ...]",
				Complexity: "O(N), where N is the number of ranges", Do: inCluster(delslotsrange)},
			{Name: "cluster|failover", Group: "cluster", Since: "3.0.0", Arity: -2,
				Flags:   command.NoAsyncLoading | command.Admin | command.Stale,
				NoData:  true,
				Summary: "Makes the server the leader of its shard", Syntax: "[FORCE | TAKEOVER]",
				Complexity: "O(1), and an election", Do: inCluster(failover)},
			{Name: "cluster|flushslots", Group: "cluster", Since: "3.0.0", Arity: 2,
				Flags:   command.NoAsyncLoading | command.Admin | command.Stale | command.WholeKeyspace,
				Summary: "Unassigns all slots of the node, or of its shard, which must have no keys", Complexity: "O(1)",
				Do: inCluster(flushslots)},
			{Name: "cluster|forget", Group: "cluster", Since: "3.0.0", Arity: 3,
				Flags:   command.NoAsyncLoading | command.Admin | command.Stale,
				Summary: "Forgets the shard of another node, which must have no slots",
				Syntax:  "node-id", Complexity: "O(1)", Do: inCluster(forget)},
			{Name: "cluster|getkeysinslot", Group: "cluster", Since: "3.0.0", Arity: 4,
				Flags:   command.Stale | command.WholeKeyspace | command.AllKeys,
				Summary: "Lists keys of a slot", Syntax: "slot count",
				Complexity: "O(N), where N is the number of keys listed", Do: inCluster(getkeysinslot)},
			{Name: "cluster|help", Group: "cluster", Since: "5.0.0", Arity: 2, Flags: command.Loading | command.Stale,
				Summary: "Lists the subcommands", Complexity: "O(1)", Do: inCluster(help)},
			{Name: "cluster|info", Group: "cluster", Since: "3.0.0", Arity: 2, Flags: command.Loading | command.Stale,
				Summary: "Shows the state of the cluster", Complexity: "O(1)", Do: inCluster(info)},
			{Name: "cluster|keyslot", Group: "cluster", Since: "3.0.0", Arity: 3, Flags: command.Loading | command.Stale,
				Summary: "Returns the slot of a key", Syntax: "key",
				Complexity: "O(N), where N is the length of the key", Do: inCluster(keyslot)},
			{Name: "cluster|links", Group: "cluster", Since: "7.0.0", Arity: 2, Flags: command.Loading | command.Stale,
				Summary: "Lists the connections to other nodes", Complexity: "O(N), where N is the number of connections", Do: inCluster(links)},
			{Name: "cluster|meet", Group: "cluster", Since: "3.0.0", Arity: -4,
				Flags:   command.NoAsyncLoading | command.Admin | command.Stale,
				Summary: "Makes the shard of another node known, and this one to it",
				Syntax:  "ip port [cluster_bus_port]", Complexity: "O(1)", Do: inCluster(meet)},
			{Name: "cluster|myid", Group: "cluster", Since: "3.0.0", Arity: 2, Flags: command.Loading | command.Stale,
				Summary: "Returns the ID of the node", Complexity: "O(1)", Do: inCluster(myid)},
			{Name: "cluster|myshardid", Group: "cluster", Since: "7.2.0", Arity: 2, Flags: command.Loading | command.Stale,
				Summary: "Returns the ID of the node's shard", Complexity: "O(1)", Do: inCluster(myshardid)},
			{Name: "cluster|nodes", Group: "cluster", Since: "3.0.0", Arity: 2, Flags: command.Loading | command.Stale,
				Summary: "Lists the nodes, one per line", Complexity: "O(1)", Do: inCluster(nodes)},
			{Name: "cluster|replicas", Group: "cluster", Since: "5.0.0", Arity: 3, Flags: command.Admin | command.Loading | command.Stale,
				Summary: "Lists the replicas of a node",
				Syntax:  "node-id", Complexity: "O(1)", Do: inCluster(replicas)},
			{Name: "cluster|replicate", Group: "cluster", Since: "3.0.0", Arity: 3,
				Flags:   command.NoAsyncLoading | command.Admin | command.Stale,
				Summary: "Makes the node a replica of another: an error, unless it is already", Syntax: "node-id",
				Complexity: "O(1)", Do: inCluster(replicate)},
			{Name: "cluster|reset", Group: "cluster", Since: "3.0.0", Arity: -2,
				Flags:   command.Admin | command.Stale | command.NoScript,
				Summary: "Resets the node: not supported", Syntax: "[HARD | SOFT]",
				Complexity: "O(1)", Do: inCluster(reset)},
			{Name: "cluster|saveconfig", Group: "cluster", Since: "3.0.0", Arity: 2,
				Flags:      command.NoAsyncLoading | command.Admin | command.Stale,
				Summary:    "Writes the cluster's configuration to disk: it always is there",
				Complexity: "O(1)", Do: inCluster(saveconfig)},
			{Name: "cluster|set-config-epoch", Group: "cluster", Since: "3.0.0", Arity: 3,
				Flags:   command.NoAsyncLoading | command.Admin | command.Stale,
				Summary: "Sets the epoch of a new node: not supported", Syntax: "config-epoch",
				Complexity: "O(1)", Do: inCluster(setConfigEpoch)},
			{Name: "cluster|migration", Group: "cluster", Since: "8.4.0", Arity: -4,
				Flags:   command.NoAsyncLoading | command.Admin | command.Stale,
				Summary: "Moves slots with their keys here from another shard, tells of such tasks, and ends them",
				Syntax: "<IMPORT start-slot end-slot [start-slot end-slot ...] | CANCEL <ID task-id | ALL> | " +
					"STATUS <ID task-id | ALL>>",
				Complexity: "O(N), where N is the number of slots", Do: inCluster(migration)},
			{Name: "cluster|setslot", Group: "cluster", Since: "3.0.0", Arity: -4,
				Flags:      command.NoAsyncLoading | command.Admin | command.Stale,
				Summary:    "Moves a slot to another node, as the target is told that it imports it",
				Syntax:     "slot <IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE>",
				Complexity: "O(1)", Do: inCluster(setslot)},
			{Name: "cluster|shards", Group: "cluster", Since: "7.0.0", Arity: 2, Flags: command.Loading | command.Stale,
				Summary:    "Lists the shards with their slots and nodes",
				Complexity: "O(1)", Do: inCluster(shards)},
			{Name: "cluster|slaves", Group: "cluster", Since: "3.0.0", Deprecated: "5.0.0", Instead: "`CLUSTER REPLICAS`",
				Arity:   3,
				Flags:   command.Admin | command.Loading | command.Stale,
				Summary: "Lists the replicas of a node",
				Syntax:  "node-id", Complexity: "O(1)", Do: inCluster(replicas)},
			{Name: "cluster|slot-stats", Group: "cluster", Since: "8.2.0", Arity: -4,
				Flags:      command.Stale | command.Loading | command.WholeKeyspace | command.AllKeys,
				Summary:    "Returns the numbers of keys of slots, and what commands have cost there",
				Syntax:     "<SLOTSRANGE start-slot end-slot | ORDERBY metric [LIMIT limit] [ASC | DESC]>",
				Complexity: "O(N log N), where N is the number of slots", Do: inCluster(slotStats)},
			{Name: "cluster|slots", Group: "cluster", Since: "3.0.0", Deprecated: "7.0.0", Instead: "`CLUSTER SHARDS`", Arity: 2,
				Flags:   command.Loading | command.Stale,
				Summary: "Lists ranges of slots with their nodes", Complexity: "O(1)", Do: inCluster(slots)},
			{Name: "cluster|syncslots", Group: "cluster", Since: "8.4.0", Arity: -3,
				Flags:   command.NoAsyncLoading | command.Admin | command.Stale,
				Summary: "Moves slots between nodes, among themselves: an error, there are no others",
				Syntax: "<SYNC task-id start-slot end-slot [start-slot end-slot ...] | RDBCHANNEL task-id | SNAPSHOT-EOF | " +
					"STREAM-EOF | ACK state offset | FAIL error | CONF option [option ...] value [value ...]>",
				Complexity: "O(1)", Do: syncslots, Repeated: true},
		}},
	{Name: "clusterscan", Group: "cluster", Since: "9.1.0", Arity: -2,
		Flags:      command.ReadOnly | command.TouchesArbitraryKeys | command.WholeKeyspace | command.AllKeys,
		ACL:        command.CatKeyspace,
		Summary:    "Iterates over the keys of the cluster, or of a slot",
		Syntax:     "cursor [MATCH pattern] [COUNT count] [TYPE type] [SLOT slot]",
		Complexity: "O(1) for every call, O(N) for a whole walk, where N is the number of keys, of all slots or of one",
		Do:         inCluster(clusterscan)},
	{Name: "readonly", Group: "cluster", Since: "3.0.0", Arity: 1, Flags: command.Fast | command.Loading | command.Stale,
		ACL:     command.CatConnection,
		Summary: "Allows the connection to read from replicas", Complexity: "O(1)",
		Stateful: true, Do: readonly},
	{Name: "readwrite", Group: "cluster", Since: "3.0.0", Arity: 1, Flags: command.Fast | command.Loading | command.Stale,
		ACL:     command.CatConnection,
		Summary: "Cancels READONLY", Complexity: "O(1)",
		Stateful: true, Do: readwrite},
	{Name: "trimslots", Group: "server", Since: "8.4.0", Arity: -5, Flags: command.Write,
		ACL:        command.CatKeyspace | command.CatDangerous,
		Summary:    "Removes the keys of slots that the node does not serve: not supported",
		Syntax:     "RANGES numranges startslot endslot [startslot endslot ...]",
		Complexity: "O(N), where N is the number of ranges", Do: inCluster(trimslots)},
}

const (
	errDisabled        command.Error = "ERR This instance has cluster support disabled"
	errSlot            command.Error = "ERR Invalid slot"
	errSlotOrCount     command.Error = "ERR Invalid slot or number of keys"
	errSlotRange       command.Error = "ERR Invalid or out of range slot"
	errSetslot         command.Error = "ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP"
	errForgetShard     command.Error = "ERR the node is one of this one's shard"
	errNotNow          command.Error = "ERR the command cannot be part of a transaction or a script"
	errForgetSelf      command.Error = "ERR I tried hard but I can't forget myself..."
	errReplicateSelf   command.Error = "ERR Can't replicate myself"
	errReplicaOfOne    command.Error = "ERR I can only replicate a master, not a replica."
	errNoMaster        command.Error = "ERR The specified node is not a master"
	errFailoverReplica command.Error = "ERR You should send CLUSTER FAILOVER to a replica"
	errInternal        command.Error = "ERR CLUSTER SYNCSLOTS subcommands are only allowed for internal clients"
	errNoRanges        command.Error = "ERR missing ranges argument"
	errRanges          command.Error = "ERR invalid number of ranges"
	errServed          command.Error = "ERR the slots are served by this node"
	errTrim            command.Error = "ERR TRIMSLOTS is not supported: keys of slots that have moved are removed without it, and others stay"
)

// inCluster makes a handler return an error if cluster mode is off.
func inCluster(do func(c *command.Ctx)) func(c *command.Ctx) {
	return func(c *command.Ctx) {
		if nodeOf(c) == nil {
			c.Err(errDisabled)
			return
		}
		do(c)
	}
}

// asking does nothing: no client ever gets ASK.
func asking(c *command.Ctx) { c.W.OK() }

// readonly and readwrite are for nodes of clusters, and for replicas that redirect the client otherwise.
func readonly(c *command.Ctx) {
	if nodeOf(c) == nil && !clientOf(c).Options().Redirect {
		c.Err(errDisabled)
		return
	}
	clientOf(c).Options().ReadOnly = true
	c.W.OK()
}

func readwrite(c *command.Ctx) {
	if nodeOf(c) == nil && !clientOf(c).Options().Redirect {
		c.Err(errDisabled)
		return
	}
	clientOf(c).Options().ReadOnly = false
	c.W.OK()
}

func info(c *command.Ctx) {
	v := viewOf(c)
	assigned, served, size, known, epoch := 0, 0, 0, 0, uint64(0)
	for i := range v.Shards {
		s := &v.Shards[i]
		n := s.Slots.Len()
		assigned += n
		if s.Served() {
			served += n
		}
		if n > 0 {
			size++
		}
		known += len(s.Members)
		epoch = max(epoch, s.Epoch)
	}
	state := "ok"
	if served < cluster.Slots {
		state = "fail"
	}
	c.W.Verbatim("txt", fmt.Sprintf("cluster_state:%s\r\ncluster_slots_assigned:%d\r\ncluster_slots_ok:%d\r\ncluster_slots_pfail:0\r\n"+
		"cluster_slots_fail:%d\r\ncluster_known_nodes:%d\r\ncluster_size:%d\r\ncluster_current_epoch:%d\r\ncluster_my_epoch:%d\r\n"+
		"cluster_stats_messages_sent:0\r\ncluster_stats_messages_received:0\r\ntotal_cluster_links_buffer_limit_exceeded:0\r\n",
		state, assigned, served, assigned-served, known, size, epoch, v.Shards[0].Epoch))
}

func myid(c *command.Ctx)      { c.W.BulkString(nodeOf(c).ID) }
func myshardid(c *command.Ctx) { c.W.BulkString(viewOf(c).Shards[0].ID) }
func keyslot(c *command.Ctx)   { c.W.Int(int64(cluster.SlotOf(c.Args[2]))) }

// links lists the connections to and from other nodes. There may be several in each direction. Servers write to them
// without a buffer of their own.
func links(c *command.Ctx) {
	h := shardsOf(c)
	if h == nil {
		c.W.Array(0)
		return
	}
	v := viewOf(c)
	mark, n := c.W.Defer(), 0
	for _, l := range h.Links() {
		if _, m := v.Find(l.Node); m == nil {
			continue // it is forgotten, or not known yet
		}
		direction := "from"
		if l.Dialled {
			direction = "to"
		}
		link := fieldWriter{w: c.W, mark: c.W.Defer()}
		link.text("direction", direction)
		link.text("node", l.Node)
		link.number("create-time", l.Since.UnixMilli())
		link.text("events", "r")
		link.number("send-buffer-allocated", 0)
		link.number("send-buffer-used", 0)
		link.end()
		n++
	}
	c.W.EndArray(mark, n)
}

func nodes(c *command.Ctx) {
	var b []byte
	v := viewOf(c)
	for i := range v.Shards {
		for j := range v.Shards[i].Members {
			b = appendNode(b, &v.Shards[i], &v.Shards[i].Members[j])
		}
	}
	c.W.Verbatim("txt", string(b))
}

// appendNode appends the line of a server in CLUSTER NODES.
func appendNode(b []byte, s *cluster.ShardView, m *cluster.Member) []byte {
	b = fmt.Appendf(b, "%s %s:%d@%d", m.ID, m.IP, m.ClientPort(), m.BusPort)
	if m.Hostname != "" {
		b = append(append(b, ','), m.Hostname...)
	}
	b = append(b, ' ')
	if m.Myself {
		b = append(b, "myself,"...)
	}
	role, master := "master", "-"
	if !m.Leads {
		role = "slave"
		if s.Members[0].Leads {
			master = s.Members[0].ID
		}
	}
	b = append(b, role...)
	link := "connected"
	if !m.Online {
		b, link = append(b, ",fail"...), "disconnected"
	}
	b = fmt.Appendf(b, " %s 0 0 %d %s", master, s.Epoch, link)
	if m.Leads {
		for _, r := range s.Slots.Ranges() {
			b = append(append(b, ' '), r.String()...)
		}
	}
	return append(b, '\n')
}

func slots(c *command.Ctx) {
	v, w := viewOf(c), c.W
	mark, n := w.Defer(), 0
	for i := range v.Shards {
		s := &v.Shards[i]
		if !s.Members[0].Leads {
			continue // no server serves the slots
		}
		shown := slices.DeleteFunc(slices.Clone(s.Members), func(m cluster.Member) bool { return !m.Leads && !m.Online })
		for _, r := range s.Slots.Ranges() {
			w.Array(2 + len(shown))
			w.Int(int64(r.First))
			w.Int(int64(r.Last))
			for j := range shown {
				slotsNode(c, &shown[j])
			}
			n++
		}
	}
	w.EndArray(mark, n)
}

// slotsNode writes a server as CLUSTER SLOTS shows it.
func slotsNode(c *command.Ctx, m *cluster.Member) {
	w := c.W
	w.Array(4)
	if m.Preferred == config.EndpointUnknown {
		w.Null()
	} else {
		w.BulkString(m.Endpoint())
	}
	w.Int(int64(m.ClientPort()))
	w.BulkString(m.ID)
	showIP, showHostname := m.Preferred != config.EndpointIP, m.Preferred != config.EndpointHostname && m.Hostname != ""
	fields := fieldWriter{w: w, mark: w.Defer()}
	if showIP {
		fields.text("ip", m.IP)
	}
	if showHostname {
		fields.text("hostname", m.Hostname)
	}
	fields.end()
}

func shards(c *command.Ctx) {
	v, w := viewOf(c), c.W
	w.Array(len(v.Shards))
	for i := range v.Shards {
		s := &v.Shards[i]
		w.Map(2)
		w.BulkString("slots")
		ranges := s.Slots.Ranges()
		w.Array(2 * len(ranges))
		for _, r := range ranges {
			w.Int(int64(r.First))
			w.Int(int64(r.Last))
		}
		w.BulkString("nodes")
		w.Array(len(s.Members))
		for j := range s.Members {
			shardsNode(c, &s.Members[j])
		}
	}
}

// shardsNode writes a server as CLUSTER SHARDS shows it.
func shardsNode(c *command.Ctx, m *cluster.Member) {
	node := fieldWriter{w: c.W, mark: c.W.Defer()}
	node.text("id", m.ID)
	if m.Port != 0 {
		node.number("port", int64(m.Port))
	}
	if m.TLSPort != 0 {
		node.number("tls-port", int64(m.TLSPort))
	}
	node.text("ip", m.IP)
	node.text("endpoint", m.Endpoint())
	if m.Hostname != "" {
		node.text("hostname", m.Hostname)
	}
	role, health := "master", "online"
	if !m.Leads {
		role = "replica"
	}
	if !m.Online {
		health = "fail"
	}
	node.text("role", role)
	node.number("replication-offset", m.Offset)
	node.text("health", health)
	node.end()
}

// fieldWriter writes a map whose number of fields is known only at the end.
type fieldWriter struct {
	w    *resp.Writer
	mark resp.Mark
	n    int
}

func (f *fieldWriter) text(name, value string) {
	f.w.BulkString(name)
	f.w.BulkString(value)
	f.n++
}

func (f *fieldWriter) number(name string, n int64) {
	f.w.BulkString(name)
	f.w.Int(n)
	f.n++
}

func (f *fieldWriter) end() { f.w.EndMap(f.mark, f.n) }

// foreignSlots reports which slots have keys here that clients must not see.
func foreignSlots(c *command.Ctx) func(slot int) bool {
	foreign := c.Host.Foreign()
	if foreign == nil {
		return func(int) bool { return false }
	}
	return func(slot int) bool { return foreign([]byte(cluster.TagOf(slot))) }
}

// keysInSlot returns how many keys of a slot clients may see.
func keysInSlot(c *command.Ctx, slot int, foreign func(slot int) bool) int64 {
	if foreign(slot) {
		return 0
	}
	return int64(c.G.SlotLen(c.DB, slot))
}

func countkeysinslot(c *command.Ctx) {
	slot, ok := c.Int(c.Args[2])
	if !ok {
		return
	}
	if slot < 0 || slot >= cluster.Slots {
		c.Err(errSlot)
		return
	}
	c.W.Int(keysInSlot(c, int(slot), foreignSlots(c)))
}

func getkeysinslot(c *command.Ctx) {
	slot, ok := c.Int(c.Args[2])
	if !ok {
		return
	}
	limit, ok := c.Int(c.Args[3])
	if !ok {
		return
	}
	if slot < 0 || slot >= cluster.Slots || limit < 0 {
		c.Err(errSlotOrCount)
		return
	}
	mark, n := c.W.Defer(), 0
	if limit > 0 && !foreignSlots(c)(int(slot)) {
		c.G.EachOfSlot(c.DB, int(slot), func(e *engine.Entry) bool {
			c.W.BulkString(e.Key())
			n++
			return int64(n) < limit
		})
	}
	c.W.EndArray(mark, n)
}

// unsupported returns the error for sub-commands that make sense only in other clusters.
func unsupported(c *command.Ctx) {
	why := "this server is always a cluster of one node"
	if shardsOf(c) != nil {
		why = "a shard is a group of servers that elect their leader, and slots move with CLUSTER MIGRATION"
	}
	c.Err(command.Error(fmt.Sprintf("ERR CLUSTER %.128s is not supported: %s", strings.ToUpper(c.Cmd.Name[len("cluster|"):]), why)))
}

// memberOf returns the server that an argument names by its ID, and its shard. If there is none, it writes an error.
func memberOf(c *command.Ctx, id []byte) (*cluster.ShardView, *cluster.Member) {
	s, m := viewOf(c).Find(string(id))
	if m == nil {
		c.Err(command.Error(fmt.Sprintf("ERR Unknown node %s", command.UntilNUL(id))))
	}
	return s, m
}

func replicas(c *command.Ctx) {
	s, m := memberOf(c, c.Args[2])
	switch {
	case m == nil:
	case !m.Leads:
		c.Err(errNoMaster)
	default:
		c.W.Array(len(s.Members) - 1)
		for i := range s.Members[1:] {
			c.W.BulkString(strings.TrimSuffix(string(appendNode(nil, s, &s.Members[1+i])), "\n"))
		}
	}
}

func countFailureReports(c *command.Ctx) {
	if _, m := memberOf(c, c.Args[2]); m != nil {
		c.W.Int(0)
	}
}

func forget(c *command.Ctx) {
	h := shardsOf(c)
	switch s, m := memberOf(c, c.Args[2]); {
	case m == nil:
	case m.Myself:
		c.Err(errForgetSelf)
	case h == nil:
		unsupported(c)
	case s.ID == viewOf(c).Shards[0].ID:
		c.Err(errForgetShard)
	default:
		later(c, func() error { return h.Forget(s.ID) })
	}
}

// replicate confirms what a server does anyway: it replicates the leader of its shard.
func replicate(c *command.Ctx) {
	switch s, m := memberOf(c, c.Args[2]); {
	case m == nil:
	case m.Myself:
		c.Err(errReplicateSelf)
	case !m.Leads:
		c.Err(errReplicaOfOne)
	case s.ID == viewOf(c).Shards[0].ID:
		c.W.OK()
	default:
		unsupported(c)
	}
}

// saveconfig does nothing: the journal has the configuration.
func saveconfig(c *command.Ctx) { c.W.OK() }

func bumpepoch(c *command.Ctx) {
	still := func(epoch uint64) command.Reply {
		return func(w *resp.Writer) { w.Simple(fmt.Sprint("STILL ", epoch)) }
	}
	h := shardsOf(c)
	if h == nil {
		still(viewOf(c).Shards[0].Epoch)(c.W)
		return
	}
	laterReply(c, func() (command.Reply, error) {
		epoch, bumped, err := h.BumpEpoch()
		if !bumped {
			return still(epoch), err
		}
		return func(w *resp.Writer) { w.Simple(fmt.Sprint("BUMPED ", epoch)) }, err
	})
}

// slot reads the number of a slot; if it is invalid, it writes an error and ok is false.
func slot(c *command.Ctx, arg []byte) (slot int, ok bool) {
	n, ok := resp.ParseInt(arg)
	if !ok || n < 0 || n >= cluster.Slots {
		c.Err(errSlotRange)
		return 0, false
	}
	return int(n), true
}

// slotRange reads the range of slots at argument i and returns the first one; if it is invalid, it writes an error
// and ok is false.
func slotRange(c *command.Ctx, i int) (first int, ok bool) {
	if (len(c.Args)-i)%2 != 0 {
		c.Err(command.WrongArity(c.Cmd))
		return 0, false
	}
	return slotPair(c, i)
}

// slotPair reads the arguments i and i+1 as a range of slots and returns the first; if they are invalid, it writes
// an error and ok is false.
func slotPair(c *command.Ctx, i int) (first int, ok bool) {
	first, ok = slot(c, c.Args[i])
	if !ok {
		return 0, false
	}
	last, ok := slot(c, c.Args[i+1])
	if ok && first > last {
		c.Err(command.Error(fmt.Sprintf("ERR start slot number %d is greater than end slot number %d", first, last)))
		return 0, false
	}
	return first, ok
}

// shardsOf returns the Shards with which commands change the cluster, nil if the server belongs to no group.
func shardsOf(c *command.Ctx) Shards { return c.Host.(Host).Shards() }

// later runs do, which waits for other servers, in the background, and replies when it is done.
func later(c *command.Ctx, do func() error) {
	laterReply(c, func() (command.Reply, error) { return (*resp.Writer).OK, do() })
}

// laterReply is later for a function that returns its reply.
func laterReply(c *command.Ctx, do func() (command.Reply, error)) {
	if c.NoBlock {
		c.Err(errNotNow)
		return
	}
	finish := c.Await(0, (*resp.Writer).OK)
	go func() {
		reply, err := do()
		finish(func(w *resp.Writer) {
			if err != nil {
				w.Error("ERR " + command.OneLine(err.Error()))
				return
			}
			reply(w)
		})
	}()
}

func slotError(slot int, is string) command.Error {
	return command.Error(fmt.Sprintf("ERR Slot %d %s", slot, is))
}

func slotBusy(slot int) command.Error { return slotError(slot, "is already busy") }
func slotFree(slot int) command.Error { return slotError(slot, "is already unassigned") }

// include adds the slots of a range to a set, one after the other. If refuse returns an error for a slot, or the set has the
// slot, it writes the error and returns false. refuse may be nil.
func include(c *command.Ctx, set *cluster.SlotSet, r cluster.Range, refuse func(slot int) command.Error) bool {
	for n := r.First; n <= r.Last; n++ {
		var err command.Error
		if refuse != nil {
			err = refuse(n)
		}
		if err == "" && set.Has(n) {
			err = slotError(n, "specified multiple times")
		}
		if err != "" {
			c.Err(err)
			return false
		}
		set.Add(n)
	}
	return true
}

// slotArgs reads the arguments of ADDSLOTS and DELSLOTS; if they are wrong, or refuse returns an error for a slot, an error is
// written and ok is false. As in Redis all arguments are read before slots are refused.
func slotArgs(c *command.Ctx, refuse func(slot int) command.Error) (set cluster.SlotSet, ok bool) {
	for _, arg := range c.Args[2:] {
		if _, ok := slot(c, arg); !ok {
			return set, false
		}
	}
	for _, arg := range c.Args[2:] {
		n, _ := slot(c, arg)
		if !include(c, &set, cluster.Range{First: n, Last: n}, refuse) {
			return set, false
		}
	}
	return set, true
}

// rangeArgs reads the arguments from i on as ranges of slots; if they are wrong, or refuse, which may be nil, returns an error
// for a slot, an error is written and ok is false. As in Redis the slots of a range are refused before the next is read.
func rangeArgs(c *command.Ctx, i int, refuse func(slot int) command.Error) (set cluster.SlotSet, ok bool) {
	for ; i < len(c.Args); i += 2 {
		first, ok := slotRange(c, i)
		if !ok {
			return set, false
		}
		last, _ := slot(c, c.Args[i+1])
		if !include(c, &set, cluster.Range{First: first, Last: last}, refuse) {
			return set, false
		}
	}
	return set, true
}

// notFree returns the function that refuses slots which the only node of a cluster has. It is nil for a shard, which refuses
// slots when it changes its record.
func notFree(c *command.Ctx) func(slot int) command.Error {
	if shardsOf(c) != nil {
		return nil
	}
	return func(slot int) command.Error {
		if nodeOf(c).Serves(slot) {
			return slotBusy(slot)
		}
		return ""
	}
}

// notOwn is notFree for slots that the only node does not have.
func notOwn(c *command.Ctx) func(slot int) command.Error {
	if shardsOf(c) != nil {
		return nil
	}
	return func(slot int) command.Error {
		if !nodeOf(c).Serves(slot) {
			return slotFree(slot)
		}
		return ""
	}
}

func addslots(c *command.Ctx) {
	if set, ok := slotArgs(c, notFree(c)); ok {
		add(c, set)
	}
}

func addslotsrange(c *command.Ctx) {
	if set, ok := rangeArgs(c, 2, notFree(c)); ok {
		add(c, set)
	}
}

func add(c *command.Ctx, set cluster.SlotSet) {
	if h := shardsOf(c); h != nil {
		later(c, func() error { return h.AddSlots(set) })
		return
	}
	if busy, ok := nodeOf(c).Assign(set); !ok {
		c.Err(slotBusy(busy))
		return
	}
	c.W.OK()
}

func delslots(c *command.Ctx) {
	if set, ok := slotArgs(c, notOwn(c)); ok {
		drop(c, set)
	}
}

func delslotsrange(c *command.Ctx) {
	if set, ok := rangeArgs(c, 2, notOwn(c)); ok {
		drop(c, set)
	}
}

// drop unassigns slots. The guard over everything is held, as SlotsGone demands.
func drop(c *command.Ctx, set cluster.SlotSet) {
	if h := shardsOf(c); h != nil {
		later(c, func() error { return h.DropSlots(set) })
		return
	}
	if missing, ok := nodeOf(c).Unassign(set); !ok {
		c.Err(slotFree(missing))
		return
	}
	c.Host.(Host).SlotsGone(&set)
	c.W.OK()
}

func flushslots(c *command.Ctx) {
	if h := shardsOf(c); h != nil {
		later(c, h.FlushSlots)
		return
	}
	for db := range c.Host.Keyspace().Databases() {
		if c.G.Len(db) > 0 {
			c.Err("ERR " + command.Error(cluster.ErrKeys.Error()))
			return
		}
	}
	if own := nodeOf(c).Slots(); !own.Empty() {
		drop(c, own)
		return
	}
	c.W.OK()
}

// syncslots is the form of the shard's record in the journal. Clients may not send it.
func syncslots(c *command.Ctx) {
	if !c.Origin.In(command.FromJournal) || len(c.Args) != 4 || !command.EqualFold(c.Args[2], "record") {
		if nodeOf(c) == nil {
			c.Err(errDisabled)
			return
		}
		c.Err(errInternal)
		return
	}
	if err := c.Host.(Host).ApplyShardRecord(c.Args[3]); err != nil {
		c.Err(command.Error("ERR " + command.OneLine(err.Error())))
		return
	}
	c.W.OK()
}

// trimslots is an error: the server itself removes the keys of slots that it has exported, and DELSLOTS leaves keys where
// they are.
func trimslots(c *command.Ctx) {
	if !command.EqualFold(c.Args[1], "ranges") {
		c.Err(errNoRanges)
		return
	}
	if n, ok := resp.ParseInt(c.Args[2]); !ok || n < 1 || n > cluster.Slots || 2*n != int64(len(c.Args)-3) {
		c.Err(errRanges)
		return
	}
	var set cluster.SlotSet
	for i := 3; i < len(c.Args); i += 2 {
		first, ok := slotPair(c, i)
		if !ok {
			return
		}
		last, _ := slot(c, c.Args[i+1])
		set.AddRange(cluster.Range{First: first, Last: last})
	}
	if served := set.Both(&viewOf(c).Shards[0].Slots); !served.Empty() {
		c.Err(errServed)
		return
	}
	c.Err(errTrim)
}

func failover(c *command.Ctx) {
	switch o := c.Options(2); {
	case len(c.Args) > 3:
		command.WrongUse(c, "CLUSTER")
	case o.Next() && !o.Is("force") && !o.Is("takeover"):
		c.Err(command.ErrSyntax)
	case viewOf(c).Leads():
		c.Err(errFailoverReplica)
	default: // it is a follower of a group
		later(c, shardsOf(c).TakeLead)
	}
}

func reset(c *command.Ctx) {
	switch o := c.Options(2); {
	case len(c.Args) > 3:
		command.WrongUse(c, "CLUSTER")
	case o.Next() && !o.Is("hard") && !o.Is("soft"):
		c.Err(command.ErrSyntax)
	default:
		unsupported(c)
	}
}

// busPortOffset is the default distance from a node's port to its bus port.
const busPortOffset = 10000

func validPort(port int64) bool { return port > 0 && port <= math.MaxUint16 }

func meet(c *command.Ctx) {
	if len(c.Args) > 5 {
		command.WrongUse(c, "CLUSTER")
		return
	}
	var ports [2]int64
	for i, arg := range c.Args[3:] {
		var ok bool
		if ports[i], ok = resp.ParseInt(arg); !ok {
			c.Err(command.Error(fmt.Sprintf("ERR Invalid TCP %s port specified: %s", [...]string{"base", "bus"}[i],
				command.UntilNUL(arg))))
			return
		}
	}
	if len(c.Args) == 4 {
		ports[1] = ports[0] + busPortOffset
	}
	ip, err := netip.ParseAddr(string(c.Args[2]))
	if err != nil || ip.Zone() != "" || !validPort(ports[0]) || !validPort(ports[1]) {
		c.Err(command.Error(fmt.Sprintf("ERR Invalid node address specified: %s:%s", command.UntilNUL(c.Args[2]),
			command.UntilNUL(c.Args[3]))))
		return
	}
	if h := shardsOf(c); h != nil {
		later(c, func() error { return h.Meet(ip.String(), int(ports[1])) })
		return
	}
	unsupported(c)
}

func setConfigEpoch(c *command.Ctx) {
	n, ok := c.Int(c.Args[2])
	switch {
	case !ok:
	case n < 0:
		c.Err(command.Error("ERR Invalid config epoch specified: " + strconv.FormatInt(n, 10)))
	default:
		unsupported(c)
	}
}

func help(c *command.Ctx) {
	command.HelpReply(c,
		"CLUSTER <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"ADDSLOTS <slot> [<slot> ...]",
		"ADDSLOTSRANGE <start-slot> <end-slot> [<start-slot> <end-slot> ...]",
		"    Assign slots that nobody has to this node, or to its shard.",
		"BUMPEPOCH", "    Make the epoch of this node's slots the latest.",
		"COUNTKEYSINSLOT <slot>", "    Count the keys of a slot.",
		"DELSLOTS <slot> [<slot> ...]",
		"DELSLOTSRANGE <start-slot> <end-slot> [<start-slot> <end-slot> ...]",
		"    Unassign slots of this node, or of its shard; their keys stay.",
		"FAILOVER [FORCE|TAKEOVER]", "    Have this node lead its shard.",
		"FLUSHSLOTS", "    Unassign all slots of this node, or of its shard, which must have no keys.",
		"FORGET <node-id>", "    Forget the shard of a node, which must have no slots.",
		"GETKEYSINSLOT <slot> <count>", "    List keys of a slot.",
		"INFO", "    Tell the state of the cluster.",
		"KEYSLOT <key>", "    Show the slot of a key.",
		"LINKS", "    List the connections to and from other nodes.",
		"MEET <ip> <port> [<bus-port>]", "    Have this node's shard know that of another node.",
		"MIGRATION IMPORT <start-slot> <end-slot> [<start-slot> <end-slot> ...]",
		"    Move slots with their keys here from the shard that has them.",
		"MIGRATION CANCEL|STATUS <ID <task-id>|ALL>",
		"    End such tasks, or tell of them.",
		"MYID", "    Show the ID of this node.",
		"MYSHARDID", "    Show the ID of this node's shard.",
		"NODES", "    Describe the nodes, a line each.",
		"REPLICAS <node-id>", "    List the other nodes of a leader's shard.",
		"SETSLOT <slot> IMPORTING|MIGRATING|NODE <node-id>", "SETSLOT <slot> STABLE",
		"    What tools move a slot with; MIGRATION does it at once.",
		"SHARDS", "    Describe the shards, their slots and their nodes.",
		"SLOT-STATS SLOTSRANGE <start-slot> <end-slot>",
		"SLOT-STATS ORDERBY <metric> [LIMIT <limit>] [ASC|DESC]",
		"    Count the keys of slots and, with cluster-slot-stats-enabled, their memory and what commands have cost.",
		"SLOTS", "    Tell which node has which slots.",
		"(the others)", "    Are refused: a shard elects its leader, and its servers join and leave with RAFT commands.",
		"HELP", "    Print this help.")
}
