package spiderq_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/protocols/spiderq"
	"github.com/atomredis/atomredis/internal/testing/servertest"
)

func TestTranscripts(t *testing.T) { servertest.Transcripts(t, "spiderq") }

// Keys of another shard are lent when they arrive. They come back without a command on their queue, but not early, as after
// a restart.
func TestLentKeysThatArriveComeDue(t *testing.T) {
	b := servertest.NewStepped(t, "spiderq-restart", "requeue")
	defer b.Finish()
	for _, line := range []string{"SPIDERQ.ADD q k v", "SPIDERQ.LEND q 5000 POLL", "COPY spiderq:{q} spiderq:{r}",
		"COPY spiderq:{q}:lent spiderq:{r}:lent", "COPY spiderq:{q}:loans spiderq:{r}:loans",
		"COPY spiderq:{q}:serial spiderq:{r}:serial"} {
		require.NotContains(t, b.Step(line), "-ERR", line)
	}
	lent := func(want string) { require.Equal(t, want, b.Step("ZCARD spiderq:{r}:lent")) }
	lent(":1\r\n")
	b.Pass(10_000)
	lent(":1\r\n") // nothing has looked
	for _, line := range []string{"SPIDERQ.ADD s k v", "SPIDERQ.LEND s 5000 POLL"} {
		require.NotContains(t, b.Step(line), "-ERR", line)
	}
	spiderq.Of(b.Server).KeysArrived()
	b.Pass(1000)
	lent(":0\r\n")
	require.Equal(t, ":1\r\n", b.Step("ZCARD spiderq:{s}:lent"))
}
