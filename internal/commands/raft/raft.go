// Package raft has the commands that show and change a group of servers that share a journal.
package raft

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/replication/quorum"
	"github.com/atomredis/atomredis/internal/version"
	"github.com/atomredis/atomredis/resp"
)

// Host is what the commands of this package need of the server.
type Host interface {
	command.Host
	// InGroup reports whether the server belongs to a group. GroupNode returns its node in it, nil while the server starts.
	InGroup() bool
	GroupNode() quorum.Node
	// ChangeGroup makes a change, or asks the leader to. The error is quorum.ErrNotLeader if no server leads, or the one that
	// does makes no changes for others.
	ChangeGroup(change quorum.Change, addr string) error
}

func init() { command.Register(commands) }

const flags = command.Admin | command.NoScript | command.Loading | command.Stale

var commands = []*command.Command{
	{Name: "raft.add", Group: "raft", Since: version.Number, Arity: -2, Flags: flags | command.NoMulti,
		NoData: true, Summary: "Adds a server to the group: it gets all data and then votes, or stays a learner",
		Syntax:     "raft-addr [LEARNER] [ONLINE]",
		Complexity: "O(1), and a round trip to a majority of the group",
		Do: inGroup(func(c *command.Ctx, n quorum.Node) {
			var o quorum.AddOptions
			for _, option := range c.Args[2:] {
				switch {
				case command.EqualFold(option, "learner") && !o.Learner:
					o.Learner = true
				case command.EqualFold(option, "online") && !o.Online:
					o.Online = true
				default:
					c.Err(command.ErrSyntax)
					return
				}
			}
			change(c, n, additions[o], string(c.Args[1]))
		})},
	{Name: "raft.await", Group: "raft", Since: version.Number, Arity: 3, Flags: command.NoScript | command.NoMulti | command.Stale,
		ACL:        command.CatConnection | command.CatBlocking,
		Summary:    "Waits until the server has executed what RAFT.POSITION has named",
		Syntax:     "position timeout",
		Complexity: "O(1)", Do: inGroup(await)},
	{Name: "raft.check", Group: "raft", Since: version.Number, Arity: 1, Flags: flags | command.NoMulti,
		NoData:     true,
		Summary:    "Asks all servers of the group how they are, and lists what is wrong",
		Complexity: "O(N), where N is the number of servers", Do: inGroup(check)},
	{Name: "raft.help", Group: "raft", Since: version.Number, Arity: 1, Flags: command.Loading | command.Stale,
		Summary: "Lists the commands of groups", Complexity: "O(1)", Do: help},
	{Name: "raft.position", Group: "raft", Since: version.Number, Arity: 1, Flags: command.NoScript | command.NoMulti,
		ACL: command.CatConnection, AtLeader: true,
		Summary:    "Returns the position in the group's log by which all of the client's writes are executed",
		Complexity: "O(1)", Do: inGroup(position)},
	{Name: "raft.remove", Group: "raft", Since: version.Number, Arity: 2, Flags: flags | command.NoMulti,
		NoData: true, Summary: "Takes a server out of the group", Syntax: "raft-addr",
		Complexity: "O(1), and a round trip to a majority of the group",
		Do:         inGroup(func(c *command.Ctx, n quorum.Node) { change(c, n, quorum.Remove, string(c.Args[1])) })},
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
			change(c, n, quorum.Transfer, addr)
		})},
}

// additions has the changes of RAFT.ADD.
var additions = map[quorum.AddOptions]quorum.Change{
	{}: quorum.Add, {Online: true}: quorum.AddOnline, {Learner: true}: quorum.AddLearner,
	{Learner: true, Online: true}: quorum.AddLearnerOnline,
}

const (
	errNoGroup  command.Error = "ERR This server belongs to no group: it has no raft-addr"
	errNoLeader command.Error = "NOTLEADER The group has no leader"
	errNoLead   command.Error = "NOTLEADER The server does not lead its group"
	errPosition command.Error = "ERR position is not an integer or out of range"
)

