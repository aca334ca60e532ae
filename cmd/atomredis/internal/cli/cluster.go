package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
)

// cluster shows and changes a group of servers that share a journal. It connects to the client port of any of them.
func (a *app) cluster() *cobra.Command {
	c := group("cluster", "a group of servers that share a journal", a.clusterStatus(), a.clusterCheck(),
		a.clusterChange("add ADDR", "let a server in, by its raft-addr; it votes once it has everything", "RAFT.ADD", 1),
		a.clusterChange("remove ADDR", "take a server out, dead or alive", "RAFT.REMOVE", 1),
		a.clusterChange("transfer [ADDR]", "have another server lead", "RAFT.TRANSFER", 0), a.clusterStart())
	c.Example = `  atomredis cluster start
  atomredis cluster status -p 7001`
	return c
}

func (a *app) clusterStatus() *cobra.Command {
	return &cobra.Command{Use: "status", Short: "show the servers of the group and the leader", Args: Arguments(0, 0),
		Example: "  atomredis cluster status -p 7001",
		RunE: func(c *cobra.Command, _ []string) error {
			g, err := a.group(c.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(g)
			}
			var rows [][]string
			for _, m := range g.Members {
				role, online := "learner", "no"
				switch {
				case m.Addr == g.Leader:
					role = "leader"
				case m.Voter:
					role = "voter"
				}
				if m.Online {
					online = "yes"
				}
				rows = append(rows, []string{m.Addr, m.Client, role, online, strconv.FormatInt(m.Index, 10),
					strconv.FormatInt(m.Lag, 10)})
			}
			if g.Leader == "" || g.Problem != "" {
				if err := a.table([]string{"addr", "client", "role", "online", "index", "lag"}, rows); err != nil {
					return err
				}
				return errors.New(orElse(g.Problem, "the group has no leader"))
			}
			return a.table([]string{"addr", "client", "role", "online", "index", "lag"}, rows)
		}}
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
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

// clusterChange sends a command to the leader of the group, whichever server was named.
func (a *app) clusterChange(use, short, command string, least int) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: Arguments(least, 1),
		Example: "  atomredis cluster " + strings.NewReplacer("[ADDR]", "127.0.0.1:17002", "ADDR", "127.0.0.1:17002").Replace(use) +
			" -p 7001",
		RunE: func(c *cobra.Command, args []string) error {
			g, err := a.group(c.Context())
			if err != nil {
				return err
			}
			send := []any{command}
			for _, addr := range args {
				for _, m := range g.Members { // also by the address for clients
					if m.Client == addr {
						addr = m.Addr
					}
				}
				send = append(send, addr)
			}
			if g.Leader == "" {
				return errors.New("the group has no leader")
			}
			if g.Leader != g.Addr {
				o := *a.client.Options()
				o.Network, o.Addr = "tcp", g.LeaderClient
				leader := redis.NewClient(&o)
				defer leader.Close()
				return leader.Do(c.Context(), send...).Err()
			}
			return a.client.Do(c.Context(), send...).Err()
		}}
}

// groupState is the reply of RAFT.STATUS.
type groupState struct {
	Addr         string        `json:"addr"`
	State        string        `json:"state"`
	Leader       string        `json:"leader"`
	LeaderClient string        `json:"leader-client"`
	Problem      string        `json:"problem,omitempty"`
	Term         int64         `json:"term"`
	Commit       int64         `json:"commit-index"`
	Applied      int64         `json:"applied-index"`
	Members      []groupMember `json:"members"`
}

type groupMember struct {
	Addr   string `json:"addr"`
	Client string `json:"client"`
	Voter  bool   `json:"voter"`
	Online bool   `json:"online"`
	Index  int64  `json:"index"`
	Lag    int64  `json:"lag"`
}

// group asks the server for its group.
func (a *app) group(ctx context.Context) (*groupState, error) { return groupOf(ctx, a.client) }

func groupOf(ctx context.Context, client *redis.Client) (*groupState, error) {
	reply, err := client.Do(ctx, "RAFT.STATUS").Result()
	if err != nil {
		return nil, err
	}
	f := pairs(reply)
	g := &groupState{Addr: textOf(f["addr"]), State: textOf(f["state"]), Leader: textOf(f["leader"]),
		LeaderClient: textOf(f["leader-client"]), Problem: textOf(f["problem"]), Term: number(textOf(f["term"])),
		Commit: number(textOf(f["commit-index"])), Applied: number(textOf(f["applied-index"])), Members: []groupMember{}}
	members, _ := f["members"].([]any)
	for _, m := range members {
		f := pairs(m)
		g.Members = append(g.Members, groupMember{Addr: textOf(f["addr"]), Client: textOf(f["client"]),
			Voter: isTrue(f["voter"]), Online: isTrue(f["online"]), Index: number(textOf(f["index"])),
			Lag: number(textOf(f["lag"]))})
	}
	return g, nil
}

// pairs returns a map of a reply, which is a list in RESP2.
func pairs(reply any) map[string]any {
	all := map[string]any{}
	switch reply := reply.(type) {
	case map[any]any:
		for name, value := range reply {
			all[textOf(name)] = value
		}
	case []any:
		for i := 0; i+1 < len(reply); i += 2 {
			all[textOf(reply[i])] = reply[i+1]
		}
	}
	return all
}

func isTrue(v any) bool { return v == true || v == int64(1) }
