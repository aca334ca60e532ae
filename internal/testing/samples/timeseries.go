package samples

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/atomredis/atomredis/engine/labels"
	"github.com/atomredis/atomredis/engine/timeseries"
)

// unheard ignores all compactions.
type unheard struct{}

func (unheard) Close(*timeseries.Rule, timeseries.Sample)                   {}
func (unheard) Replace(*timeseries.Rule, int64, int64, []timeseries.Sample) {}
func (unheard) Newest(*timeseries.Rule) (last timeseries.Sample, ok bool)   { return last, false }

var series = Type{
	Name: "TSDB-TYPE",
	Values: func() map[string]any {
		filled := func(n int, settings timeseries.Settings, rules ...timeseries.Aggregator) *timeseries.Series {
			s := timeseries.New(settings)
			s.SetLabels([]labels.Label{{Name: "kind", Value: "sample"}, {Name: "n", Value: fmt.Sprint(n)}})
			for _, a := range rules {
				s.AddRule("of "+a.String(), a, 7, 3)
			}
			for i := range n {
				x := timeseries.Sample{Time: int64(i*i + 5), Value: float64(i) / 3}
				s.Add(x, timeseries.Last)
				s.Advance(x, unheard{})
			}
			return s
		}
		compaction := filled(3, timeseries.Settings{ChunkSize: 48})
		compaction.SetSource("another")
		return map[string]any{
			"empty": filled(0, timeseries.Settings{ChunkSize: 4096}), "small": filled(3, timeseries.Settings{ChunkSize: 4096}),
			"one chunk":   filled(200, timeseries.Settings{ChunkSize: 4096, Retention: 1e12, IgnoreTime: 1}),
			"large":       filled(many, timeseries.Settings{ChunkSize: 64, Policy: timeseries.Sum}),
			"large plain": filled(many, timeseries.Settings{ChunkSize: 64, Plain: true, IgnoreValue: 1.5}),
			"rules":       filled(3, timeseries.Settings{ChunkSize: 64}, timeseries.TWA, timeseries.CountNaN),
			"large rules": filled(many, timeseries.Settings{ChunkSize: 64}, timeseries.Avg, timeseries.CountAll),
			"compaction":  compaction,
		}
	},
	New: func() any { return timeseries.New(timeseries.Settings{ChunkSize: 64}) },
	Change: func(v any, rnd *rand.Rand, _ int64) any {
		s := v.(*timeseries.Series)
		last, _ := s.Newest()
		for range rnd.IntN(10) {
			x := timeseries.Sample{Time: last.Time + 1 + int64(rnd.IntN(1000)), Value: rnd.NormFloat64()}
			if s.Add(x, timeseries.Last).Changed() {
				s.Advance(x, unheard{})
			}
			last = x
		}
		switch from := rnd.Int64N(last.Time + 1); rnd.IntN(4) {
		case 0:
			if s.Add(timeseries.Sample{Time: from, Value: math.NaN()}, timeseries.Last) == timeseries.Inserted {
				s.Repair(from, from, last.Time, unheard{})
			}
		case 1:
			to := from + int64(rnd.IntN(1000))
			s.Delete(from, to)
			s.Repair(from, to, last.Time, unheard{})
		case 2:
			s.SetLabels([]labels.Label{{Name: "changed", Value: string(number(rnd.IntN(10)))}})
		}
		return s
	},
	Empty:    func(any) bool { return false },
	describe: func(v any) []string { return stored(v.(*timeseries.Series)) },
	copied:   func(v any) any { return v.(*timeseries.Series).Clone() }, // without rules
}
