package chaos

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// Nothing that a group has acknowledged is lost, and nothing old is read, whatever breaks. CHAOS_SEEDS says how many
// runs there are, CHAOS_SEED the first of them, CHAOS_LOG in which directory the logs of those that fail are left.
func TestAGroupIsLinearizable(t *testing.T) {
	first, seeds := number("CHAOS_SEED", 1), number("CHAOS_SEEDS", 6)
	if testing.Short() {
		seeds = min(seeds, 1)
	}
	for seed := first; seed < first+seeds; seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			var settings []string
			if seed%4 == 0 {
				settings = []string{"replicated-reads=quorum"}
			}
			var r Report
			log := logOf(t, seed)
			synctest.Test(t, func(t *testing.T) {
				var err error
				r, err = Run(Options{Settings: settings, Seed: uint64(seed), Nodes: 3, Clients: 4, Keys: 20, Faults: 8,
					Timeout: 100 * time.Millisecond, Log: log})
				require.NoError(t, err)
			})
			t.Logf("%d operations, %d of them unknown; %v", r.Operations, r.Unknown, r.Faults)
			require.Greater(t, r.Acknowledged, 100)
			require.Equal(t, porcupine.Ok, r.Check())
		})
	}
}

// logOf is where a run logs; what it has said is removed if it passes.
func logOf(t *testing.T, seed int) *slog.Logger {
	out := io.Discard
	if dir := os.Getenv("CHAOS_LOG"); dir != "" {
		file, err := os.Create(filepath.Join(dir, strconv.Itoa(seed)))
		require.NoError(t, err)
		t.Cleanup(func() {
			file.Close()
			if !t.Failed() {
				os.Remove(file.Name())
			}
		})
		out = file
	}
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func number(name string, initial int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return initial
}
