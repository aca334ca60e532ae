package cluster

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
)

const (
	errSlotMetric command.Error = "ERR Unrecognized sort metric for ORDERBY."
	errSlotLimit  command.Error = "ERR LIMIT has to lie in between 1 and 16384 (maximum number of slots)."
)

// slotMetrics are the metrics of a slot, in the order of the reply. Those with a bit exist only while that is counted.
var slotMetrics = [...]struct {
	name    string
	counted config.SlotStats
}{
	{"key-count", 0}, {"memory-bytes", config.SlotMemory}, {"cpu-usec", config.SlotCPU},
	{"network-bytes-in", config.SlotNet}, {"network-bytes-out", config.SlotNet},
}

// slotNumbers are the numbers of a slot, in the order of slotMetrics.
type slotNumbers [len(slotMetrics)]int64

// countedMetrics returns the names of the metrics that are counted, and their places in slotMetrics.
func countedMetrics(counted config.SlotStats) (names []string, places []int) {
	for i, m := range slotMetrics {
		if m.counted&counted == m.counted {
			names, places = append(names, m.name), append(places, i)
		}
	}
	return names, places
}

func slotStats(c *command.Ctx) {
	node := nodeOf(c)
	counters := node.Stats.Load()
	metrics, places := countedMetrics(config.SlotStats(node.Counted.Load()))
	order, ok := readSlotOrder(c, metrics)
	if !ok {
		return
	}
	if order.metric >= 0 {
		order.metric = places[order.metric]
	}
	all := new([cluster.Slots]slotNumbers)
	foreign := foreignSlots(c)
	for slot := order.first; slot <= order.last; slot++ {
		if !foreign(slot) {
			all[slot][0], all[slot][1] = keysInSlot(c, slot, foreign), c.G.SlotMemory(slot)
		}
		if counters != nil {
			n := &counters[slot]
			all[slot][2], all[slot][3], all[slot][4] = n.Micros.Load(), n.In.Load(), n.Out.Load()
		}
	}
	chosen := order.choose(all)
	c.W.Array(len(chosen))
	for _, slot := range chosen {
		c.W.Array(2)
		c.W.Int(int64(slot))
		c.W.Map(len(metrics))
		for i, name := range metrics {
			c.W.BulkString(name)
			c.W.Int(all[slot][places[i]])
		}
	}
}

// slotOrder says which slots the reply has, and in which order.
type slotOrder struct {
	first, last int // the slots
	metric      int // the sort key; -1 sorts by slot
	ascending   bool
	limit       int
}

// readSlotOrder reads the arguments of CLUSTER SLOT-STATS. If they are invalid, it writes an error and ok is false.
func readSlotOrder(c *command.Ctx, metrics []string) (o slotOrder, ok bool) {
	args := c.Options(2)
	args.Next()
	switch {
	case args.Is("slotsrange") && args.Left() == 2:
		return readSlotRange(c, &args)
	case args.Is("orderby"):
	default:
		command.WrongUse(c, "CLUSTER")
		return o, false
	}
	o = slotOrder{last: cluster.Slots - 1, limit: cluster.Slots}
	if o.metric = slices.Index(metrics, command.Lower(args.Arg())); o.metric < 0 {
		c.Err(errSlotMetric)
		return o, false
	}
	limited, directed := false, false
	for args.Next() {
		switch {
		case args.Is("limit") && args.More() && !limited:
			n, ok := c.IntIn(args.Arg(), 1, cluster.Slots, errSlotLimit)
			if !ok {
				return o, false
			}
			o.limit, limited = int(n), true
		case (args.Is("asc") || args.Is("desc")) && !directed:
			o.ascending, directed = args.Is("asc"), true
		default:
			c.Err(command.ErrSyntax)
			return o, false
		}
	}
	return o, true
}

func readSlotRange(c *command.Ctx, args *command.OptionArgs) (o slotOrder, ok bool) {
	first, ok := c.IntIn(args.Arg(), 0, cluster.Slots-1, errSlotRange)
	if !ok {
		return o, false
	}
	last, ok := c.IntIn(args.Arg(), 0, cluster.Slots-1, errSlotRange)
	if !ok {
		return o, false
	}
	if first > last {
		c.Err(command.Error(fmt.Sprintf("ERR Start slot number %d is greater than end slot number %d", first, last)))
		return o, false
	}
	return slotOrder{first: int(first), last: int(last), metric: -1, limit: cluster.Slots}, true
}

// choose returns the slots for the reply.
func (o *slotOrder) choose(all *[cluster.Slots]slotNumbers) []int {
	slots := make([]int, 0, o.last-o.first+1)
	for slot := o.first; slot <= o.last; slot++ {
		slots = append(slots, slot)
	}
	if o.metric >= 0 {
		slices.SortStableFunc(slots, func(a, b int) int {
			order := cmp.Compare(all[a][o.metric], all[b][o.metric])
			if !o.ascending {
				order = -order
			}
			return order
		})
	}
	return slots[:min(o.limit, len(slots))]
}
