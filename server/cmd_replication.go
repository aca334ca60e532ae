package server

import (
	"fmt"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/resp"
)

// What a master does for those that follow it: SYNC and PSYNC send everything as an RDB file, and then the commands
// that change something, as replicationStream makes them of the journal's. The file is made and sent by a goroutine
// of its own, from a snapshot, while commands go on; what they change gathers until all of the file is sent. If the
// follower does not read, it is the copy that waits.

func init() { command.Register(replicationCommands) }

var replicationCommands = []*command.Command{
	{Name: "psync", Group: "server", Since: "2.8.0", Arity: -3,
		Flags:   command.NoAsyncLoading | command.Admin | command.NoMulti | command.NoScript | command.AllKeys | command.OwnGuard,
		Summary: "Starts replication to the connection", Syntax: "replicationid offset",
		Complexity: "O(N), where N is the size of the data",
		Stateful:   true, Do: cmdPsync},
	{Name: "replconf", Group: "server", Since: "3.0.0", Arity: -1,
		Flags:   command.Admin | command.NoScript | command.Loading | command.Stale | command.AllowBusy,
		Summary: "Sets options of a replica's connection", Complexity: "O(1)",
		Stateful: true, Do: cmdReplconf},
	{Name: "sync", Group: "server", Since: "1.0.0", Arity: 1,
		Flags:      command.NoAsyncLoading | command.Admin | command.NoMulti | command.NoScript | command.AllKeys | command.OwnGuard,
		Summary:    "Starts replication to the connection, without partial copies",
		Complexity: "O(N), where N is the size of the data",
		Stateful:   true, Do: cmdSync},
}

func cmdSync(c *command.Ctx) { syncReplica(c, false) }

// cmdPsync always sends everything: there is no backlog from which a follower could go on.
func cmdPsync(c *command.Ctx) {
	if _, ok := c.Int(c.Args[2]); !ok {
		return
	}
	if string(c.Args[1]) != "?" {
		serverOf(c).stats.noPartial.Add(1)
	}
	syncReplica(c, true)
}

// sync has everything sent, and from then on what changes.
func syncReplica(c *command.Ctx, announce bool) {
	f := &sessionOf(c).follower
	if f.following.Swap(true) {
		return // Redis does not answer a second time
	}
	f.feed = newFeed(sessionOf(c))
	serverOf(c).followed.copyTo(serverOf(c), f.feed, announce)
}

// maxFollowerHost is how long the address may be that a follower says it has.
const maxFollowerHost = 45

const errFilterMissing command.Error = "ERR Missing rdb-filter-only values"

// cmdReplconf notes what a follower wants, and what it has got.
func cmdReplconf(c *command.Ctx) {
	if len(c.Args)%2 == 0 {
		c.Err(command.ErrSyntax)
		return
	}
	f := &sessionOf(c).follower
	for i := 1; i < len(c.Args); i += 2 {
		value := c.Args[i+1]
		switch command.Lower(c.Args[i]) {
		case "listening-port":
			port, ok := c.Int(value)
			if !ok {
				return
			}
			f.port.Store(port)
		case "capa":
			f.openEnded = f.openEnded || command.EqualFold(value, "eof")
		case "ip-address":
			if len(value) > maxFollowerHost {
				c.Err(command.Error(fmt.Sprintf("ERR REPLCONF ip-address provided by replica instance is too long: %d bytes",
					len(value))))
				return
			}
			host := string(value)
			f.host.Store(&host)
		case "ack":
			if offset, ok := resp.ParseInt(value); ok && f.feed != nil {
				f.feed.acknowledge(offset)
			}
			return
		case "getack":
			return // neither is answered by a master
		case "rdb-only":
			n, ok := c.Int(value)
			if !ok {
				return
			}
			if n < 0 || n > 1 {
				c.Err(errNumLocal)
				return
			}
			f.rdbOnly = n == 1
		case "rdb-filter-only":
			f.without = rdbAll
			filters, err := resp.SplitArgs(value, nil)
			if err != nil {
				c.Err(errFilterMissing)
				return
			}
			for _, filter := range filters {
				if !command.EqualFold(filter, "functions") {
					c.Err(command.Error(fmt.Sprintf("ERR Unsupported rdb-filter-only option: %s", filter)))
					return
				}
				f.without &^= rdbFunctions
			}
		default:
			c.Err(command.Error(fmt.Sprintf("ERR Unrecognized REPLCONF option: %s", command.UntilNUL(c.Args[i]))))
			return
		}
	}
	c.W.OK()
}

// pristine reports whether the session is not, and has not asked to be, anything special.
func (f *follower) pristine() bool {
	return !f.following.Load() && !f.rdbOnly && !f.openEnded && f.without == 0 && f.port.Load() == 0 &&
		f.host.Load() == nil
}
