package hashes

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestFieldKeepsNamesAndValuesOfAnyLength(t *testing.T) {
	lengths := []int{0, 1, 2, 7, 8, 9, 500, maxShort - 1, maxShort, maxShort + 1, 1<<16 - 1, 1 << 16, 200_000}
	requireParts := func(name, value []byte, f field) {
		require.True(t, string(name) == f.Key() && string(name) == string(f.name()))
		require.True(t, string(value) == string(f.value()))
		require.Equal(t, len(value), cap(f.value()))
	}
	for _, n := range lengths {
		for _, v := range lengths {
			name, value := bytes.Repeat([]byte("n"), n), bytes.Repeat([]byte("v"), v)
			f := newField(name, value)
			requireParts(name, value, f)
			start, _, size := f.bounds()
			require.LessOrEqual(t, size, (n+v)*9/8+longHeadLen+8192)
			room := size - start
			for _, w := range []int{0, 1, 8, v, room, room + 1, 5000} {
				f, other := newField(name, value), bytes.Repeat([]byte("w"), w)
				if w <= room && room <= 2*w+spareValue {
					require.True(t, f.overwrite(other))
					requireParts(name, other, f)
				} else {
					require.False(t, f.overwrite(other))
					requireParts(name, value, f)
				}
			}
		}
	}
}

func TestKeptNameDoesNotKeepALongValue(t *testing.T) {
	for n, shared := range map[int]bool{10: true, 5000: false, 100_000: false} {
		f := newField([]byte("name"), make([]byte, n))
		require.Equal(t, "name", f.keptName())
		require.Equal(t, shared, unsafe.StringData(f.keptName()) == unsafe.StringData(f.Key()))
	}
}
