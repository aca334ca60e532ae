package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// cluster shows and changes a group of servers that share a journal. It connects to the client port of one of them; status also
// asks a server of each other shard.
func (a *app) cluster() *cobra.Command {
	c := group("cluster", "a group of servers that share a journal", a.clusterStatus(), a.clusterCheck(),
		a.clusterAdd(),
		a.clusterChange("remove ADDR", "take a server out, dead or alive", "RAFT.REMOVE", 1, new("%s is removed.")),
		a.clusterChange("transfer [ADDR]", "have another server lead", "RAFT.TRANSFER", 0, new("%s gets the lead.")), a.clusterStart(),
		a.clusterRecover(), a.clusterRebalance())
	c.Example = `  atomredis cluster start
  atomredis cluster status -p 7001`
	return c
}

func (a *app) clusterCheck() *cobra.Command {
	return &cobra.Command{Use: "check", Short: "ask all servers for problems; the exit code is 1 if there are any",
		Args: Arguments(0, 0), Example: "  atomredis cluster check -p 7001",
		RunE: func(c *cobra.Command, _ []string) error {
			problems, err := a.client.Do(c.Context(), "RAFT.CHECK").StringSlice()
			switch {
			case err != nil:
				return err
			case a.json:
				err = a.printJSON(append([]string{}, problems...))
			case len(problems) == 0:
				err = a.printed("ok")
			default:
				err = a.printed(problems...)
			}
			if err == nil && len(problems) > 0 {
				err = fmt.Errorf("%d problems", len(problems))
			}
			return err
		}}
}

// clusterAdd lets a server into the group. The leader dials it first, unless it is to start later.
func (a *app) clusterAdd() *cobra.Command {
	later, learner := false, false
	done := "%s is added, and votes once it has all data."
	c := a.clusterChange("add ADDR", "add a server by its raft-addr; it votes once it has all data", "RAFT.ADD", 1, &done)
	send := c.RunE
	c.Flags().BoolVar(&later, "later", false, "the server does not run yet")
	c.Flags().BoolVar(&learner, "learner", false, "the server never votes: it has all data, for reads; a voter becomes a learner")
	c.RunE = func(c *cobra.Command, args []string) error {
		if learner {
			args, done = append(args, "LEARNER"), "%s is a learner."
		}
		if !later {
			args = append(args, "ONLINE")
		}
		return send(c, args)
	}
	return c
}

// changeTimeout is how long a server may take for a change: it asks the leader if it does not lead itself.
const changeTimeout = 30 * time.Second

// clusterChange sends a command to the server that was named, which asks the leader. So leaders need not be reachable from
// here. done is the message about the server that the command has changed.
func (a *app) clusterChange(use, short, command string, least int, done *string) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: Arguments(least, 1),
		Example: "  atomredis cluster " + strings.NewReplacer("[ADDR]", "127.0.0.1:17002", "ADDR", "127.0.0.1:17002").Replace(use) +
			" -p 7001",
		RunE: func(c *cobra.Command, args []string) error {
			send, about := []any{command}, "another server"
			if len(args) > 0 {
				g, err := a.group(c.Context())
				if err != nil {
					return err
				}
				about = args[0]
				for _, m := range g.Members { // also by the address for clients
					if m.Client == about {
						about = m.Addr
					}
				}
				send = append(send, about)
				for _, option := range args[1:] {
					send = append(send, option)
				}
			}
			if err := a.client.WithTimeout(changeTimeout).Do(c.Context(), send...).Err(); err != nil {
				return err
			}
			return a.printed(fmt.Sprintf(*done, about))
		}}
}
