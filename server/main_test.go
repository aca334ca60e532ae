package server

import (
	"testing"

	"go.uber.org/goleak"

	_ "github.com/atomredis/atomredis/internal/durable" // storage and groups
)

// TestMain checks that no test leaves a goroutine behind. A Pebble whose disk has failed in the middle of a change
// of its MANIFEST cannot be ended, only abandoned: its own goroutines are ignored.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/atomredis/atomredis/persist/store/lsm.(*fence).check"),
		goleak.IgnoreAnyFunction("github.com/cockroachdb/pebble/v2.(*cleanupManager).mainLoop"),
		goleak.IgnoreAnyFunction("github.com/cockroachdb/pebble/v2/internal/genericcache.(*shard[...]).releaseLoop"),
		goleak.IgnoreAnyFunction("github.com/cockroachdb/pebble/v2/record.(*LogWriter).flushLoop"))
}
