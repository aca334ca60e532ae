package replication

import (
	"fmt"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/resp"
)

func init() { command.Register(replicationCommands) }

var replicationCommands = []*command.Command{
	{Name: "psync", Group: "server", Since: "2.8.0", Arity: -3,
		Flags:   command.NoAsyncLoading | command.Admin | command.NoMulti | command.NoScript | command.AllKeys | command.OwnGuard,
		Summary: "Starts replication to the connection", Syntax: "replicationid offset",
		Complexity: "O(N), where N is the size of the data",
		Stateful:   true, Do: psync},
	{Name: "replconf", Group: "server", Since: "3.0.0", Arity: -1,
		Flags:   command.Admin | command.NoScript | command.Loading | command.Stale | command.AllowBusy,
		Summary: "Sets options of a replica's connection", Complexity: "O(1)",
		Stateful: true, Do: replconf},
	{Name: "sync", Group: "server", Since: "1.0.0", Arity: 1,
		Flags:      command.NoAsyncLoading | command.Admin | command.NoMulti | command.NoScript | command.AllKeys | command.OwnGuard,
		Summary:    "Starts replication to the connection, without partial copies",
		Complexity: "O(N), where N is the size of the data",
		Stateful:   true, Do: sync},
}

func sync(c *command.Ctx) { syncReplica(c, false) }

// psync always sends everything: there is no backlog from which a follower could go on.
func psync(c *command.Ctx) {
	if _, ok := c.Int(c.Args[2]); !ok {
		return
	}
	if string(c.Args[1]) != "?" {
		hostOf(c).AskedForPart()
	}
	syncReplica(c, true)
}

// syncReplica has everything sent, and from then on what changes. Redis does not answer a second time.
func syncReplica(c *command.Ctx, announce bool) {
	if client := clientOf(c); !client.Following() {
		client.StartFollowing(announce)
	}
}

// maxFollowerHost is how long the address may be that a follower says it has.
const maxFollowerHost = 45

const errFilterMissing command.Error = "ERR Missing rdb-filter-only values"

// replconf notes what a follower wants, and what it has got.
func replconf(c *command.Ctx) {
	if len(c.Args)%2 == 0 {
		c.Err(command.ErrSyntax)
		return
	}
	w := clientOf(c).Wishes()
	for i := 1; i < len(c.Args); i += 2 {
		value := c.Args[i+1]
		switch command.Lower(c.Args[i]) {
		case "listening-port":
			port, ok := c.Int(value)
			if !ok {
				return
			}
			w.Port.Store(port)
		case "capa":
			w.OpenEnded = w.OpenEnded || command.EqualFold(value, "eof")
		case "ip-address":
			if len(value) > maxFollowerHost {
				c.Err(command.Error(fmt.Sprintf("ERR REPLCONF ip-address provided by replica instance is too long: %d bytes",
					len(value))))
				return
			}
			host := string(value)
			w.Host.Store(&host)
		case "ack":
			if offset, ok := resp.ParseInt(value); ok {
				clientOf(c).Acknowledge(offset)
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
				c.Err(errZeroOrOne)
				return
			}
			w.CopyOnly = n == 1
		case "rdb-filter-only":
			w.Filtered, w.Functions = true, false
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
				w.Functions = true
			}
		default:
			c.Err(command.Error(fmt.Sprintf("ERR Unrecognized REPLCONF option: %s", command.UntilNUL(c.Args[i]))))
			return
		}
	}
	c.W.OK()
}
