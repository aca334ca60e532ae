package command

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeyRangeIsThatOfRedis(t *testing.T) {
	for specs, want := range map[string][3]int{
		"":                                    {0, 0, 0},
		"i1+r0/1/0[RO]":                       {1, 1, 1},
		"i1+r-1/2/0[OW]":                      {1, -1, 2},
		"i1+r-2/1/0[RW]":                      {1, -2, 1},
		"i1+r0/1/0[RW] i2+r0/1/0[RW]":         {1, 2, 1},
		"i1+r0/1/0[OW] i2+r-1/1/0[RO]":        {1, -1, 1},
		"i1+r0/1/0[OW] i2+n0/1/1[RO]":         {1, 1, 1},
		"i2+n0/1/1[RW]":                       {0, 0, 0},
		"kw:STREAMS@1+r-1/1/2[RO]":            {0, 0, 0},
		"i1+r0/1/0[RO] i4+r0/1/0[RO]":         {1, 1, 1},
		"i1+r0/1/0[RO] kw:STORE@1+r0/1/0[OW]": {1, 1, 1},
	} {
		first, last, step := (&Command{Keys: Keys(specs)}).KeyRange()
		require.Equal(t, want, [3]int{first, last, step}, specs)
	}
}
