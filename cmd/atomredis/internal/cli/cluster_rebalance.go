package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/atomredis/atomredis/internal/cluster/balance"
)

// rebalance moves slots between the shards of a cluster.
type rebalance struct {
	a         *app
	by        string  // a name in weights
	threshold float64 // percent
	batch     int     // slots in one migration
	pause     time.Duration
	latency   time.Duration // that a batch may add for clients; 0 is any
	without   []string      // addresses of servers whose shards are to have no slots
	dryRun    bool
	force     bool // also against cluster-rebalance auto
}

// weights has the metrics of CLUSTER SLOT-STATS that the values of --by stand for; "" counts slots.
var weights = map[string]string{"slots": "", "keys": "key-count", "memory": "memory-bytes", "time": "cpu-usec"}

func (a *app) clusterRebalance() *cobra.Command {
	r := rebalance{a: a}
	c := &cobra.Command{Use: "rebalance", Short: "move slots between shards, so that each has its part", Args: Arguments(0, 0),
		Long: `Moves slots with their keys until each shard has the same number of slots, of keys, of bytes in memory, or of microseconds
that commands have taken. Clients go on meanwhile. Slots move in batches, one after the other, which are smaller while other clients
are delayed. An interrupt ends it after a batch; the next call goes on. A new shard has no slots: it gets its part. With --without
the shard of a server loses all slots and can be shut down.`,
		Example: `  atomredis cluster rebalance -p 7001 --dry-run
  atomredis cluster rebalance -p 7001 --by keys --pause 1s
  atomredis cluster rebalance -p 7001 --without 127.0.0.1:7007`,
		RunE: func(c *cobra.Command, _ []string) error { return r.run(c.Context()) }}
	c.Flags().StringVar(&r.by, "by", "slots",
		"what each shard gets the same of: slots, keys, memory or time (the last two need cluster-slot-stats-enabled)")
	c.Flags().Float64Var(&r.threshold, "threshold", 2, "do nothing if no shard differs from its part by more than this many percent")
	c.Flags().IntVar(&r.batch, "batch", 100, "slots that move at once")
	c.Flags().DurationVar(&r.pause, "pause", 0, "time between two batches")
	c.Flags().DurationVar(&r.latency, "max-latency", 20*time.Millisecond,
		"fewer slots move at once while they delay PING by more than this; 0 is no limit")
	c.Flags().StringSliceVar(&r.without, "without", nil, "address of a server whose shard is to have no slots")
	c.Flags().BoolVar(&r.dryRun, "dry-run", false, "show what would move")
	c.Flags().BoolVar(&r.force, "force", false, "move slots although a shard with cluster-rebalance auto balances something else")
	return c
}

// shard is what a rebalance knows of a shard.
type shard struct {
	nodes  []string // IDs of its servers
	addrs  []string // their addresses for clients
	leader string   // one of addrs; "" during an election
	slots  []int    // in order
	retire bool     // it is to have no slots
}

// moved is a row of the output.
type moved struct {
	From  string `json:"from"` // addresses for clients
	To    string `json:"to"`
	Count int    `json:"count"`
	Slots string `json:"slots"`
}

func (r *rebalance) run(ctx context.Context) error {
	metric, ok := weights[r.by]
	switch {
	case !ok:
		return Usagef("--by takes slots, keys, memory or time")
	case r.batch < 1:
		return Usagef("--batch takes a number above 0")
	}
	shards, err := r.shards(ctx)
	if err != nil {
		return err
	}
	weight, err := r.weigh(ctx, shards, metric)
	if err != nil {
		return err
	}
	plan := make([]balance.Shard, len(shards))
	for i := range shards {
		plan[i] = balance.Shard{Slots: shards[i].slots, Retire: shards[i].retire}
	}
	moves, err := balance.Plan(plan, weight, r.threshold)
	if err != nil {
		return err
	}
	if !r.dryRun {
		if err := r.agrees(ctx, shards); err != nil {
			return err
		}
		r.keepEmpty(ctx, shards)
	}
	for _, m := range moves {
		if r.dryRun {
			if err := r.show(&shards[m.From], &shards[m.To], m.Slots); err != nil {
				return err
			}
			continue
		}
		if more, err := r.moveAll(ctx, &shards[m.From], &shards[m.To], m.Slots); err != nil || !more {
			return err
		}
	}
	if len(moves) == 0 && !r.a.json {
		return r.a.printed("Each shard has its part.")
	}
	return nil
}

// agrees returns an error if a shard that keeps slots balances something else by itself, and so would move slots back.
func (r *rebalance) agrees(ctx context.Context, shards []shard) error {
	for _, s := range shards {
		if s.retire || s.leader == "" || r.force {
			continue
		}
		client := r.at(s.leader)
		info, err := client.Info(ctx, "cluster").Result()
		client.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", s.leader, err)
		}
		state := map[string]string{}
		for line := range strings.Lines(info) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			state[name] = value
		}
		if by := state["cluster_rebalance_by"]; state["cluster_rebalance"] == "auto" && by != r.by {
			return fmt.Errorf("%s has cluster-rebalance auto by %s, and would move slots back: use --by %[2]s, set cluster-rebalance no, "+
				"or give --force", s.leader, by)
		}
	}
	return nil
}

