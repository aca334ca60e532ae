package rdb

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine/hashes"
)

// packedFields is a listpack of field1 and field2, and packedValues one of the number of a template, 1 and 2.
const (
	packedFields = "\x17\x17\x00\x00\x00\x02\x00\x86field1\x07\x86field2\x07\xff"
	packedValues = "\x0d\x0d\x00\x00\x00\x03\x00\x00\x01\x01\x01\x02\x01\xff"
)

func requireFields(t *testing.T, v any, pairs ...string) {
	h := v.(*hashes.Hash)
	require.Equal(t, len(pairs)/2, h.Len())
	for i := 0; i < len(pairs); i += 2 {
		value, ok := h.Get([]byte(pairs[i]))
		require.True(t, ok)
		require.Equal(t, pairs[i+1], string(value))
	}
}

// Payloads of Redis 8.10 with templates have the names of the fields.
func TestPayloadsWithTemplatesAreRead(t *testing.T) {
	read := func(typ byte, value string) (any, error) {
		payload := binary.LittleEndian.AppendUint16(append([]byte{typ}, value...), 15)
		return Restore(append(payload, make([]byte, 8)...), &limits)
	}
	plainFields := "\x01\x02\x06field1\x06field2"
	for _, form := range []struct {
		typ   byte
		value string
	}{
		{typeHashNamedPack, "\x00" + packedFields + packedValues}, {typeHashNamed, plainFields + "\xc0\x01\xc0\x02"},
		{typeHashNamedPack, plainFields + packedValues}, {typeHashNamed, "\x00" + packedFields + "\x011\x012"},
	} {
		v, err := read(form.typ, form.value)
		require.NoError(t, err, "%q", form.value)
		requireFields(t, v, "field1", "1", "field2", "2")
	}
	for name, wrong := range map[string]string{
		"too few values":   "\x1d\x00" + packedFields + "\x0b\x0b\x00\x00\x00\x02\x00\x00\x01\x01\x01\xff",
		"no values":        "\x1d\x00" + packedFields + "\x07\x07\x00\x00\x00\x00\x00\xff",
		"no number":        "\x1d\x00" + packedFields + "\x0e\x0e\x00\x00\x00\x03\x00\x81x\x02\x01\x01\x02\x01\xff",
		"no packed fields": "\x1d\x00\x07\x07\x00\x00\x00\x00\x00\xff" + packedValues,
		"no fields":        "\x1f\x01\x00\xc0\x01\xc0\x02",
		"a field twice":    "\x1f\x01\x02\x01f\x01f\xc0\x01\xc0\x02",
		"an unknown form":  "\x1f\x02\x02\x01f\x01g\xc0\x01\xc0\x02",
		"a packed number":  "\x1e" + packedValues,
		"a number":         "\x20\x05\xc0\x01\xc0\x02",
		"too many values":  "\x1d\x01\x01\x06field1" + packedValues,
	} {
		_, err := read(wrong[0], wrong[1:])
		require.Error(t, err, name)
	}
}

// Files of Redis 8.10 have the templates before the keys.
func TestFilesWithTemplatesAreRead(t *testing.T) {
	file := func(records string) *Reader {
		b := append([]byte("REDIS0015"), records...)
		b = append(b, opEOF)
		return NewReader(bytes.NewReader(binary.LittleEndian.AppendUint64(b, checksum(0, b))), limits)
	}
	template := "\xf2\x00\x02\x06field1\x06field2"
	r := file(template + "\xfe\x00\x1e\x02k1" + packedValues + "\x20\x02k2\x00\x03one\x03two")
	item, err := r.Next()
	require.NoError(t, err)
	requireFields(t, item.(*Key).Value, "field1", "1", "field2", "2")
	item, err = r.Next()
	require.NoError(t, err)
	requireFields(t, item.(*Key).Value, "field1", "one", "field2", "two")
	_, err = r.Next()
	require.Equal(t, io.EOF, err)
	for name, records := range map[string]string{
		"an unknown number": template + "\x20\x02k2\x05\xc0\x01\xc0\x02", "no fields": "\xf2\x00\x00", "the same number": template + template,
	} {
		_, err := file(records).Next()
		require.ErrorIs(t, err, ErrCorrupt, name)
	}
}
