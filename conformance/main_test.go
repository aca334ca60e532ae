package conformance

import (
	"testing"

	"go.uber.org/goleak"

	_ "github.com/atomredis/atomredis/internal/durable" // storage and groups
)

// TestMain checks that no test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
