package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atomredis/atomredis/pressure"
)

// top shows the activity of a server, from INFO, LATENCY HISTOGRAM and the server's queues.

// topCommands is how many commands are shown.
const topCommands = 15

func (a *app) top() *cobra.Command {
	var once bool
	var count int
	var interval time.Duration
	f := &queueFlags{}
	c := &cobra.Command{Use: "top", Short: "show the activity of a server, again and again",
		Long: `Shows rates, latency, the commands that take most time, memory, clients, storage, and pressure queues, of
atomredis or of Redis. It leaves out figures that a server does not report. On a terminal it refreshes in place,
until it is interrupted; otherwise it appends.

Rates and percentiles cover the interval, the first ones the time since the server was started. Percentiles are
upper bounds: the steps of the histograms are a factor of two apart.`,
		Example: `  atomredis top --interval 5s
  atomredis top --once -h db.example.org`,
		Args: Arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			if interval <= 0 {
				return Usagef("invalid interval %s", interval)
			}
			if once {
				count = 1
			}
			var before *sample
			for n := 1; ; n++ {
				now, err := a.sample(c.Context(), f.options())
				if err != nil {
					return ended(c.Context(), err)
				}
				a.clear()
				if err := a.printed(now.lines(before, a.client.Options().Addr)...); err != nil || n == count {
					return err
				}
				before = now
				select {
				case <-c.Context().Done():
					return nil
				case <-time.After(interval):
				}
			}
		}}
	c.Flags().BoolVar(&once, "once", false, "show the figures once and end")
	c.Flags().IntVar(&count, "count", 0, "how often to show the figures (0: until interrupted)")
	c.Flags().DurationVar(&interval, "interval", time.Second, "time between two looks")
	c.Flags().StringVar(&f.prefix, "prefix", pressure.DefaultPrefix, "prefix of the keys of queues")
	return c
}

// sample has the figures of a server at one time. Figures that the server does not report are 0 or missing.
type sample struct {
	at        time.Time
	info      map[string]string
	commands  map[string]commandCount
	histogram map[string]map[int64]int64 // by command: cumulative calls by their latency in µs
	queues    []*pressure.Info
	names     []string // names of the queues
}

// commandCount has the number of calls of a command and their total duration.
type commandCount struct{ calls, micros int64 }

func (a *app) sample(ctx context.Context, o pressure.Options) (*sample, error) {
	text, err := a.client.Info(ctx, "everything").Result()
	if err != nil {
		return nil, err
	}
	s := &sample{at: time.Now(), info: map[string]string{}, commands: map[string]commandCount{}}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		if !ok {
			continue
		}
		s.info[name] = value
		if command, ok := strings.CutPrefix(name, "cmdstat_"); ok {
			fields := fieldsOf(value)
			s.commands[command] = commandCount{number(fields["calls"]), number(fields["usec"])}
		}
	}
	if reply, err := a.client.Do(ctx, "LATENCY", "HISTOGRAM").Result(); err == nil { // Redis before 7 does not have it
		s.histogram = readHistograms(reply)
	}
	// List walks over the names of all keys, but only keys of queues are read.
	names, err := pressure.List(ctx, a.client, o)
	if err != nil {
		return s, ctx.Err() // this user may not list queues
	}
	slices.Sort(names)
	for _, name := range names {
		q, err := pressure.Open(ctx, a.client, name, o)
		if err == nil {
			var info *pressure.Info
			if info, err = q.Info(ctx); err == nil {
				s.names, s.queues = append(s.names, name), append(s.queues, info)
			}
		}
	}
	return s, ctx.Err()
}

