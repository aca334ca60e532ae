package search_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/servertest"
)

// BenchmarkSmallQueries runs queries that are executed in place.
func BenchmarkSmallQueries(b *testing.B) {
	s := servertest.NewStepped(b)
	defer s.Finish()
	require.Equal(b, "+OK\r\n", s.Step("FT.CREATE x PREFIX 1 d: SCHEMA t TEXT g TAG n NUMERIC SORTABLE"))
	for i := range 50_000 {
		s.Send("0", "HSET", "d:"+strconv.Itoa(i), "t", "common rare"+strconv.Itoa(i/32), "g", "tag"+strconv.Itoa(i%500), "n", strconv.Itoa(i))
	}
	for _, line := range []string{"FT.SEARCH x rare77", "FT.SEARCH x rare77 NOCONTENT", "FT.SEARCH x @g:{tag7} SORTBY n NOCONTENT",
		"FT.AGGREGATE x rare77 GROUPBY 1 @n", "FT.SEARCH x none"} {
		b.Run(line, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if s.Step(line) == "" {
					b.Fatal("it waits")
				}
			}
		})
	}
}
