package samples

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/atomredis/atomredis/engine/arrays"
)

var array = Type{
	Name: "array",
	Values: func() map[string]any {
		filled := func(n int, apart uint64, value string) *arrays.Array {
			a := arrays.New()
			for i := range n {
				a.Set(uint64(i)*apart, []byte(value+string(number(i))))
			}
			return a
		}
		cursor, ring := filled(3, 7, ""), arrays.New()
		cursor.Seek(arrays.MaxIndex + 1)
		for i := range 2 * many {
			ring.Ring(many, [][]byte{number(i)})
		}
		last := filled(2, arrays.MaxIndex, "")
		return map[string]any{
			"small": filled(3, 1, ""), "large": filled(10*many, 1, "v"), "sparse": filled(many, 1<<40, ""),
			"long values": filled(20, 50, strings.Repeat("long", 500)), "cursor": cursor, "ring": ring, "ends": last,
		}
	},
	New: func() any { return arrays.New() },
	Change: func(v any, rnd *rand.Rand, _ int64) any {
		a := v.(*arrays.Array)
		at := rnd.Uint64N(2000)
		switch rnd.IntN(8) {
		case 0:
			a.Set(at<<30, word(rnd, 1000))
		case 1:
			a.Set(at, []byte(strings.Repeat("changed", rnd.IntN(400))))
		case 2:
			a.DeleteRange(at, at+uint64(rnd.IntN(300)))
		case 3:
			a.Seek(at)
			a.Insert([][]byte{word(rnd, 1000), word(rnd, 1000)})
		case 4:
			if rnd.IntN(10) == 0 {
				a.Ring(1+at, [][]byte{word(rnd, 1000)})
			}
		default:
			a.Set(at, word(rnd, 1000))
		}
		return a
	},
	Empty: func(v any) bool { return v.(*arrays.Array).Count() == 0 },
	describe: func(v any) (words []string) {
		a := v.(*arrays.Array)
		a.Each(0, arrays.MaxIndex, func(index uint64, v []byte) bool {
			words = append(words, fmt.Sprintf("%d=%q", index, v))
			return true
		})
		return append(words, fmt.Sprintf("next %d", a.Next()))
	},
}
