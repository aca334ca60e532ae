package eviction

import (
	"math"
	"time"

	"github.com/atomredis/atomredis/internal/config"
)

// timeLimit returns how long one command may evict keys, in ns.
func timeLimit(tenacity int) int64 {
	const least = 500 * time.Microsecond
	switch {
	case tenacity >= 100:
		return math.MaxInt64
	case tenacity > 10:
		return int64(float64(least) * math.Pow(1.15, float64(tenacity-10)))
	}
	return int64(least) * int64(tenacity) / 10
}

// minClientLimit is the smallest effective maxmemory-clients in bytes: below it, no client could send the command
// that raises it.
const minClientLimit = 128 << 10

// clientLimit returns maxmemory-clients in bytes.
func clientLimit(memory *config.MemorySettings) int64 {
	limit := int64(memory.MaxClients)
	switch {
	case limit == 0:
		return 0
	case limit < 0 && memory.Max == 0:
		return 0
	case limit < 0:
		limit = int64(float64(memory.Max) * float64(-limit) / 100)
	}
	return max(limit, minClientLimit)
}

// unstoredPart is the fraction of maxmemory, as a divisor, that may be journalled before a checkpoint stores it.
const unstoredPart = 8

// CheckpointSize returns the length of the journal in bytes at which a checkpoint begins: values can leave memory
// only once they are stored.
func CheckpointSize(set *config.Settings) int64 {
	size := int64(set.Persistence.CheckpointSize)
	if set.Memory.Max != 0 && set.Memory.Eviction.Tiers() {
		size = min(size, int64(set.Memory.Max)/unstoredPart)
	}
	return size
}
