package samples

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/atomredis/atomredis/engine/search/suggest"
)

var suggestions = Type{
	Name: "trietype0",
	Values: func() map[string]any {
		dict := func(items int) *suggest.Dict {
			d := suggest.New()
			for i := range items {
				d.Add([]byte("text "+strconv.Itoa(i)), float64(i%7+1)/2, false, bytes.Repeat([]byte{'p', 0}, i%3))
			}
			return d
		}
		return map[string]any{"small": dict(3), "large": dict(many)}
	},
	New: func() any { return suggest.New() },
	Change: func(v any, rnd *rand.Rand, _ int64) any {
		d := v.(*suggest.Dict)
		for range rnd.IntN(5) {
			if text := word(rnd, 1000); rnd.IntN(4) == 0 {
				d.Delete(text)
			} else {
				d.Add(text, rnd.Float64()+1, rnd.IntN(2) == 0, word(rnd, 10))
			}
		}
		return v
	},
	Empty: func(v any) bool { return v.(*suggest.Dict).Len() == 0 },
	describe: func(v any) (words []string) {
		v.(*suggest.Dict).Each(func(s suggest.Suggestion) bool {
			words = append(words, fmt.Sprintf("%q %v %q", s.Text, s.Score, s.Payload))
			return true
		})
		return words
	},
}
