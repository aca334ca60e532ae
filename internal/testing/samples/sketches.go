package samples

import (
	"fmt"
	"math/rand/v2"

	"github.com/atomredis/atomredis/engine/bloom"
	"github.com/atomredis/atomredis/engine/countmin"
	"github.com/atomredis/atomredis/engine/cuckoo"
	"github.com/atomredis/atomredis/engine/tdigest"
	"github.com/atomredis/atomredis/engine/topk"
)

// stored returns the stored form of a sketch.
func stored(sketch interface{ AppendBlob(dst []byte) []byte }) []string {
	return []string{quoted(sketch.AppendBlob(nil))}
}

var bloomFilter = Type{
	Name: "MBbloom--",
	Values: func() map[string]any {
		filter := func(o bloom.Options, items int) *bloom.Filter {
			f := bloom.New(o)
			for i := range items {
				_, _ = f.Add(number(i))
			}
			return f
		}
		return map[string]any{
			"empty": filter(bloom.Options{Rate: 0.01, Capacity: 100, Expansion: 2}, 0),
			"small": filter(bloom.Options{Rate: 0.001, Capacity: 10}, 5),
			"grown": filter(bloom.Options{Rate: 0.01, Capacity: 3, Expansion: 2}, many),
			"large": filter(bloom.Options{Rate: 0.01, Capacity: 50_000, Expansion: 1}, many),
		}
	},
	New: func() any { return bloom.New(bloom.Options{Rate: 0.01, Capacity: 2000, Expansion: 2}) },
	Change: func(v any, rnd *rand.Rand, _ int64) any {
		for range rnd.IntN(5) {
			_, _ = v.(*bloom.Filter).Add(word(rnd, 100_000))
		}
		return v
	},
	Empty:    func(any) bool { return false },
	describe: func(v any) []string { return stored(v.(*bloom.Filter)) },
}

var cuckooFilter = Type{
	Name: "MBbloomCF",
	Values: func() map[string]any {
		filter := func(capacity uint64, expansion uint32, items int) *cuckoo.Filter {
			f := cuckoo.New(cuckoo.Options{Capacity: capacity, BucketSize: 2, Iterations: 20, Expansion: expansion})
			for i := range items {
				_ = f.Add(number(i), 32)
			}
			f.Delete(number(0))
			return f
		}
		return map[string]any{
			"empty": filter(1000, 1, 0), "small": filter(10, 0, 5), "grown": filter(16, 2, many), "large": filter(50_000, 1, many),
		}
	},
	New: func() any {
		return cuckoo.New(cuckoo.Options{Capacity: 10_000, BucketSize: 4, Iterations: 10, Expansion: 1})
	},
	Change: func(v any, rnd *rand.Rand, _ int64) any {
		f := v.(*cuckoo.Filter)
		for range rnd.IntN(5) {
			_ = f.Add(word(rnd, 10_000), 32)
		}
		switch rnd.IntN(4) {
		case 0:
			f.Delete(word(rnd, 10_000))
		case 1:
			f.Compact()
		}
		return f
	},
	Empty:    func(any) bool { return false },
	describe: func(v any) []string { return stored(v.(*cuckoo.Filter)) },
}

var countMin = Type{
	Name: "CMSk-TYPE",
	Values: func() map[string]any {
		sketch := func(width, depth, cell uint64, items int) *countmin.Sketch {
			s := countmin.New(width, depth, cell)
			for i := range items {
				_, _ = s.Add(number(i), int64(i))
			}
			return s
		}
		return map[string]any{"empty": sketch(100, 5, 4, 0), "small": sketch(20, 3, 4, 5), "large": sketch(10_000, 5, 4, many),
			"small counters": sketch(20, 3, 1, 5), "large counters": sketch(10_000, 5, 8, many)}
	},
	New: func() any { return countmin.New(3000, 2, 2) },
	Change: func(v any, rnd *rand.Rand, _ int64) any {
		s := v.(*countmin.Sketch)
		_, _ = s.Add(word(rnd, 1000), rnd.Int64N(1000)-400)
		if rnd.IntN(10) == 0 {
			_ = s.SetSum([]countmin.Weighted{{Sketch: s, Weight: 2}})
		}
		return s
	},
	Empty:    func(any) bool { return false },
	describe: func(v any) []string { return stored(v.(*countmin.Sketch)) },
}

var topKList = Type{
	Name: "TopK-TYPE",
	Values: func() map[string]any {
		list := func(k, width uint64, items int) *topk.List {
			l := topk.New(k, width, 5, 0.9)
			for i := range items {
				l.Add(number(i), uint32(i))
			}
			return l
		}
		return map[string]any{
			"empty": list(10, 8, 0), "small": list(3, 50, 20), "large table": list(5, 10_000, many), "long": list(200, 20, many),
		}
	},
	New: func() any { return topk.New(100, 500, 4, 0.9) },
	Change: func(v any, rnd *rand.Rand, _ int64) any {
		for range rnd.IntN(5) {
			v.(*topk.List).Add(word(rnd, 1000), rnd.Uint32N(10))
		}
		return v
	},
	Empty: func(any) bool { return false },
	describe: func(v any) []string {
		l := v.(*topk.List)
		d := []string{fmt.Sprint(l.K(), l.Width(), l.Depth(), l.Decay(), l.Random()), quoted(l.Table().Append(nil, 0, l.Table().Size()))}
		for i := range int(l.K()) {
			if item, count, ok := l.Place(i); ok {
				d = append(d, fmt.Sprint(i, quoted([]byte(item)), count))
			}
		}
		return d
	},
}

var tDigest = Type{
	Name: "TDIS-TYPE",
	Values: func() map[string]any {
		digest := func(compression, numbers int) *tdigest.Digest {
			d := tdigest.New(compression)
			for i := range numbers {
				d.Add(float64(i*i%1001) / 3)
			}
			return d
		}
		return map[string]any{"empty": digest(100, 0), "small": digest(100, 5), "merged": digest(20, many), "large": digest(1000, 4*many)}
	},
	New: func() any { return tdigest.New(50) },
	Change: func(v any, rnd *rand.Rand, _ int64) any {
		d := v.(*tdigest.Digest)
		for range rnd.IntN(40) {
			d.Add(rnd.NormFloat64())
		}
		if d.Quantile(0.5); rnd.IntN(50) == 0 {
			d.Reset()
		}
		return d
	},
	Empty: func(any) bool { return false },
	describe: func(v any) []string { // as merged, which a payload is
		d := v.(*tdigest.Digest)
		all := []string{fmt.Sprint(d.Compression(), d.Min(), d.Max())}
		compressions := d.Each(func(mean float64, weight int64) { all = append(all, fmt.Sprint(mean, weight)) })
		return append(all, fmt.Sprint(compressions))
	},
}
