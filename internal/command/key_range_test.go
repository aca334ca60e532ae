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

// Only the ASCII letters of a keyword have two cases: the long s, U+017F, is no S.
func TestKeywordsFoldASCIIOnly(t *testing.T) {
	cmd := &Command{Keys: Keys("kw:STREAMS@1+r-1/1/2[RO]")}
	keyAfter := func(word string) (keys []int) {
		cmd.Keys[0].positions([][]byte{[]byte("xread"), []byte(word), []byte("k"), []byte("0")}, func(i int) bool {
			keys = append(keys, i)
			return true
		})
		return keys
	}
	require.Equal(t, []int{2}, keyAfter("StreamS"))
	require.Empty(t, keyAfter("\u017ftreams"))
}