// keepEmpty ends cluster-rebalance at shards that are to have no slots, so that they do not take them back.
func (r *rebalance) keepEmpty(ctx context.Context, shards []shard) {
	for _, s := range shards {
		for _, addr := range s.addrs {
			if s.retire {
				client := r.at(addr)
				_ = client.ConfigSet(ctx, "cluster-rebalance", "no") // one that is down, or older, takes nothing
				client.Close()
			}
		}
	}
}

// moveAll moves slots from a shard to another in batches; more is false if ctx has ended.
func (r *rebalance) moveAll(ctx context.Context, from, to *shard, slots []int) (more bool, err error) {
	servers := []*redis.Client{r.at(from.name()), r.at(to.name())}
	defer func() {
		for _, s := range servers {
			s.Close()
		}
	}()
	probe := func(ctx context.Context) time.Duration { return ping(ctx, servers) }
	t := balance.Throttle{Limit: r.latency, Most: r.batch, Pause: probePause}
	t.Begin(ctx, probe)
	for len(slots) > 0 {
		batch := slots[:min(t.Size(), len(slots))]
		if err := t.During(ctx, probe, func() error { return r.move(ctx, to, batch) }); err != nil {
			return false, err
		}
		if err := r.show(from, to, batch); err != nil {
			return false, err
		}
		if slots = slots[len(batch):]; !balance.Sleep(ctx, r.pause) {
			return false, nil
		}
	}
	return true, nil
}

// name names a shard for people.
func (s *shard) name() string {
	if s.leader != "" {
		return s.leader
	}
	return s.addrs[0]
}

// show writes which slots have moved, or would.
func (r *rebalance) show(from, to *shard, slots []int) error {
	m := moved{from.name(), to.name(), len(slots), rangesText(slots)}
	if r.a.json {
		return r.a.printJSON(m)
	}
	verb := "moved"
	if r.dryRun {
		verb = "to move"
	}
	return r.a.printed(fmt.Sprintf("%s from %s to %s: slots %s (%d)", verb, m.From, m.To, m.Slots, m.Count))
}

// shards returns the shards of the cluster, and marks those that are to have no slots.
func (r *rebalance) shards(ctx context.Context) ([]shard, error) {
	shards, err := shardsOf(ctx, r.a.client)
	if err != nil {
		return nil, err
	}
	for _, addr := range r.without {
		i := slices.IndexFunc(shards, func(s shard) bool { return slices.Contains(s.addrs, addr) })
		if i < 0 {
			return nil, fmt.Errorf("no shard has a server with the address %s", addr)
		}
		shards[i].retire = true
	}
	return shards, nil
}

// shardsOf asks a server for all shards, in the order of their slots.
func shardsOf(ctx context.Context, client *redis.Client) (shards []shard, err error) {
	reply, err := client.Do(ctx, "CLUSTER", "SHARDS").Slice()
	if err != nil {
		return nil, err
	}
	for _, one := range reply {
		f := pairs(one)
		var s shard
		ends, _ := f["slots"].([]any)
		for pair := range slices.Chunk(ends, 2) {
			for slot := number(textOf(pair[0])); slot <= number(textOf(pair[len(pair)-1])); slot++ {
				s.slots = append(s.slots, int(slot))
			}
		}
		slices.Sort(s.slots)
		nodes, _ := f["nodes"].([]any)
		for _, n := range nodes {
			f := pairs(n)
			addr := net.JoinHostPort(textOf(f["ip"]), textOf(f["port"]))
			s.nodes, s.addrs = append(s.nodes, textOf(f["id"])), append(s.addrs, addr)
			if textOf(f["role"]) == "master" {
				s.leader = addr
			}
		}
		if len(s.addrs) > 0 {
			shards = append(shards, s)
		}
	}
	slices.SortStableFunc(shards, func(x, y shard) int { return x.first() - y.first() })
	return shards, nil
}

// first returns the first slot; shards without slots come last.
func (s *shard) first() int {
	if len(s.slots) == 0 {
		return slots
	}
	return s.slots[0]
}

