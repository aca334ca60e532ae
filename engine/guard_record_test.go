package engine

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// keptJournal keeps the slices of long records.
type keptJournal struct{ long [][]byte }

func (j *keptJournal) Append(_ int64, commands []byte) {
	if len(commands) > maxKeptRecord {
		j.long = append(j.long, commands)
	}
}

func TestAGuardLeavesLongRecordsToTheJournal(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	j := new(keptJournal)
	ks.EndReplay(j)
	value := bytes.Repeat([]byte("x"), 100*maxKeptRecord)
	for range 3 {
		under(ks, func(g *Guard) { g.Log(0, [][]byte{[]byte("SET"), []byte("k"), value}) })
		under(ks, func(g *Guard) { g.Log(0, [][]byte{[]byte("DEL"), []byte("k")}) })
	}
	require.Len(t, j.long, 3)
	for _, b := range j.long {
		require.True(t, bytes.HasPrefix(b, []byte("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$6553600\r\nxxx")))
		require.Less(t, cap(b), len(value)+maxKeptRecord, "no room for what does not come")
	}
}
