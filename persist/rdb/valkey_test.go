package rdb

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/engine/pathhash"
)

// valkeyHash returns a hash in the form of Valkey 9: a field without a deadline, and one with.
func valkeyHash() []byte {
	var e Encoder
	e.length(2)
	for _, field := range []struct {
		name string
		at   int64
	}{{"stays", -1}, {"goes", 1_900_000_000_123}} {
		e.string([]byte(field.name))
		e.string([]byte("value of " + field.name))
		e.millis(field.at)
	}
	return e.buf
}

func requireValkeyHash(t *testing.T, v any) {
	h := v.(*hashes.Hash)
	require.Equal(t, 2, h.Len())
	for name, at := range map[string]int64{"stays": 0, "goes": 1_900_000_000_123} {
		value, ok := h.Get([]byte(name))
		require.True(t, ok)
		require.Equal(t, "value of "+name, string(value))
		deadline, _ := h.Deadline([]byte(name))
		require.Equal(t, at, deadline)
	}
}

// Path hashes have the type of Valkey 9.2. A path twice, a field twice, and a path without fields are errors.
func TestPathHashesOfValkeyAreRead(t *testing.T) {
	read := func(value string) (any, error) {
		payload := binary.LittleEndian.AppendUint16(append([]byte{typePathHash}, value...), OldestValkey)
		return Restore(append(payload, make([]byte, 8)...), &limits)
	}
	v, err := read("\x02\x00\x01\x01f\x01v\x03abc\x02\x01f\x02v1\x01g\x02v2")
	require.NoError(t, err)
	tree := v.(*pathhash.Tree)
	require.Equal(t, 2, tree.Len())
	value, ok := tree.Get([]byte("abc")).Get([]byte("g"))
	require.True(t, ok)
	require.Equal(t, "v2", string(value))
	for _, wrong := range []string{"\x00", "\x01\x01p\x00", "\x02\x01a\x01\x01f\x01x\x01a\x01\x01f\x01y", "\x01\x01p\x02\x01a\x01x\x01a\x01y"} {
		_, err := read(wrong)
		require.Error(t, err, "%q", wrong)
	}
}

func TestFilesOfValkeyAreRead(t *testing.T) {
	file := []byte("VALKEY080")
	file = append(append(file, opAux), "\x0avalkey-ver\x059.0.1"...)
	file = append(append(append(file, opSlotImport), "\x04task"...), 1, 3, 5)
	file = append(file, opSelectDB, 0, opResize, 1, 0, typeHashValkey)
	file = append(append(file, "\x01h"...), valkeyHash()...)
	file = append(file, opEOF)
	file = binary.LittleEndian.AppendUint64(file, checksum(0, file))
	require.True(t, IsFile(file[:MagicLength]))

	r := NewReader(bytes.NewReader(file), limits)
	item, err := r.Next()
	require.NoError(t, err)
	require.Equal(t, Aux{"valkey-ver", "9.0.1"}, item)
	item, err = r.Next()
	require.NoError(t, err)
	requireValkeyHash(t, item.(*Key).Value)
	_, err = r.Next()
	require.Equal(t, io.EOF, err)
	require.Equal(t, OldestValkey, r.Version)

	// Redis gives the same number another meaning, and Valkey does not use higher ones.
	redis := append([]byte("REDIS0012"), file[len("VALKEY080"):]...)
	require.ErrorContains(t, read(redis), "unknown type 243")
	for number := byte(typeHashValkey + 1); number < 40; number++ {
		require.ErrorIs(t, read(append([]byte("VALKEY080"), number, 1, 'k', 1, 1, 'v', opEOF)), ErrCorrupt)
	}
	for _, head := range []string{"VALKEY011", "VALKEY079", "VALKEY090", "REDIS0080"} {
		require.ErrorIs(t, read([]byte(head)), ErrUnsupported, head)
	}
	for _, head := range []string{"VALKEYabc", "VALKEX080", "VALKEY000"} {
		require.ErrorIs(t, read([]byte(head)), ErrCorrupt, head)
	}
}

// read reads all of a file.
func read(file []byte) error {
	r := NewReader(bytes.NewReader(file), limits)
	for {
		switch _, err := r.Next(); err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
	}
}

func TestPayloadsOfValkeyAreRead(t *testing.T) {
	e := Encoder{buf: append([]byte{typeHashValkey}, valkeyHash()...)}
	v, err := Restore(e.footer(OldestValkey), &limits)
	require.NoError(t, err)
	requireValkeyHash(t, v)

	e = Encoder{buf: append([]byte{typeHashValkey}, valkeyHash()...)}
	_, err = Restore(e.footer(Newest), &limits)
	require.Error(t, err, "a candidate of Redis 7.4 has it otherwise")
	for _, version := range []uint16{Newest + 1, OldestValkey - 1, NewestValkey + 1} {
		e = Encoder{buf: append([]byte{typeHashValkey}, valkeyHash()...)}
		_, err = Restore(e.footer(version), &limits)
		require.ErrorIs(t, err, ErrChecksum)
	}
	e = Encoder{buf: []byte{typeString}}
	e.string([]byte("text"))
	v, err = Restore(e.footer(OldestValkey), &limits)
	require.NoError(t, err)
	require.Equal(t, "text", string(v.([]byte)))
}
