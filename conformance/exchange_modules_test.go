// The kinds of values of Redis's modules that TestValuesAreExchanged exchanges.

package conformance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// manyWords is the number of words that sketches may have.
const manyWords = 300

// word is one of manyWords words, often one of a few.
func word(r *rand.Rand) any { return "w" + strconv.Itoa(r.IntN(pick(r, 40, manyWords))) }

// allWords are all of them.
func allWords() []any {
	return several(manyWords, func(i int) []any { return words("w" + strconv.Itoa(i)) })
}

// often is a command with other arguments each time: mostly a few times, at times often.
func often(r *rand.Rand, one func() []any) (commands [][]any) {
	for range 2*length(r) - 2 {
		commands = append(commands, one())
	}
	return commands
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

var bloomFilters = exchangedKind{
	needs: "bf.add",
	make: func(r *rand.Rand, key string) [][]any {
		reserve := words("BF.RESERVE", key, pick(r, 0.1, 0.01, 0.001, 0.24))
		if r.IntN(5) == 0 {
			reserve = append(reserve, manyWords, "NONSCALING") // Redis sends replicas also what does not fit
		} else {
			reserve = append(reserve, pick(r, 1, 5, 10, 100, 1000), "EXPANSION", pick(r, 1, 2, 4))
		}
		return append([][]any{reserve}, moreWords(r, key)...)
	},
	more: moreWords,
	views: func(key string) [][]any {
		return [][]any{append(words("BF.MEXISTS", key), allWords()...), words("BF.CARD", key), words("BF.INFO", key)}
	},
}

// moreWords adds words to a Bloom filter.
func moreWords(r *rand.Rand, key string) [][]any {
	return often(r, func() []any { return words("BF.ADD", key, word(r)) })
}

var cuckooFilters = exchangedKind{
	needs: "cf.add",
	make: func(r *rand.Rand, key string) [][]any {
		return append([][]any{words("CF.RESERVE", key, pick(r, 8, 9, 64, 1000), "BUCKETSIZE", pick(r, 1, 2, 4), "EXPANSION",
			pick(r, 0, 1, 2))}, changedWords(r, key)...)
	},
	more: changedWords,
	views: func(key string) (commands [][]any) {
		for _, w := range allWords()[:40] {
			commands = append(commands, words("CF.COUNT", key, w))
		}
		return append(commands, append(words("CF.MEXISTS", key), allWords()...), words("CF.INFO", key))
	},
}

// changedWords adds words to a cuckoo filter, and removes some.
func changedWords(r *rand.Rand, key string) [][]any {
	return often(r, func() []any { return words(pick(r, "CF.ADD", "CF.ADD", "CF.ADDNX", "CF.DEL"), key, word(r)) })
}

var countMinSketches = exchangedKind{
	needs: "cms.incrby",
	make: func(r *rand.Rand, key string) [][]any {
		return append([][]any{words("CMS.INITBYDIM", key, 1+r.IntN(200), 1+r.IntN(9))}, countedWords(r, key)...)
	},
	more: countedWords,
	views: func(key string) [][]any {
		return [][]any{append(words("CMS.QUERY", key), allWords()...), words("CMS.INFO", key)}
	},
}

// countedWords counts words in a count-min sketch.
func countedWords(r *rand.Rand, key string) [][]any {
	return often(r, func() []any { return words("CMS.INCRBY", key, word(r), 1+r.IntN(1000)) })
}

var topKLists = exchangedKind{
	needs: "topk.add",
	make: func(r *rand.Rand, key string) [][]any {
		return append([][]any{words("TOPK.RESERVE", key, 1+r.IntN(9), 1+r.IntN(20), 1+r.IntN(6), pick(r, 0.9, 0.5, 1))},
			often(r, func() []any { return words("TOPK.INCRBY", key, word(r), 1+r.IntN(50)) })...)
	},
	views: func(key string) [][]any {
		return [][]any{words("TOPK.LIST", key, "WITHCOUNT"), append(words("TOPK.QUERY", key), allWords()...),
			append(words("TOPK.COUNT", key), allWords()...), words("TOPK.INFO", key)}
	},
	streamed: func(key string) [][]any { return [][]any{words("TOPK.INFO", key)} }, // counters decay at random
}

var tDigests = exchangedKind{
	needs: "tdigest.add",
	make: func(r *rand.Rand, key string) [][]any {
		return append([][]any{words("TDIGEST.CREATE", key, "COMPRESSION", 20+r.IntN(200))}, often(r, func() []any {
			return append(words("TDIGEST.ADD", key), several(1+r.IntN(9), func(int) []any { return words(100 * r.NormFloat64()) })...)
		})...)
	},
	views: func(key string) [][]any {
		return [][]any{words("TDIGEST.QUANTILE", key, 0, 0.1, 0.5, 0.9, 1), words("TDIGEST.CDF", key, -50, 0, 50),
			words("TDIGEST.MIN", key), words("TDIGEST.MAX", key), words("TDIGEST.INFO", key)}
	},
}

var timeSeries = exchangedKind{
	needs: "ts.add",
	make: func(r *rand.Rand, key string) [][]any {
		w := newSeriesWriter(r)
		create := append(w.create(key), "DUPLICATE_POLICY", pick(r, "block", "last", "first", "min", "max", "sum"))
		create = append(create, w.retention()...)
		if r.IntN(4) == 0 {
			create = append(create, "IGNORE", r.Int64N(2*w.step), pick(r, 0.0, 0.5, 10.0))
		}
		create = append(create, "LABELS", "key", key)
		create = append(create, several(r.IntN(3), func(i int) []any {
			return words(fmt.Sprint("label ", i, randomText(r)), pick(r, "x", "y", "\x00 é"))
		})...)
		commands := append([][]any{create}, w.samples(key, 3*length(r))...)
		if r.IntN(3) == 0 {
			commands = append(commands, w.remove(key))
			commands = append(commands, w.samples(key, length(r))...)
		}
		return append(commands, w.late(key)...)
	},
	more: moreSamples(true), // because of remove
	views: func(key string) [][]any {
		return [][]any{words("TS.INFO", key), words("TS.RANGE", key, "-", "+"), words("TS.GET", key),
			words("TS.MRANGE", "-", "+", "WITHLABELS", "COUNT", 3, "FILTER", "key="+key)}
	},
}

// ruleAggregators are the aggregators of compaction rules. The rules of a series follow from its key.
var ruleAggregators = []string{"avg", "sum", "min", "max", "range", "count", "first", "last", "std.p", "std.s", "var.p", "var.s", "twa",
	"countall", "avg"}

// eachRule calls fn with the destination and the aggregator of each rule of a series.
func eachRule(key string, fn func(to, aggregator string)) {
	n, _ := strconv.Atoi(key[strings.LastIndexByte(key, ' ')+1:])
	for i := range 1 + n%3 {
		name := ruleAggregators[(n+4*i)%len(ruleAggregators)]
		fn(fmt.Sprint(key, " ", i, name), name)
	}
}

// Rules and deletions are not combined, nor are rules and NaN: docs/timeseries.md says what Redis then loses.
var timeSeriesWithRules = exchangedKind{
	needs: "ts.add",
	whole: true, // DUMP leaves rules out
	make: func(r *rand.Rand, key string) [][]any {
		w := newSeriesWriter(r)
		create := append(w.create(key), "DUPLICATE_POLICY", pick(r, "last", "first", "min", "max", "sum"))
		commands := [][]any{append(create, w.retention()...)}
		if r.IntN(4) == 0 {
			commands = append(commands, w.samples(key, length(r))...)
		}
		eachRule(key, func(to, aggregator string) {
			commands = append(commands, w.create(to), words("TS.CREATERULE", key, to, "AGGREGATION", aggregator,
				1+r.Int64N(20*w.step), r.Int64N(2)*r.Int64N(20*w.step)))
		})
		commands = append(commands, w.samples(key, 2*length(r))...)
		return append(commands, w.late(key)...)
	},
	more: moreSamples(false),
	views: func(key string) [][]any {
		commands := [][]any{words("TS.INFO", key), words("TS.RANGE", key, "-", "+")}
		eachRule(key, func(to, aggregator string) {
			commands = append(commands, words("TS.INFO", to))
			if strings.Contains(aggregator, ".") { // only times: servers compute deviations in different ways
				commands = append(commands, words("TS.RANGE", to, "-", "+", "LATEST", "AGGREGATION", "countall", 1))
			} else {
				commands = append(commands, words("TS.RANGE", to, "-", "+", "LATEST"))
			}
		})
		return commands
	},
}

// seriesWriter makes random samples of a series.
type seriesWriter struct {
	r       *rand.Rand
	at      int64 // the time of the last sample in order
	step    int64 // the usual distance of times
	regular bool  // distances are nearly the same
	ordered bool  // no samples are late
	value   func() float64
}

func newSeriesWriter(r *rand.Rand) *seriesWriter {
	w := &seriesWriter{r: r, at: pick(r, 0, 1, 1_700_000_000_000+r.Int64N(1e9), 1<<40), step: pick[int64](r, 1, 10, 1000, 60_000, 1<<20),
		regular: r.IntN(2) == 0}
	level := r.NormFloat64() * 1000
	w.value = pick(r,
		func() float64 { return float64(r.IntN(100)) },
		func() float64 { return float64(r.Int64() >> r.IntN(64) * int64(1-2*r.IntN(2))) },
		func() float64 { return r.NormFloat64() },
		func() float64 { level += 0.25 * float64(r.IntN(3)-1); return level },
		func() float64 { return math.Round(level*100) / 100 },
		func() float64 {
			for { // areas and sums of larger values overflow, earlier in Redis
				if v := math.Float64frombits(r.Uint64()); math.Abs(v) < 1e280 {
					return v
				}
			}
		})
	return w
}

// create is the command that creates a series; further options may be appended.
func (w *seriesWriter) create(key string) []any {
	return words("TS.CREATE", key, "ENCODING", pick(w.r, "COMPRESSED", "COMPRESSED", "UNCOMPRESSED"), "CHUNK_SIZE",
		pick(w.r, 48, 64, 128, 256, 1024, 4096))
}

// retention is the option of a series that keeps samples for some time, or for ever.
func (w *seriesWriter) retention() []any {
	if w.r.IntN(4) > 0 {
		return nil
	}
	return words("RETENTION", (1+w.r.Int64N(300))*w.step)
}

// samples are commands that add n samples. Some are late, or at a time that has a sample already, but not the first: Redis counts
// samples that are older than a rule, together with the late one, in the first bucket after the rule.
func (w *seriesWriter) samples(key string, n int) (commands [][]any) {
	const most = 50 // of a command
	r := w.r
	for i := 0; i < n; {
		command := words("TS.MADD")
		for end := min(n, i+most); i < end; i++ {
			switch {
			case r.IntN(100) == 0:
				w.at += r.Int64N(1 << (10 + r.IntN(30)))
			case w.regular:
				w.at += w.step + r.Int64N(1+w.step/8)*r.Int64N(2)
			default:
				w.at += 1 + r.Int64N(2*w.step)
			}
			at := w.at
			if i > 0 && !w.ordered && r.IntN(8) == 0 {
				at = max(at-r.Int64N(20*w.step), 0)
			}
			command = append(command, key, at, strconv.FormatFloat(w.value(), 'g', -1, 64))
		}
		commands = append(commands, command)
	}
	return commands
}

// lateTime is after all other times.
const lateTime = 1 << 45

// late are at times a command that adds the sample before those of moreSamples, which may then be in the same bucket.
func (w *seriesWriter) late(key string) [][]any {
	if w.at = lateTime; w.r.IntN(3) > 0 {
		return nil
	}
	return w.samples(key, 1)
}

// moreSamples are commands that continue a series.
func moreSamples(ordered bool) func(r *rand.Rand, key string) [][]any {
	return func(r *rand.Rand, key string) [][]any {
		w := newSeriesWriter(r)
		if w.at, w.ordered = lateTime+2*w.step, ordered; ordered {
			w.at += 1 << 41 // after any sample of late
		}
		return w.samples(key, 1+r.IntN(20))
	}
}

// remove is a command that removes a range of samples. No late ones may follow: Redis then loses chunks, and counts samples twice.
func (w *seriesWriter) remove(key string) []any {
	w.ordered = true
	from := max(w.at-w.r.Int64N(200*w.step), 0)
	return words("TS.DEL", key, from, from+w.r.Int64N(100*w.step))
}

// seriesInfo returns TS.INFO without what is each server's own, and with sorted rules. A series that is made by the same commands
// has chunks that depend on the server's compression. Redis forgets to update the lastTimestamp of a compaction when a late sample
// makes a bucket, and measures its retention from there.
func seriesInfo(info []any, streamed bool) (list []any) {
	compaction := false
	for i := 0; i+1 < len(info); i += 2 {
		compaction = compaction || info[i] == "sourceKey" && info[i+1] != nil
	}
	for i := 0; i+1 < len(info); i += 2 {
		name, value := info[i], info[i+1]
		if rules, ok := value.([]any); ok && name == "rules" { // Redis reverses them whenever it loads a series
			sortList(rules)
		}
		switch {
		case name == "memoryUsage", name == "chunkCount" && streamed, name == "lastTimestamp" && compaction:
			continue
		}
		list = append(list, name, value)
	}
	return list
}
