// Package raft has the commands that show and change a group of servers that share a journal.
package raft

import (
	"errors"
	"fmt"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/replication/quorum"
	"github.com/atomredis/atomredis/internal/version"
	"github.com/atomredis/atomredis/resp"
)

// Host is what the commands of this package need of the server.
type Host interface {
	command.Host
	// GroupNode returns the server's node in its group, nil without a group.
	GroupNode() quorum.Node
}

func init() { command.Register(commands) }

const flags = command.Admin | command.NoScript | command.Loading | command.Stale

var commands = []*command.Command{
	{Name: "raft.add", Group: "raft", Since: version.Number, Arity: 2, Flags: flags | command.NoMulti,
		NoData: true, Summary: "Lets a server into the group: it learns, and votes when it has everything", Syntax: "raft-addr",
		Complexity: "O(1), and a round trip to a majority of the group",
		Do: inGroup(func(c *command.Ctx, n quorum.Node) {
			addr := string(c.Args[1])
			change(c, n, func() error { return n.Add(addr) })
		})},
	{Name: "raft.check", Group: "raft", Since: version.Number, Arity: 1, Flags: flags | command.NoMulti,
		NoData:     true,
		Summary:    "Asks all servers of the group how they are, and lists what is wrong",
		Complexity: "O(N), where N is the number of servers", Do: inGroup(check)},
	{Name: "raft.help", Group: "raft", Since: version.Number, Arity: 1, Flags: command.Loading | command.Stale,
		Summary: "Lists the commands of groups", Complexity: "O(1)", Do: help},
	{Name: "raft.remove", Group: "raft", Since: version.Number, Arity: 2, Flags: flags | command.NoMulti,
		NoData: true, Summary: "Takes a server out of the group", Syntax: "raft-addr",
		Complexity: "O(1), and a round trip to a majority of the group",
		Do: inGroup(func(c *command.Ctx, n quorum.Node) {
			addr := string(c.Args[1])
			change(c, n, func() error { return n.Remove(addr) })
		})},
	{Name: "raft.status", Group: "raft", Since: version.Number, Arity: 1, Flags: flags,
		Summary:    "Describes the group and its servers, as far as this one knows",
		Complexity: "O(N), where N is the number of servers", Do: inGroup(status)},
	{Name: "raft.transfer", Group: "raft", Since: version.Number, Arity: -1, Flags: flags | command.NoMulti,
		NoData: true, Summary: "Has another server lead: the one that has most, or a certain one", Syntax: "[raft-addr]",
		Complexity: "O(1), and an election",
		Do: inGroup(func(c *command.Ctx, n quorum.Node) {
			addr := ""
			switch len(c.Args) {
			case 1:
			case 2:
				addr = string(c.Args[1])
			default:
				c.Err(command.ErrSyntax)
				return
			}
			change(c, n, func() error { return n.Transfer(addr) })
		})},
}

const (
	errNoGroup  command.Error = "ERR This server belongs to no group: it has no raft-addr"
	errNoLeader command.Error = "NOTLEADER The group has no leader"
)

// inGroup makes a handler that needs a group.
func inGroup(do func(c *command.Ctx, n quorum.Node)) func(c *command.Ctx) {
	return func(c *command.Ctx) {
		if n := c.Host.(Host).GroupNode(); n != nil {
			do(c, n)
		} else {
			c.Err(errNoGroup)
		}
	}
}

// refusal returns the error reply for a failed operation; if only the leader can do it, the reply names the leader.
func refusal(n quorum.Node, err error) string {
	if !errors.Is(err, quorum.ErrNotLeader) {
		return "ERR " + command.OneLine(err.Error())
	}
	st := n.Status()
	if st.Leader == "" || st.Leader == st.Addr {
		return string(errNoLeader)
	}
	return fmt.Sprintf("NOTLEADER The leader of the group is %s, for clients %s", st.Leader, st.LeaderAt)
}

// change makes the client wait for an operation that needs the agreement of other servers.
func change(c *command.Ctx, n quorum.Node, do func() error) {
	finish := c.Await(0, (*resp.Writer).OK)
	go func() {
		err := do()
		finish(func(w *resp.Writer) {
			if err != nil {
				w.Error(refusal(n, err))
			} else {
				w.OK()
			}
		})
	}()
}

func check(c *command.Ctx, n quorum.Node) {
	finish := c.Await(0, (*resp.Writer).NullArray)
	go func() {
		problems := n.Check()
		finish(func(w *resp.Writer) {
			w.Array(len(problems))
			for _, p := range problems {
				w.BulkString(p)
			}
		})
	}()
}

func status(c *command.Ctx, n quorum.Node) {
	st := n.Status()
	text := func(name, value string) {
		c.W.BulkString(name)
		c.W.BulkString(value)
	}
	number := func(name string, n uint64) {
		c.W.BulkString(name)
		c.W.Int(int64(n))
	}
	flag := func(name string, is bool) {
		c.W.BulkString(name)
		c.W.Bool(is)
	}
	problem := ""
	if st.Err != nil {
		problem = command.OneLine(st.Err.Error())
	}
	c.W.Map(9)
	text("addr", st.Addr)
	text("state", st.State)
	text("leader", st.Leader)
	text("leader-client", st.LeaderAt)
	number("term", st.Term)
	number("commit-index", st.Committed)
	number("applied-index", st.Applied)
	text("problem", problem)
	c.W.BulkString("members")
	c.W.Array(len(st.Members))
	for _, m := range st.Members {
		c.W.Map(6)
		text("addr", m.Addr)
		text("client", m.Client)
		flag("voter", m.Voter)
		flag("online", m.Online)
		number("index", m.Index)
		number("lag", st.Committed-min(m.Index, st.Committed))
	}
}

func help(c *command.Ctx) {
	command.HelpReply(c,
		"RAFT.<command> [<arg>]. A server's name is its raft-addr. Commands are:",
		"STATUS", "    Describe the group and its servers.",
		"CHECK", "    Ask all servers how they are, and list what is wrong.",
		"ADD <raft-addr>", "    Let a server into the group, also one that was removed. Asked of the leader.",
		"REMOVE <raft-addr>", "    Take a server out of the group. Asked of the leader.",
		"TRANSFER [<raft-addr>]", "    Have another server lead. Asked of the leader.",
		"HELP", "    Print this help.")
}
