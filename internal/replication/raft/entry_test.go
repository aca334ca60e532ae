package raft

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEntries(t *testing.T) {
	e := appendRecord(appendRecord(appendHeader(nil, 7), 1, []byte("one")), 2, nil)
	term, records, err := splitEntry(e)
	require.NoError(t, err)
	require.Equal(t, uint64(7), term)
	var got []string
	require.NoError(t, eachRecord(records, func(now int64, commands []byte) error {
		got = append(got, string(commands))
		return nil
	}))
	require.Equal(t, []string{"one", ""}, got)
	for n := range len(records) {
		err := eachRecord(records[:n], func(int64, []byte) error { return nil })
		if n == 0 || n == recordHeader+len("one") {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, errEntry, n)
		}
	}
	for n := range entryHeader {
		_, _, err = splitEntry(e[:n])
		require.ErrorIs(t, err, errEntry)
	}
	e[0] = entryLevel + 1
	_, _, err = splitEntry(e)
	require.ErrorContains(t, err, "it is of level 2, and this server knows up to level 1: a newer version is needed")
}
