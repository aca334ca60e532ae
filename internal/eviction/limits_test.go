package eviction

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/config"
)

func TestThePercentageOfMaxmemoryIsTheClients(t *testing.T) {
	for _, c := range []struct {
		memory, clients int
		want            int64
	}{{0, 0, 0}, {0, -5, 0}, {100 << 20, -5, 5 << 20}, {1 << 20, -5, minClientLimit}, {0, 1, minClientLimit},
		{0, 1 << 30, 1 << 30}} {
		require.Equal(t, c.want, clientLimit(&config.MemorySettings{Max: c.memory, MaxClients: c.clients}))
	}
}

func TestTenacityIsATimeLimit(t *testing.T) {
	for tenacity, want := range map[int]time.Duration{0: 0, 5: 250 * time.Microsecond, 10: 500 * time.Microsecond,
		11: 575 * time.Microsecond, 100: math.MaxInt64} {
		require.Equal(t, want, time.Duration(timeLimit(tenacity)), tenacity)
	}
}

// With tiered values the journal stays short compared to maxmemory.
func TestCheckpointsComeBeforeMemoryIsFull(t *testing.T) {
	tier := engine.Eviction{Policy: engine.Tier}
	for _, c := range []struct {
		memory config.MemorySettings
		want   int64
	}{
		{config.MemorySettings{Max: 1 << 20}, 1 << 20},
		{config.MemorySettings{Max: 1 << 20, Eviction: tier}, 1 << 17},
		{config.MemorySettings{Max: 1 << 30, Eviction: tier}, 1 << 20},
		{config.MemorySettings{Eviction: tier}, 1 << 20},
	} {
		set := config.Settings{Memory: c.memory, Persistence: config.PersistenceSettings{CheckpointSize: 1 << 20}}
		require.Equal(t, c.want, CheckpointSize(&set))
	}
}
