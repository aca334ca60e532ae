package binary_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
)

func TestConfigurations(t *testing.T) {
	const text = "09 01000000 63"
	b := unhex(t, "0500 0000"+text+"0300 02000000 c800 01000000"+text+"09 01000000 54"+"65 65 65"+
		"01000000"+text+"09 03000000 696e74 00 01 65 ffffffff ffffffff 01000000"+text+"09 01000000 64 00000000"+
		"cb00"+text+"9701 01 ffffffffffffffff feffffffffffffff e803000000000000")
	c, err := binary.ParseConfig(b)
	require.NoError(t, err)
	require.Equal(t, "c", c.Name())
	require.Equal(t, "c", c.Schema())
	require.Equal(t, binary.Expiry{Created: binary.ForEver, Updated: binary.AsBefore, Accessed: 1000}, c.Expiry())
	require.Equal(t, []binary.Entity{{KeyType: "c", ValueType: "T", Fields: []binary.EntityField{{Name: "c", Type: "int",
		NotNull: true, Default: binary.AppendNull(nil), Precision: -1, Scale: -1}},
		Aliases: map[string]string{"c": "d"}}}, c.Entities())
	for n := range b {
		_, err := binary.ParseConfig(b[:n])
		require.Error(t, err)
	}
	_, err = binary.ParseConfig(unhex(t, "0100 e703 00"))
	require.ErrorIs(t, err, binary.ErrConfig)
	c, err = binary.ParseConfig([]byte{0, 0})
	require.NoError(t, err)
	require.Equal(t, binary.NoExpiry, c.Expiry())
	require.Empty(t, c.Entities())
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte{0, 0})
	f.Add(unhex(f, "0200 0000 0901000000 63 c800 01000000 65 65 65 65 65 00000000 00000000 00000000"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := binary.ParseConfig(b); err == nil {
			c.Entities()
			c.Append(nil, c.Name(), true)
		}
	})
}
