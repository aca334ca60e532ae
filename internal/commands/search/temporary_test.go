package search_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/server"
)

func TestTemporaryIndexesAreDroppedWithTheirDocuments(t *testing.T) {
	clock := engine.NewManualClock(time.UnixMilli(1e12))
	s := servertest.Start(t, server.Options{Clock: clock})
	c := s.Connect()
	seconds := map[string]int64{"day": 24 * 60 * 60, "used": 24 * 60 * 60, "max": math.MaxInt64 - 1, "zero": 0}
	for name, n := range seconds {
		require.Equal(t, "+OK", c.Line(fmt.Sprintf("FT.CREATE %s PREFIX 1 %s: TEMPORARY %d SCHEMA t TEXT", name, name, n)))
		require.Equal(t, "1", c.Line("HSET "+name+":1 t word"))
	}
	for range 25 {
		c.Line("FT.SEARCH used word")
		clock.Advance(time.Hour)
	}
	for name := range seconds {
		has := name != "day"
		require.Equal(t, has, !strings.HasPrefix(c.Line("FT.SEARCH "+name+" word"), "-"), name)
		require.Equal(t, has, c.Line("EXISTS "+name+":1") == "1", name)
	}
}
