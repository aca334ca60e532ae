package search_test

import (
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/server"
)

// A query by vector finds a document while it changes, whether its vector changes or not.
func TestVectorsOfDocumentsThatChange(t *testing.T) {
	for _, algorithm := range []string{"FLAT", "HNSW"} {
		s := servertest.Start(t, server.Options{}, "io-threads", "2")
		c := s.Connect()
		require.Equal(t, "+OK", c.Line("FT.CREATE x SCHEMA n NUMERIC v VECTOR "+algorithm+" 6 TYPE FLOAT32 DIM 2 DISTANCE_METRIC L2"))
		for i := range 300 {
			require.Equal(t, "2", c.Call("HSET", "d"+strconv.Itoa(i), "n", "0", "v", vector(float32(i), 1)))
		}
		stop := make(chan struct{})
		var writers sync.WaitGroup
		for w := range 2 {
			writer := s.Connect()
			writers.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					args := []string{"HSET", "d7", "n", strconv.Itoa(i)}
					if w == 1 {
						args = append(args, "v", vector(7, 1+float32(i%2)/8))
					}
					writer.Call(args...)
				}
			})
		}
		for range 2000 {
			got := c.Call("FT.SEARCH", "x", "*=>[KNN 1 @v $q]", "PARAMS", "2", "q", vector(7, 1), "NOCONTENT", "DIALECT", "2")
			require.Equal(t, `[1 "d7"]`, got)
		}
		close(stop)
		writers.Wait()
	}
}
