package disk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRemoveShortensLongFiles(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	for _, size := range []int64{0, 1, step, step + 1, 3*step + 7} {
		require.NoError(t, os.WriteFile(name, make([]byte, size), 0o600))
		var sizes []int64
		fs := gentle{FS: system{}, rest: func() {
			info, err := os.Stat(name)
			require.NoError(t, err)
			sizes = append(sizes, info.Size())
		}}
		require.NoError(t, fs.Remove(name))
		require.NoFileExists(t, name)
		var want []int64
		for size -= step; size > 0; size -= step {
			want = append(want, size)
		}
		require.Equal(t, want, sizes)
	}
	require.ErrorIs(t, System.Remove(name), os.ErrNotExist)
	require.NoError(t, System.MkdirAll(name, 0o700))
	require.NoError(t, System.Remove(name), "an empty directory")
}

// A file that Pebble has taken over under another name must not change.
func TestRemoveLeavesOtherNamesAlone(t *testing.T) {
	dir := t.TempDir()
	name, other, symbolic := filepath.Join(dir, "file"), filepath.Join(dir, "other"), filepath.Join(dir, "symbolic")
	require.NoError(t, os.WriteFile(name, make([]byte, 2*step), 0o600))
	require.NoError(t, os.Link(name, other))
	require.NoError(t, os.Symlink(other, symbolic))
	require.NoError(t, System.Remove(name))
	require.NoError(t, System.Remove(symbolic))
	info, err := os.Stat(other)
	require.NoError(t, err)
	require.EqualValues(t, 2*step, info.Size())
}
