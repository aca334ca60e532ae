package samples

import (
	"fmt"
	"math/rand/v2"

	"github.com/atomredis/atomredis/engine/bloom"
)

// stored returns how a sketch is stored, in words that a test can compare.
func stored(sketch interface{ AppendBlob(dst []byte) []byte }) []string {
	return []string{fmt.Sprintf("%x", sketch.AppendBlob(nil))}
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
