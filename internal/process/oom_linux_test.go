package process

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/config"
)

func TestAdjustmentsStayWithinWhatTheKernelTakes(t *testing.T) {
	for _, c := range []struct {
		how                   config.OOMScore
		value, original, want int
	}{
		{config.OOMScoreNo, 200, 5, 5},
		{config.OOMScoreYes, 200, 5, 205},
		{config.OOMScoreRelative, 800, 500, 1000},
		{config.OOMScoreRelative, -800, -500, -1000},
		{config.OOMScoreAbsolute, 800, 500, 800},
	} {
		require.Equal(t, c.want, adjustment(c.how, c.value, c.original), c)
	}
}
