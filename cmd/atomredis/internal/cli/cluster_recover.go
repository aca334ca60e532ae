package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/replication/quorum"
	"github.com/atomredis/atomredis/internal/tlsconfig"
	"github.com/atomredis/atomredis/persist"
	"github.com/atomredis/atomredis/persist/disk"
)

// clusterRecover makes a new group of what one server has, for a group whose majority is lost.
func (a *app) clusterRecover() *cobra.Command {
	return &cobra.Command{Use: "recover [redis.conf] --dir DIR --raft-addr ADDR [--force] [--directive value ...]",
		Short: "make a new group of what one stopped server has, after the majority is lost",
		Long: `Makes the server whose data is in the directory, and which must not run, the only member of its group, with all that
it has. Use it when a majority of the servers is lost for good: what only they had is lost then. ADDR is the server's
raft-addr; it may be a new one. The directives, of which redis.conf usually has all, are those of the server: raft-peers
names further servers to ask, raft-secret and tls-replication are needed if the group has them.

Nothing is changed while another server of the group answers that has data, or its machine does not answer at all: with
--force such a machine counts as lost. A server that is still starting looks lost, too. Afterwards start the server, and start the
others with empty directories: they join.`,
		Example:            "  atomredis cluster recover --dir ./7001 --raft-addr 127.0.0.1:17001",
		DisableFlagParsing: true, ValidArgsFunction: CompleteDirectives,
		RunE: func(c *cobra.Command, args []string) error {
			if AsksForHelp(args) {
				return c.Help()
			}
			isForce := func(arg string) bool { return arg == "--force" }
			force := slices.ContainsFunc(args, isForce)
			conf := config.NewConfig()
			if err := conf.LoadArgs(slices.DeleteFunc(args, isForce)); err != nil {
				return Usagef("%w", err)
			}
			lines, err := recoverMember(conf, force)
			if err != nil {
				return err
			}
			return a.printed(lines...)
		}}
}

// recoverMember makes a new group of a stopped server, and returns what it has kept.
func recoverMember(conf *config.Config, force bool) (lines []string, err error) {
	set := conf.Get()
	dial, err := dialRaft(conf)
	if err != nil {
		return nil, err
	}
	member, err := persist.OpenMember(disk.System, set.Files.Dir, func(fs disk.FS, dir string, state []byte) error {
		stopped := quorum.Stopped{FS: fs, Dir: dir, State: state}
		if set.Raft.Addr == "" {
			found, err := stopped.Read(nil)
			if err != nil {
				return err
			}
			return Usagef("say which of the servers this is, with --raft-addr: %s", strings.Join(addrsOf(found), ", "))
		}
		found, err := quorum.Recovery{Stopped: stopped, Addr: set.Raft.Addr, Peers: set.Raft.Peers, Dial: dial,
			Secret: set.Raft.Secret, Force: force}.Recover()
		if err == nil {
			lines = append(DescribeMember(found), recovered(set.Raft.Addr, found)...)
		}
		return err
	})
	if err == nil && !member {
		err = fmt.Errorf("the data in %s belongs to no group", set.Files.Dir)
	}
	return lines, err
}

// DescribeMember describes what a stopped server has of its group, in lines.
func DescribeMember(f quorum.Found) (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	when := ""
	if !f.Appended.IsZero() {
		when = fmt.Sprintf(", which the leader wrote at %s", f.Appended.UTC().Format(time.RFC3339Nano))
	}
	say("entries up to %d, of term %d%s; the store has them up to %d", f.Index, f.Term, when, f.Stored)
	if f.Index > f.Committed {
		say("it is unknown whether the group has agreed on the last %d of them", f.Index-f.Committed)
	}
	if f.Torn > 0 {
		say("an unfinished end of %d bytes, which the next start cuts off", f.Torn)
	}
	say("members: %s", strings.Join(addrsOf(f), ", "))
	if f.Witness {
		say("the server is a witness: it has no data")
	}
	if f.Removed {
		say("the server was removed from the group")
	}
	return lines
}

// addrsOf returns the addresses of the members, with a note where one does not vote.
func addrsOf(f quorum.Found) (list []string) {
	for _, m := range f.Members {
		addr := m.Addr
		if m.Role != quorum.Voter {
			addr += " (" + kindOf(m.Role) + ")"
		}
		list = append(list, addr)
	}
	return list
}

// kindOf returns the word for a role other than that of a voter with data.
func kindOf(r quorum.Role) string {
	if r == quorum.Witness {
		return "witness"
	}
	return "learner"
}

// recovered says what a recovery means.
func recovered(addr string, f quorum.Found) []string {
	since := "since its last entry"
	if !f.Appended.IsZero() {
		since = "since " + f.Appended.UTC().Format(time.RFC3339Nano)
	}
	var lines []string
	for _, reason := range f.NotReached {
		lines = append(lines, reason.Error())
	}
	return append(lines,
		"This server is the only member of its group now, and has kept all of these entries.",
		"Missing is what the group has acknowledged "+since+", if only other servers had it.",
		"Start it with --raft-addr "+addr+", then the others with empty directories.",
	)
}

// dialRaft returns the function that connects to servers of the group.
func dialRaft(conf *config.Config) (func(addr string, timeout time.Duration) (net.Conn, error), error) {
	set := conf.Get()
	t := tlsconfig.New(conf, nil, slog.New(slog.DiscardHandler)) // without a clock it does not watch the files
	if set.TLS.Replication {
		if err := t.Load(set); err != nil {
			return nil, err
		}
	}
	return func(addr string, timeout time.Duration) (net.Conn, error) {
		return t.Dial(context.Background(), addr, timeout, set.TLS.Replication)
	}, nil
}
