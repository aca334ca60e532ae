package server

import (
	"fmt"

	"github.com/atomredis/atomredis/engine/bloom"
)

func dumpSketch(sketch interface{ AppendBlob(dst []byte) []byte }) []string {
	return []string{fmt.Sprintf("%x", sketch.AppendBlob(nil))}
}

func init() {
	filter := bloom.New(bloom.Options{Rate: 0.5, Capacity: 100, Expansion: 2})
	_, _ = filter.Add([]byte("a"))
	bits, _ := filter.Chunk(1)
	journalForms = append(journalForms, []struct {
		name  string
		steps []string
		want  []string
	}{
		{"bloom filter", []string{"BF.RESERVE f 0.01 3", "BF.ADD f a", "BF.MADD f b c d e", "BF.INSERT f ITEMS f g",
			"BF.RESERVE n 0.001 10 NONSCALING", "BF.RESERVE e 0.001 10 EXPANSION 4", "BF.ADD f a", "BF.ADD f z"},
			[]string{"BF.ADD f z"}},
		{"bloom filter by directives", []string{"CONFIG SET bf-initial-size 7 bf-error-rate 0.2 bf-expansion-factor 3",
			"BF.INSERT g CAPACITY 9 ITEMS x", "BF.RESERVE h 0.1 5", "BF.MADD i a b", "BF.ADD f a"},
			[]string{"BF.RESERVE f 0.2 7 EXPANSION 3", "BF.ADD f a"}},
		{"loaded bloom filter", []string{"BF.LOADCHUNK f 1 " + string(filter.Header()), "BF.LOADCHUNK f 2 " + string(bits),
			"BF.ADD f a", "BF.ADD f b"}, nil},
	}...)
}
