package raftlog

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

func TestRecordsAreWhatTheyWere(t *testing.T) {
	at := time.Date(2026, 11, 27, 1, 2, 3, 4, time.UTC)
	for _, e := range []raft.Log{
		{Index: 1, Term: 1},
		{Index: 1 << 40, Term: 300, Type: raft.LogConfiguration, Data: []byte("data"), AppendedAt: at},
		{Index: 7, Term: 2, Data: []byte("d"), Extensions: []byte("extensions")},
		{Index: 7, Term: 2, Extensions: []byte("e"), AppendedAt: at},
	} {
		record := append(appendEntry(nil, &e, 5), e.Data...)
		got, commit, err := decodeEntry(record, stamp(&e))
		require.NoError(t, err)
		require.Equal(t, e, got)
		require.Equal(t, uint64(5), commit)
	}
	s := state{commit: 300, values: map[string][]byte{"a": []byte("1"), "": []byte("x"), "empty": nil}}
	got, err := decodeState(appendState(nil, s))
	require.NoError(t, err)
	require.Equal(t, s, got)
	key, value, err := decodeValue(appendValue(nil, []byte("key"), []byte("value")))
	require.NoError(t, err)
	require.Equal(t, "key=value", string(key)+"="+string(value))
	index, err := decodeCut(appendCut(nil, 1000))
	require.NoError(t, err)
	require.Equal(t, uint64(1000), index)
}

func TestMalformedRecordsAreErrors(t *testing.T) {
	for _, record := range []string{
		"", "00", "05", // kinds
		"01", "0100", "010001", "01000101", "0100010100", "010001010001", "01000001000000", "0100ffffffffffffffffffff01010000",
		"02", "0201", "0203ffff", // values
		"03", "030001", "03000161", "0300016103", // states
		"04", "0480", "040100", // cuts
	} {
		b, err := hex.DecodeString(record)
		require.NoError(t, err)
		l := Log{state: state{values: map[string][]byte{}}}
		require.ErrorIs(t, l.replay(0, 0, b), errRecord, record)
	}
}

func FuzzReplay(f *testing.F) {
	e := raft.Log{Index: 3, Term: 2, Extensions: []byte("extensions")}
	f.Add(append(appendEntry(nil, &e, 5), "data"...), int64(1))
	f.Add(appendValue(nil, []byte("key"), []byte("value")), int64(0))
	f.Add(appendState(nil, state{commit: 3, values: map[string][]byte{"a": []byte("b")}}), int64(0))
	f.Add(appendCut(nil, 3), int64(0))
	f.Fuzz(func(t *testing.T, record []byte, now int64) {
		l := Log{state: state{values: map[string][]byte{}}}
		if l.replay(7, now, record) != nil || record[0] != kindEntry {
			return
		}
		e, commit, err := decodeEntry(record, now)
		require.NoError(t, err)
		again, sameCommit, err := decodeEntry(append(appendEntry(nil, &e, commit), e.Data...), stamp(&e))
		require.NoError(t, err)
		require.Equal(t, commit, sameCommit)
		require.Equal(t, e, again)
	})
}
