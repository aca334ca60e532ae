package samples

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/engine/pathhash"
)

var pathHash = Type{
	Name: "pathhash",
	Values: func() map[string]any {
		filled := func(n int, path func(i int) string) *pathhash.Tree {
			t := pathhash.New()
			for i := range n {
				t.Set([]byte(path(i)), []byte("f"), number(i))
				t.Set([]byte(path(i)), number(i), []byte("v"))
			}
			return t
		}
		fields := filled(2, func(i int) string { return fmt.Sprint("/", i) })
		for i := range 3 * many {
			fields.Set(nil, number(i), []byte(strings.Repeat("value", i%9)))
		}
		return map[string]any{
			"small": filled(3, func(i int) string { return "/path"[:i+2] }),
			"large": filled(3*many, func(i int) string { return fmt.Sprintf("/%d/%d", i%7, i) }),
			"deep":  filled(many, func(i int) string { return strings.Repeat("a", i) }), "fields": fields,
		}
	},
	New: func() any { return pathhash.New() },
	Change: func(v any, rnd *rand.Rand, _ int64) any {
		t := v.(*pathhash.Tree)
		path := fmt.Appendf(nil, "/%d/%d", rnd.IntN(7), rnd.IntN(3*many))
		switch rnd.IntN(6) {
		case 0:
			t.Delete(path)
		case 1:
			t.DeleteField(path, []byte("f"))
		case 2:
			t.DeletePrefix(path)
		default:
			t.Set(path, word(rnd, 3), word(rnd, 1000))
		}
		return t
	},
	Empty: func(v any) bool { return v.(*pathhash.Tree).Len() == 0 },
	describe: func(v any) (words []string) {
		for path, h := range v.(*pathhash.Tree).Ascend(nil) {
			var fields []string
			for field, value := range h.All() {
				fields = append(fields, fmt.Sprintf("%q=%q", field, value))
			}
			slices.Sort(fields)
			words = append(words, fmt.Sprintf("%q %s", path, strings.Join(fields, ",")))
		}
		return words
	},
}