// weigh returns the weights of slots by a metric of their leaders.
func (r *rebalance) weigh(ctx context.Context, shards []shard, metric string) (weight func(slot int) int64, err error) {
	if metric == "" {
		return func(int) int64 { return 1 }, nil
	}
	found := map[int]int64{}
	for _, s := range shards {
		if len(s.slots) == 0 {
			continue
		}
		client := r.at(s.name())
		reply, err := client.Do(ctx, "CLUSTER", "SLOT-STATS", "SLOTSRANGE", 0, slots-1).Slice()
		client.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name(), err)
		}
		known := false
		for _, one := range reply {
			stats, _ := one.([]any)
			if len(stats) < 2 {
				continue
			}
			slot := int(number(textOf(stats[0])))
			n, ok := pairs(stats[1])[metric]
			known = known || ok
			if _, own := slices.BinarySearch(s.slots, slot); own {
				found[slot] = number(textOf(n))
			}
		}
		if !known {
			return nil, fmt.Errorf("%s does not count %s: CONFIG SET cluster-slot-stats-enabled yes", s.name(), metric)
		}
	}
	return func(slot int) int64 { return found[slot] }, nil
}

// at returns a client of another server of the cluster.
func (r *rebalance) at(addr string) *redis.Client {
	o := *r.a.client.Options()
	o.Network, o.Addr = "tcp", addr
	return redis.NewClient(&o)
}

const (
	// moveTries is how often a batch is tried while leaders change.
	moveTries = 10
	// movePause is the time before the next try, statusPause that between two looks at a task, and probePause that between two
	// PINGs.
	movePause   = time.Second
	statusPause = 20 * time.Millisecond
	probePause  = 5 * time.Millisecond
)

// move moves slots to a shard. It tries again if they did not arrive, and does not stop within a batch when ctx ends.
func (r *rebalance) move(ctx context.Context, to *shard, slots []int) (err error) {
	ctx = context.WithoutCancel(ctx)
	for range moveTries {
		var missing []int
		if missing, err = r.missing(ctx, to, slots); err == nil && len(missing) == 0 {
			return nil
		}
		if err == nil {
			err = r.migrate(ctx, to.leader, missing)
		}
		if err != nil {
			balance.Sleep(ctx, movePause)
		}
	}
	return err
}

// missing returns those of the slots that a shard does not have, and notes its leader.
func (r *rebalance) missing(ctx context.Context, to *shard, slots []int) ([]int, error) {
	now, err := shardsOf(ctx, r.a.client)
	if err != nil {
		return nil, err
	}
	for _, s := range now {
		if !slices.ContainsFunc(s.nodes, func(id string) bool { return slices.Contains(to.nodes, id) }) {
			continue
		}
		if s.leader == "" {
			return nil, fmt.Errorf("the shard of %s has no leader", to.name())
		}
		to.leader = s.leader
		return slices.DeleteFunc(slices.Clone(slots), func(slot int) bool {
			_, has := slices.BinarySearch(s.slots, slot)
			return has
		}), nil
	}
	return nil, fmt.Errorf("the shard of %s is not in the cluster any more", to.name())
}

// migrate moves slots to a server that leads its shard, and waits for the end.
func (r *rebalance) migrate(ctx context.Context, leader string, slots []int) error {
	client := r.at(leader)
	defer client.Close()
	args := []any{"CLUSTER", "MIGRATION", "IMPORT"}
	for _, ends := range rangesOf(slots) {
		args = append(args, ends[0], ends[1])
	}
	task, err := client.WithTimeout(changeTimeout).Do(ctx, args...).Text()
	for err == nil {
		var tasks []any
		if tasks, err = client.Do(ctx, "CLUSTER", "MIGRATION", "STATUS", "ID", task).Slice(); err != nil {
			break
		}
		if len(tasks) == 0 {
			return errors.New("the leader of the shard has changed")
		}
		switch f := pairs(tasks[0]); textOf(f["state"]) {
		case "completed":
			return nil
		case "failed", "canceled":
			return errors.New(orElse(textOf(f["last_error"]), textOf(f["state"])))
		}
		balance.Sleep(ctx, statusPause)
	}
	return fmt.Errorf("slots %s to %s: %w", strconv.Quote(rangesText(slots)), leader, err)
}

// ping returns how long the slowest of some servers takes to answer.
func ping(ctx context.Context, servers []*redis.Client) (slowest time.Duration) {
	for _, s := range servers {
		began := time.Now()
		s.Ping(ctx) // a server that does not answer is slow; the migration itself reports what is wrong
		slowest = max(slowest, time.Since(began))
	}
	return slowest
}

// rangesOf returns the first and last slots of the ranges of sorted slots.
func rangesOf(slots []int) (ranges [][2]int) {
	for _, slot := range slots {
		if n := len(ranges); n > 0 && ranges[n-1][1] == slot-1 {
			ranges[n-1][1] = slot
		} else {
			ranges = append(ranges, [2]int{slot, slot})
		}
	}
	return ranges
}

// rangesText is the form of slots in CLUSTER NODES: 0-99 105.
func rangesText(slots []int) string {
	var words []string
	for _, r := range rangesOf(slots) {
		if r[0] == r[1] {
			words = append(words, fmt.Sprint(r[0]))
		} else {
			words = append(words, fmt.Sprintf("%d-%d", r[0], r[1]))
		}
	}
	return strings.Join(words, " ")
}