// inGroup makes a handler that needs a group.
func inGroup(do func(c *command.Ctx, n quorum.Node)) func(c *command.Ctx) {
	return func(c *command.Ctx) {
		host := c.Host.(Host)
		switch n := host.GroupNode(); {
		case n != nil:
			do(c, n)
		case host.InGroup():
			c.Err(command.ErrLoading)
		default:
			c.Err(errNoGroup)
		}
	}
}

// notLeader returns the error reply for a change that the leader has not made.
func notLeader(st quorum.Status) string {
	if st.Leader == "" || st.Leader == st.Addr {
		return string(errNoLeader)
	}
	return fmt.Sprintf("NOTLEADER The leader of the group is %s, for clients %s", st.Leader, st.LeaderAt)
}

// change makes the client wait for a change that needs the agreement of other servers.
func change(c *command.Ctx, n quorum.Node, what quorum.Change, addr string) {
	host := c.Host.(Host)
	finish := c.Await(0, (*resp.Writer).OK)
	go func() {
		err := host.ChangeGroup(what, addr)
		finish(func(w *resp.Writer) {
			switch {
			case errors.Is(err, quorum.ErrNotLeader):
				w.Error(notLeader(n.Status()))
			case err != nil:
				w.Error("ERR " + command.OneLine(err.Error()))
			default:
				w.OK()
			}
		})
	}()
}

const (
	agreeTimeout = 10 * time.Second // of RAFT.POSITION, for the group to agree
	maxAwait     = time.Minute      // of RAFT.AWAIT
)

// position replies when all that the client has written, and seen, is committed.
func position(c *command.Ctx, n quorum.Node) {
	lsn := n.Appended()
	if n.WaitPosition() == 0 {
		c.Err(errNoLead)
		return
	}
	finish := c.Await(0, (*resp.Writer).Null)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), agreeTimeout)
		defer cancel()
		err := n.Sync(ctx)
		at := n.EntryAt(lsn)
		finish(func(w *resp.Writer) {
			if err != nil {
				w.Error("ERR " + command.OneLine(err.Error()))
				return
			}
			w.Int(int64(at))
		})
	}()
}

// await replies with 1 once the server has executed an entry, and with 0 after the timeout; 0 is the longest.
func await(c *command.Ctx, n quorum.Node) {
	entry, ok := c.IntIn(c.Args[1], 0, math.MaxInt64, errPosition)
	if !ok {
		return
	}
	timeout, ok := c.IntTimeout(c.Args[2])
	if !ok {
		return
	}
	wait := maxAwait
	if timeout > 0 && timeout < wait.Milliseconds() {
		wait = time.Duration(timeout) * time.Millisecond
	}
	finish := c.Await(0, func(w *resp.Writer) { w.Int(0) })
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		err := n.AwaitEntry(ctx, uint64(entry))
		finish(func(w *resp.Writer) {
			if err != nil {
				w.Int(0)
			} else {
				w.Int(1)
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
		c.W.Map(10)
		text("addr", m.Addr)
		text("client", m.Client)
		text("role", string(m.Role))
		text("zone", m.Zone)
		flag("voter", m.Role.Votes())
		flag("added", m.Role != quorum.Waiting)
		flag("online", m.Online)
		number("index", m.Index)
		number("lag", st.Committed-min(m.Index, st.Committed))
		number("log-bytes", uint64(m.LogBytes))
	}
}

func help(c *command.Ctx) {
	command.HelpReply(c,
		"RAFT.<command> [<arg>]. A server's name is its raft-addr. Commands are:",
		"STATUS", "    Describe the group and its servers.",
		"CHECK", "    Ask all servers how they are, and list what is wrong.",
		"ADD <raft-addr> [LEARNER] [ONLINE]", "    Add a server to the group, also one that was removed. As a LEARNER it never votes.",
		"    With ONLINE it must run.",
		"REMOVE <raft-addr>", "    Take a server out of the group.",
		"TRANSFER [<raft-addr>]", "    Have another server lead.",
		"POSITION", "    Tell the position in the log after all that the client has written. For the leader.",
		"AWAIT <position> <timeout>", "    Wait until this server has executed the log up to a position, or for some ms.",
		"HELP", "    Print this help.")
}
