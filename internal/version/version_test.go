package version

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheNumberIsThatOfTheVersion(t *testing.T) {
	require.Equal(t, Redis, fmt.Sprintf("%d.%d.%d", RedisNumber>>16, RedisNumber>>8&0xff, RedisNumber&0xff))
}
