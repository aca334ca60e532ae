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
		require.Equal(t, c.want, clientLimit(&config.Settings{MaxMemory: c.memory, MaxMemoryClients: c.clients}))
	}
}

func TestTenacityIsATimeLimit(t *testing.T) {
	for tenacity, want := range map[int]time.Duration{0: 0, 5: 250 * time.Microsecond, 10: 500 * time.Microsecond,
		11: 575 * time.Microsecond, 100: math.MaxInt64} {
		require.Equal(t, want, time.Duration(timeLimit(tenacity)), tenacity)
	}
}

// With tiered values the journal stays short against maxmemory.
func TestCheckpointsComeBeforeMemoryIsFull(t *testing.T) {
	tier := engine.Eviction{Policy: engine.Tier}
	for _, c := range []struct {
		set  config.Settings
		want int64
	}{
		{config.Settings{CheckpointSize: 1 << 20, MaxMemory: 1 << 20}, 1 << 20},
		{config.Settings{CheckpointSize: 1 << 20, MaxMemory: 1 << 20, Eviction: tier}, 1 << 17},
		{config.Settings{CheckpointSize: 1 << 20, MaxMemory: 1 << 30, Eviction: tier}, 1 << 20},
		{config.Settings{CheckpointSize: 1 << 20, Eviction: tier}, 1 << 20},
	} {
		require.Equal(t, c.want, CheckpointSize(&c.set))
	}
}
