package perper_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/protocols/perper"
	"github.com/atomredis/atomredis/internal/testing/servertest"
)

func TestFinishedExecutionsExpireIfTheyMay(t *testing.T) {
	b := servertest.NewStepped(t)
	defer b.Finish()
	b.Open("a", "addr")
	steps := func(steps ...[]string) {
		for _, s := range steps {
			require.Equal(t, s[0], servertest.OnOneLine(b.Send("a", s[1:]...)), s)
		}
	}
	steps([]string{"early", "PERPER.CALL", "agent", "i", "d", "ID", "early"}, []string{":1", "PERPER.FINISH", "early"})
	b.Pass(1e9)
	steps(
		[]string{":-1", "PERPER.TTL", "executions", "early"}, // by default they stay
		[]string{"+OK", "CONFIG", "SET", "perper-finished-expiry", "50"},
		[]string{"-ERR CONFIG SET failed (possibly related to argument 'perper-finished-expiry') - " +
			"must be a number of milliseconds, 0 for none", "CONFIG", "SET", "perper-finished-expiry", "-1"},
		[]string{"x", "PERPER.CALL", "agent", "i", "d", "ID", "x"},
		[]string{"y", "PERPER.CALL", "agent", "i", "d", "ID", "y"},
		[]string{":-1", "PERPER.TTL", "executions", "x"},
		[]string{":1", "PERPER.FINISH", "x", "RESULTS", "7"},
		[]string{":50", "PERPER.TTL", "executions", "x"},
		[]string{":1", "PERPER.WAIT", "x"},
	)
	b.Pass(49)
	steps([]string{":1", "PERPER.WAIT", "x"})
	b.Pass(1)
	steps(
		[]string{":0", "PERPER.WAIT", "x"},
		[]string{":2", "PERPER.LEN", "executions"},
		[]string{":-1", "PERPER.TTL", "executions", "y"},
		[]string{":-1", "PERPER.TTL", "executions", "early"},
	)
}

// Entries of caches that another shard has sent expire without a command on them.
func TestEntriesThatArriveExpire(t *testing.T) {
	b := servertest.NewStepped(t)
	defer b.Finish()
	for _, line := range []string{"PERPER.CREATE a", "PERPER.PUT a k v EXPIRY 5000 -2 -2", "PERPER.CREATE b", "COPY perper:{a} perper:{b}",
		"COPY perper:{a}:expires perper:{b}:expires"} {
		require.NotContains(t, b.Step(line), "-ERR", line)
	}
	b.Pass(10_000)
	require.Equal(t, ":1\r\n", b.Step("PERPER.LEN b")) // nothing has looked
	perper.Of(b.Server).KeysArrived()
	b.Pass(1000)
	require.Equal(t, ":0\r\n", b.Step("PERPER.LEN b"))
}
