package pressure

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBackoff(t *testing.T) {
	for _, c := range []struct{ backoff, attempts, want int64 }{
		{10, 1, 10}, {10, 2, 20}, {10, 4, 80}, {10, 0, 10}, {1, 27, 1 << 26}, {1, 28, maxBackoff}, {maxBackoff, 1, maxBackoff},
		{0, math.MaxInt64, 0}, {-5, 7, 0}, {math.MaxInt64, math.MaxInt64, maxBackoff}, {1, math.MaxInt64, maxBackoff},
	} {
		require.Equal(t, c.want, backoffAfter(c.backoff, c.attempts), "%+v", c)
	}
}

func TestNumbersOfOtherClientsAreLimited(t *testing.T) {
	h := parseHeld([]byte("p99 9223372036854775807 9223372036854775807 9223372036854775807 1 rm"))
	require.Equal(t, heldMessage{attributes{maxAttempts, maxAttempts, maxBackoff, maxPriority}, []byte("r"), []byte("m")}, h)
	for _, invalid := range []string{"p 1 2 3 1 rm", "p-1 1 2 3 1 rm", "px 1 2 3 1 rm", "p5", "p5 1 2"} {
		require.Equal(t, heldMessage{message: []byte(invalid)}, parseHeld([]byte(invalid)))
	}
	for score, want := range map[float64]int64{math.Inf(1): maxTime, math.Inf(-1): 0, 1e300: maxTime, -5: 0, 7.9: 7} {
		require.Equal(t, want, timeOf(score))
	}
	require.Zero(t, timeOf(math.NaN()))
}

func TestIDsSortAsText(t *testing.T) {
	var r reservations
	r.last.n = firstNumber - 1
	require.Less(t, string(r.newID(5)), string(r.newID(5)))
}

func TestZonesOfSchedulesAreLoaded(t *testing.T) {
	zone, err := loadZone([]byte("CRON_TZ=Nowhere/Atall 0 0 * * *"))
	require.Equal(t, "Nowhere/Atall", zone)
	require.Error(t, err)
	for _, expression := range []string{"CRON_TZ=Europe/Sofia 0 0 * * *", "0 0 * * *", "@daily", "odd"} {
		_, err := loadZone([]byte(expression))
		require.NoError(t, err)
	}
}
