package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
)

func (a *app) clusterStatus() *cobra.Command {
	return &cobra.Command{Use: "status", Short: "show the servers of all shards and their leaders", Args: Arguments(0, 0),
		Example: "  atomredis cluster status -p 7001",
		RunE: func(c *cobra.Command, _ []string) error {
			g, err := a.group(c.Context())
			if err != nil {
				return err
			}
			refused := a.otherShards(c.Context(), g)
			shards := append([]*groupState{g}, g.Others...)
			if a.json {
				err = a.printJSON(g)
			} else {
				err = a.shardsTable(shards)
			}
			for _, s := range shards {
				if err == nil && (s.Leader == "" || s.Problem != "") {
					err = errors.New(orElse(s.Problem, "the "+s.name()+" has no leader"))
				}
			}
			if err == nil {
				err = refused
			}
			return err
		}}
}

// shardsTable writes a header and a row for each server.
func (a *app) shardsTable(shards []*groupState) error {
	header := []string{"addr", "client", "role", "online", "index", "lag"}
	zoned := slices.ContainsFunc(shards, func(g *groupState) bool {
		return slices.ContainsFunc(g.Members, func(m groupMember) bool { return m.Zone != "" })
	})
	if zoned {
		header = append(header, "zone")
	}
	clustered := shards[0].Slots != "" || len(shards) > 1
	if clustered {
		header = append(header, "slots")
	}
	var rows [][]string
	for _, g := range shards {
		for _, m := range g.Members {
			online := "no"
			if m.Online {
				online = "yes"
			}
			lag := ""
			if m.Lag != nil {
				lag = strconv.FormatInt(*m.Lag, 10)
			}
			row := []string{m.Addr, m.Client, g.role(&m), online, strconv.FormatInt(m.Index, 10), lag}
			if zoned {
				row = append(row, m.Zone)
			}
			if clustered {
				row = append(row, g.Slots)
			}
			rows = append(rows, row)
		}
	}
	return a.titledTable(header, rows)
}

// role returns what a member is in its group, "" if that is unknown.
func (g *groupState) role(m *groupMember) string {
	switch {
	case g.Leader != "" && m.Addr == g.Leader, g.Leader == "" && g.LeaderClient != "" && m.Client == g.LeaderClient:
		return "leader"
	case m.Role == "waiting":
		return "not added"
	}
	return m.Role
}

// name names the group for messages.
func (g *groupState) name() string {
	if g.Slots == "" {
		return "group"
	}
	return "shard of slots " + g.Slots
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// otherShards adds the slots of a group, and the other shards of its cluster. It asks a server of each shard. Without
// cluster mode there is nothing to add.
func (a *app) otherShards(ctx context.Context, g *groupState) error {
	reply, err := a.client.Do(ctx, "CLUSTER", "SHARDS").Slice()
	if err != nil {
		if strings.Contains(err.Error(), "cluster support disabled") {
			return nil
		}
		return fmt.Errorf("other shards are not shown: %w", err)
	}
	if len(reply) == 0 {
		return nil
	}
	g.Slots = slotRanges(pairs(reply[0])["slots"]) // of the server that answers
	g.Others = make([]*groupState, len(reply)-1)
	var asking sync.WaitGroup
	for i, s := range reply[1:] {
		asking.Go(func() { g.Others[i] = a.askShard(ctx, knownShard(s)) })
	}
	asking.Wait()
	slices.SortStableFunc(g.Others, func(x, y *groupState) int { return int(firstSlot(x.Slots) - firstSlot(y.Slots)) })
	return nil
}

// knownShard returns what a shard in the reply of CLUSTER SHARDS says of its group.
func knownShard(shard any) *groupState {
	f := pairs(shard)
	known := &groupState{Slots: slotRanges(f["slots"]), Members: []groupMember{}}
	nodes, _ := f["nodes"].([]any)
	for _, n := range nodes {
		f := pairs(n)
		m := groupMember{Client: net.JoinHostPort(textOf(f["ip"]), textOf(f["port"])), Online: textOf(f["health"]) == "online",
			Index: number(textOf(f["replication-offset"]))}
		if textOf(f["role"]) == "master" {
			known.LeaderClient = m.Client
		}
		known.Members = append(known.Members, m)
	}
	return known
}

// askShard asks the servers of a shard, the leader first, for its group. If no server answers, it returns what is known.
func (a *app) askShard(ctx context.Context, known *groupState) *groupState {
	for _, m := range known.Members {
		if !m.Online {
			continue
		}
		o := *a.client.Options()
		o.Network, o.Addr = "tcp", m.Client
		client := redis.NewClient(&o)
		g, err := groupOf(ctx, client)
		client.Close()
		if err == nil {
			g.Slots = known.Slots
			return g
		}
		known.Problem = fmt.Sprintf("the %s: %s: %v", known.name(), m.Client, err)
	}
	known.Problem = orElse(known.Problem, "no server of the "+known.name()+" is online")
	return known
}

// slotRanges returns the first and last slots of ranges as text, "none" if there are none.
func slotRanges(reply any) string {
	ends, _ := reply.([]any)
	var ranges []string
	for pair := range slices.Chunk(ends, 2) {
		first, last := textOf(pair[0]), textOf(pair[len(pair)-1])
		if first != last {
			first += "-" + last
		}
		ranges = append(ranges, first)
	}
	return orElse(strings.Join(ranges, " "), "none")
}

// firstSlot returns the first slot of ranges; shards without slots come last.
func firstSlot(ranges string) int64 {
	if ranges == "none" {
		return 1 << 14
	}
	end := strings.IndexAny(ranges+" ", "- ")
	return number(ranges[:end])
}

// groupState is the reply of RAFT.STATUS, and in cluster mode the slots of the group and the cluster's other shards.
type groupState struct {
	Addr         string        `json:"addr"`
	State        string        `json:"state"`
	Leader       string        `json:"leader"`
	LeaderClient string        `json:"leader-client"`
	Problem      string        `json:"problem,omitempty"`
	Term         int64         `json:"term"`
	Commit       int64         `json:"commit-index"`
	Applied      int64         `json:"applied-index"`
	Slots        string        `json:"slots,omitempty"` // ranges; only in cluster mode
	Members      []groupMember `json:"members"`
	Others       []*groupState `json:"other-shards,omitempty"`
}

type groupMember struct {
	Addr   string `json:"addr"`
	Client string `json:"client"`
	Online bool   `json:"online"`
	Index  int64  `json:"index"`
	// The others are empty if no server of the group answers.
	Role  string `json:"role,omitempty"` // voter, joining, learner or waiting, as RAFT.STATUS has it
	Zone  string `json:"zone,omitempty"`
	Voter *bool  `json:"voter,omitempty"`
	Added *bool  `json:"added,omitempty"`
	Lag   *int64 `json:"lag,omitempty"`
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
		member := groupMember{Addr: textOf(f["addr"]), Client: textOf(f["client"]), Role: textOf(f["role"]), Zone: textOf(f["zone"]),
			Voter: new(isTrue(f["voter"])), Added: new(isTrue(f["added"]) || f["added"] == nil), Online: isTrue(f["online"]),
			Index: number(textOf(f["index"])), Lag: new(number(textOf(f["lag"])))}
		if member.Role == "" {
			member.Role = formerRole(*member.Voter, *member.Added)
		}
		g.Members = append(g.Members, member)
	}
	return g, nil
}

// formerRole returns the role of a member as a server tells it that is older than roles.
func formerRole(voter, added bool) string {
	switch {
	case voter:
		return "voter"
	case added:
		return "joining"
	}
	return "waiting"
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