// fieldsOf reads name=value,name=value.
func fieldsOf(value string) map[string]string {
	fields := map[string]string{}
	for part := range strings.SplitSeq(value, ",") {
		name, value, _ := strings.Cut(part, "=")
		fields[name] = value
	}
	return fields
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// eachPair calls fn for the keys and values of a map in a reply, in RESP2 or RESP3.
func eachPair(reply any, fn func(key, value any)) {
	switch reply := reply.(type) {
	case map[any]any:
		for key, value := range reply {
			fn(key, value)
		}
	case []any:
		for i := 0; i+1 < len(reply); i += 2 {
			fn(reply[i], reply[i+1])
		}
	}
}

func readHistograms(reply any) map[string]map[int64]int64 {
	all := map[string]map[int64]int64{}
	eachPair(reply, func(command, about any) {
		eachPair(about, func(field, steps any) {
			if field != "histogram_usec" {
				return
			}
			counts := map[int64]int64{}
			eachPair(steps, func(micros, calls any) {
				m, _ := micros.(int64)
				n, _ := calls.(int64)
				counts[m] = n
			})
			all[fmt.Sprint(command)] = counts
		})
	})
	return all
}

// since returns the calls of each step of a histogram since an older one.
func since(now, before map[int64]int64) map[int64]int64 {
	var steps []int64
	for micros := range now {
		steps = append(steps, micros)
	}
	slices.Sort(steps)
	calls := map[int64]int64{}
	last, lastBefore := int64(0), int64(0)
	for _, micros := range steps {
		// A missing step of the older histogram has as many calls as the step below.
		b, ok := before[micros]
		if !ok {
			b = lastBefore
		}
		calls[micros] = max(0, now[micros]-last-(b-lastBefore))
		last, lastBefore = now[micros], b
	}
	return calls
}

// percentiles returns the steps up to which 50, 99 and 99.9 % of the calls lie, "-" for each without calls.
func percentiles(calls map[int64]int64) (texts [3]string) {
	steps := make([]int64, 0, len(calls))
	all := int64(0)
	for micros, n := range calls {
		steps = append(steps, micros)
		all += n
	}
	slices.Sort(steps)
	for i, share := range []float64{0.5, 0.99, 0.999} {
		texts[i] = "-"
		seen := int64(0)
		for _, micros := range steps {
			if seen += calls[micros]; all > 0 && float64(seen) >= share*float64(all) {
				texts[i] = (time.Duration(micros) * time.Microsecond).String()
				break
			}
		}
	}
	return texts
}

// hot is a command with its share of an interval.
type hot struct {
	name          string
	calls, micros int64
	percentiles   [3]string
}

// lines describes the sample and the difference to the sample before; nil means the start of the server.
func (s *sample) lines(before *sample, addr string) []string {
	seconds := float64(max(1, number(s.info["uptime_in_seconds"])))
	if before == nil {
		before = &sample{}
	} else {
		seconds = s.at.Sub(before.at).Seconds()
	}
	rate := func(name string) float64 { return float64(number(s.info[name])-number(before.info[name])) / seconds }
	all := map[int64]int64{}
	var commands []hot
	for name, count := range s.commands {
		h := hot{name: name, calls: count.calls - before.commands[name].calls, micros: count.micros - before.commands[name].micros}
		if h.calls <= 0 { // no calls, or the counts were reset
			continue
		}
		calls := since(s.histogram[name], before.histogram[name])
		for micros, n := range calls {
			all[micros] += n
		}
		h.percentiles = percentiles(calls)
		commands = append(commands, h)
	}
	slices.SortFunc(commands, func(a, b hot) int {
		return cmp.Or(cmp.Compare(b.micros, a.micros), cmp.Compare(b.calls, a.calls), cmp.Compare(a.name, b.name))
	})
	version := "redis " + s.info["redis_version"]
	if v := s.info["atomredis_version"]; v != "" {
		version = "atomredis " + v
	}
	p := percentiles(all)
	lines := []string{
		fmt.Sprintf("%s  %s  %s  up %s", version, addr, s.info["role"], time.Duration(number(s.info["uptime_in_seconds"]))*time.Second),
		fmt.Sprintf("commands  %.0f/s  p50 %s  p99 %s  p99.9 %s  in %s/s  out %s/s", rate("total_commands_processed"), p[0], p[1], p[2],
			size(rate("total_net_input_bytes")), size(rate("total_net_output_bytes"))),
		fmt.Sprintf("clients   %s  blocked %s  new %.0f/s", s.info["connected_clients"], s.info["blocked_clients"],
			rate("total_connections_received")),
		s.memory(rate),
		s.stored(),
		"",
		fmt.Sprintf("%-24s %12s %8s %10s %10s %10s", "COMMAND", "CALLS/S", "BUSY", "P50", "P99", "P99.9"),
	}
	for _, h := range commands[:min(len(commands), topCommands)] {
		lines = append(lines, fmt.Sprintf("%-24s %12.1f %7.1f%% %10s %10s %10s", h.name, float64(h.calls)/seconds,
			float64(h.micros)/seconds/1e4, h.percentiles[0], h.percentiles[1], h.percentiles[2]))
	}
	return append(lines, s.queueLines(before, seconds)...)
}

func (s *sample) memory(rate func(string) float64) string {
	line := "memory    " + size(float64(number(s.info["used_memory"])))
	if limit := number(s.info["maxmemory"]); limit > 0 {
		line += fmt.Sprintf(" of %s (%s)", size(float64(limit)), s.info["maxmemory_policy"])
	}
	keys := int64(0)
	for name, value := range s.info {
		if db, ok := strings.CutPrefix(name, "db"); ok && db != "" && strings.Trim(db, "0123456789") == "" {
			keys += number(fieldsOf(value)["keys"])
		}
	}
	hits, misses := rate("keyspace_hits"), rate("keyspace_misses")
	line += fmt.Sprintf("  resident %s  keys %d", size(float64(number(s.info["used_memory_rss"]))), keys)
	if hits+misses > 0 {
		line += fmt.Sprintf("  hits %.1f%%", 100*hits/(hits+misses))
	}
	return line + fmt.Sprintf("  expired %.0f/s  evicted %.0f/s", rate("expired_keys"), rate("evicted_keys"))
}

// stored describes the journal and the checkpoints of atomredis, or the files of Redis.
func (s *sample) stored() string {
	if s.info["aof_enabled"] != "1" && s.info["journal_since_checkpoint"] == "" {
		return "storage   no journal, " + s.info["rdb_changes_since_last_save"] + " changes since the last save"
	}
	line := "journal   writes " + s.info["aof_last_write_status"]
	if bytes, ok := s.info["journal_since_checkpoint"]; ok {
		line += "  " + size(float64(number(bytes))) + " since the checkpoint"
	} else if bytes, ok := s.info["aof_current_size"]; ok {
		line += "  " + size(float64(number(bytes)))
	}
	line += "  checkpoint " + s.info["rdb_last_bgsave_status"]
	if s.info["rdb_bgsave_in_progress"] == "1" {
		line += ", one is being written"
	}
	return line
}

func (s *sample) queueLines(before *sample, seconds float64) []string {
	if len(s.queues) == 0 {
		return nil
	}
	lines := []string{"", fmt.Sprintf("%-24s %12s %12s %10s %10s %8s", "QUEUE", "LENGTH", "BOUND", "IN/S", "OUT/S", "WAIT")}
	for i, q := range s.queues {
		in, out := "-", "-"
		if b := slices.Index(before.names, s.names[i]); b >= 0 && q.ProducedMessages >= 0 {
			in = fmt.Sprintf("%.1f", float64(q.ProducedMessages-before.queues[b].ProducedMessages)/seconds)
			out = fmt.Sprintf("%.1f", float64(q.ConsumedMessages-before.queues[b].ConsumedMessages)/seconds)
		}
		waiting := "-"
		if q.BlockedProducers >= 0 && q.BlockedConsumers >= 0 {
			waiting = strconv.FormatInt(q.BlockedProducers+q.BlockedConsumers, 10)
		}
		lines = append(lines, fmt.Sprintf("%-24s %12d %12d %10s %10s %8s", cells([]string{s.names[i]})[0], q.Length, q.Bound, in, out,
			waiting))
	}
	return lines
}

// size returns a number of bytes as text for people.
func size(bytes float64) string {
	for _, unit := range []string{"B", "KB", "MB", "GB"} {
		if bytes < 1024 {
			return strconv.FormatFloat(bytes, 'f', 1, 64) + unit
		}
		bytes /= 1024
	}
	return strconv.FormatFloat(bytes, 'f', 1, 64) + "TB"
}
