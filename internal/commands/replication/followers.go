package replication

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/command"
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
		Repeated: true, Stateful: true, Do: replconf},
	{Name: "sync", Group: "server", Since: "1.0.0", Arity: 1,
		Flags:      command.NoAsyncLoading | command.Admin | command.NoMulti | command.NoScript | command.AllKeys | command.OwnGuard,
		Summary:    "Starts replication to the connection, without partial copies",
		Complexity: "O(N), where N is the size of the data",
		Stateful:   true, Do: sync},
}

const errNoMasterLink command.Error = "NOMASTERLINK Can't SYNC while not connected with my master"

func sync(c *command.Ctx) {
	if mayFollow(c) {
		clientOf(c).StartFollowing(false)
	}
}

// psync continues a follower's stream at its offset, or begins a full synchronization.
func psync(c *command.Ctx) {
	from, ok := c.Int(c.Args[2])
	if !ok {
		return
	}
	if len(c.Args) > 3 && command.EqualFold(c.Args[3], "failover") {
		if e := hostOf(c).TakeOver(string(c.Args[1])); e != "" {
			c.Err(e)
			return
		}
	}
	if !mayFollow(c) {
		return
	}
	if id := string(c.Args[1]); id == "?" || !clientOf(c).GoOn(id, from-1) {
		clientOf(c).StartFollowing(true)
	}
}

// mayFollow reports whether the client may become a follower. As in Redis, a follower gets no reply.
func mayFollow(c *command.Ctx) bool {
	if clientOf(c).Following() {
		return false
	}
	if !hostOf(c).HasStream(clientOf(c).Capabilities().CopyOnly) {
		c.Err(errNoMasterLink)
		return false
	}
	return true
}

// maxFollowerHost is the length of the longest address that a follower may announce.
const maxFollowerHost = 45

const errFilterMissing command.Error = "ERR Missing rdb-filter-only values"

// versionNumber reads a version of three numbers. It returns a byte for each of them.
func versionNumber(text string) (number int, ok bool) {
	parts := strings.Split(text, ".")
	for _, part := range parts {
		n, err := strconv.ParseUint(part, 10, 8)
		if err != nil {
			return 0, false
		}
		number = number<<8 | int(n)
	}
	return number, len(parts) == 3
}

// replconf takes a follower's capabilities and acknowledgements.
func replconf(c *command.Ctx) {
	if c.Origin.In(command.FromJournal) {
		if err := hostOf(c).Recall(c.Args[1:], c.DB); err != nil {
			c.Err(command.Error("ERR " + err.Error()))
		}
		return
	}
	if len(c.Args)%2 == 0 {
		c.Err(command.ErrSyntax)
		return
	}
	w := clientOf(c).Capabilities()
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
			w.EOF = w.EOF || command.EqualFold(value, "eof")
			w.PSYNC2 = w.PSYNC2 || command.EqualFold(value, "psync2")
		case "version":
			number, ok := versionNumber(string(value))
			if !ok {
				c.Err(command.Error("ERR Unrecognized version format: " + command.OneLine(string(value))))
				return
			}
			w.Valkey = number
		case "ip-address":
			if len(value) > maxFollowerHost {
				c.Err(command.Error(fmt.Sprintf("ERR REPLCONF ip-address provided by replica instance is too long: %d bytes",
					len(value))))
				return
			}
			host := string(value)
			w.Host.Store(&host)
		case "ack":
			offset, ok := resp.ParseInt(value)
			synced := int64(-1)
			if i+3 < len(c.Args) && command.EqualFold(c.Args[i+2], "fack") {
				if n, isNumber := resp.ParseInt(c.Args[i+3]); isNumber {
					synced = n
				}
			}
			if ok {
				clientOf(c).Acknowledge(offset, synced)
			}
			return
		case "getack":
			return // a master replies to neither
		case "group":
			w.Ours = true
			g, ok := hostOf(c).Group()
			if !ok {
				unrecognized(c, c.Args[i])
				return
			}
			c.W.Simple(g.String())
			return
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
			unrecognized(c, c.Args[i])
			return
		}
	}
	c.W.OK()
}

func unrecognized(c *command.Ctx, option []byte) {
	c.Err(command.Error(fmt.Sprintf("ERR Unrecognized REPLCONF option: %s", command.UntilNUL(option))))
}
