package chaos

import (
	"log/slog"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// Nothing that a group has acknowledged is lost, and nothing old is read, whatever breaks. CHAOS_SEEDS says how many
// runs there are, CHAOS_SEED the first of them.
func TestAGroupIsLinearizable(t *testing.T) {
	first, seeds := number("CHAOS_SEED", 1), number("CHAOS_SEEDS", 3)
	if testing.Short() {
		seeds = min(seeds, 1)
	}
	for seed := first; seed < first+seeds; seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			log := slog.New(slog.DiscardHandler)
			if os.Getenv("CHAOS_LOG") != "" {
				log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
			}
			var settings []string
			if seed%4 == 0 {
				settings = []string{"replicated-reads=quorum"}
			}
			r, err := Run(Options{Settings: settings, Seed: uint64(seed), Nodes: 3, Clients: 4, Keys: 50, Faults: 8,
				Timeout: 100 * time.Millisecond, Log: log})
			require.NoError(t, err)
			t.Logf("%+v", r)
			require.Greater(t, r.Acknowledged, 100)
			require.Equal(t, porcupine.Ok, r.Linearizable)
		})
	}
}

func number(name string, initial int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return initial
}
