package resp

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// The caller is told of a command of very many arguments when all of it has arrived, and again if it is parsed once
// more.
func TestManyArgumentsAreTold(t *testing.T) {
	told := 0
	p := Parser{MaxBulk: 1 << 20, Many: func() { told++ }}
	command := func(n int) []byte {
		return append([]byte(fmt.Sprintf("*%d\r\n", n)), bytes.Repeat([]byte("$1\r\na\r\n"), n)...)
	}
	many := command(manyArgs)
	for size := 1000; size < len(many); size += 1000 {
		_, n, err := p.Next(many[:size], nil)
		require.NoError(t, err)
		require.Zero(t, n)
	}
	require.Zero(t, told)
	for i := range 2 {
		args, n, err := p.Next(many, nil)
		require.NoError(t, err)
		require.Len(t, args, manyArgs)
		require.Equal(t, len(many), n)
		require.Equal(t, i+1, told)
	}
	for _, other := range [][]byte{command(manyArgs - 1), append(command(2), many...)} {
		_, n, err := p.Next(other, nil)
		require.NoError(t, err)
		require.NotZero(t, n)
		require.Equal(t, 2, told)
	}
}
