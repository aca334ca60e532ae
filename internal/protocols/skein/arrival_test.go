package skein_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/protocols/skein"
	"github.com/atomredis/atomredis/internal/testing/servertest"
)

// Leases of applications that another shard has sent end without a command on them. Containers that end with a client stay.
func TestLeasesThatArriveEnd(t *testing.T) {
	b := servertest.NewStepped(t)
	defer b.Finish()
	for _, line := range []string{"SKEIN.CONTAINER RUN a w TTL 5000", "SKEIN.CONTAINER RUN a w SESSION",
		"COPY skein:{a}:containers skein:{b}:containers", "COPY skein:{a}:leases skein:{b}:leases",
		"COPY skein:{a}:services skein:{b}:services"} {
		require.NotContains(t, b.Step(line), "-ERR", line)
	}
	state := func(container, want string) {
		require.Contains(t, b.Step("HGET skein:{b}:containers "+container), want)
	}
	state("w_0", "RUNNING")
	b.Pass(10_000)
	state("w_0", "RUNNING") // nothing has looked
	skein.Of(b.Server).KeysArrived()
	b.Pass(1000)
	state("w_0", "The lease has expired.")
	state("w_1", "RUNNING")
}
