package disk

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Creating a file again leaves the old file alone under its other name.
func TestCreateReplacesTheNameOnly(t *testing.T) {
	dir := t.TempDir()
	name, other := filepath.Join(dir, "file"), filepath.Join(dir, "other")
	require.NoError(t, os.WriteFile(name, []byte("old"), 0o600))
	require.NoError(t, System.Link(name, other))
	f, err := System.Create(name)
	require.NoError(t, err)
	_, err = io.WriteString(f, "new")
	require.NoError(t, err)
	require.NoError(t, f.SyncData())
	_, err = f.SyncTo(3)
	require.NoError(t, err)
	require.NoError(t, f.Prefetch(0, 3))
	require.NoError(t, f.Close())
	old, err := os.ReadFile(other)
	require.NoError(t, err)
	require.Equal(t, "old", string(old))
	names, err := System.List(dir)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"file", "other"}, names)
	require.NoError(t, SyncDir(System, dir))
}

// The system's locks of files belong to processes: a process must not get one twice.
func TestAFileIsLockedOnce(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	first, err := system{}.Lock(name)
	require.NoError(t, err)
	_, err = system{}.Lock(name)
	require.Error(t, err)
	require.NoError(t, first.Close())
	second, err := system{}.Lock(name)
	require.NoError(t, err)
	require.NoError(t, second.Close())
	_, err = system{}.Lock(filepath.Join(name, "in a file"))
	require.Error(t, err)
}

func TestTheSystemKnowsItsRoom(t *testing.T) {
	free, ok := System.(Roomy).Free(t.TempDir())
	if ok {
		require.Positive(t, free)
	}
	_, ok = System.(Roomy).Free(filepath.Join(t.TempDir(), "missing"))
	require.False(t, ok)
}
