package stats

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// latencyAdvice is advice on how to avoid events of a kind.
var latencyAdvice = map[string]string{
	"command": "SLOWLOG GET shows which commands were slow. Commands that go through whole collections (KEYS, SMEMBERS, SORT, scripts) hold up all others: " +
		"prefer SCAN, smaller collections and shorter scripts.",
	"fast-command":            "Commands that do little were slow: the machine gave the server no processor, memory was swapped, or values had to be read from the disk.",
	"expire-cycle":            "Large values, or many fields, expired at once. Deadlines with a random part spread the work.",
	"eviction-cycle":          "Commands had to wait for keys to be evicted. A larger maxmemory, or a smaller maxmemory-eviction-tenacity, makes the waits rarer or shorter.",
	"checkpoint":              "Commands had to wait for a checkpoint to read values. Very large strings take longest: smaller ones, or fewer checkpoints (save, checkpoint-size), help.",
	"loading":                 "Commands had to wait for keys to be brought into memory after a start, which is over once INFO says loading:0.",
	"aof-write":               "Replies had to wait for the journal to be written: the disk is busy or slow.",
	"aof-fsync-always":        "Replies had to wait for the disk, as appendfsync always wants it. A faster disk, or appendfsync everysec, helps.",
	"aof-write-pending-fsync": "The disk needed more than a second to sync the journal, and replies had to wait: it is busy with something else, or too slow.",
}

// Report returns a readable summary of the long events with advice, at time now in s. monitored tells whether events
// are being recorded.
func (m *Latency) Report(now int64, monitored bool) string {
	var b strings.Builder
	events := m.Names()
	switch {
	case len(events) == 0 && !monitored:
		b.WriteString("Latency is not monitored. CONFIG SET latency-monitor-threshold <milliseconds> has events that take as long recorded.\n")
	case len(events) == 0:
		b.WriteString("Nothing has taken as long as latency-monitor-threshold says.\n")
	}
	for i, event := range events {
		s, ok := m.Series(event)
		if !ok {
			continue
		}
		total, first := int64(0), s.Samples[0].At
		for _, x := range s.Samples {
			total += x.MS
		}
		n := int64(len(s.Samples))
		worst := slices.MaxFunc(s.Samples, func(a, b LatencySample) int { return cmp.Compare(a.MS, b.MS) })
		fmt.Fprintf(&b, "%d. %s: %d samples in the last %d seconds, %d ms on average, %d ms at most, %d ms ever.\n",
			i+1, event, n, max(now-first, 1), total/n, worst.MS, s.Max)
		if advice := latencyAdvice[event]; advice != "" {
			b.WriteString("   " + advice + "\n")
		}
	}
	return b.String()
}
