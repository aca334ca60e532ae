package files

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMakeDirRemovesWhatItHasMade(t *testing.T) {
	root := t.TempDir()
	undo, err := MakeDir(filepath.Join(root, "a", "b", "c"), 0o700)
	require.NoError(t, err)
	require.DirExists(t, filepath.Join(root, "a", "b", "c"))
	undo()
	require.NoDirExists(t, filepath.Join(root, "a"))
	require.DirExists(t, root)

	undo, err = MakeDir(filepath.Join(root, "a", "b"), 0o700)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(root, "a", "file"), nil, 0o600))
	undo()
	require.NoDirExists(t, filepath.Join(root, "a", "b"))
	require.FileExists(t, filepath.Join(root, "a", "file"), "what others have put there stays")

	undo, err = MakeDir(filepath.Join(root, "a"), 0o700)
	require.NoError(t, err)
	undo()
	require.DirExists(t, filepath.Join(root, "a"), "it was there before")
	_, err = MakeDir(filepath.Join(root, "a", "file", "x"), 0o700)
	require.Error(t, err)
	require.FileExists(t, filepath.Join(root, "a", "file"))
}

func TestReplaceIsWholeOrNothing(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	write := func(text string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, writeErr := io.WriteString(w, text)
			return errors.Join(writeErr, err)
		}
	}
	require.NoError(t, Replace(name, write("one", nil)))
	broken := errors.New("broken")
	require.ErrorIs(t, Replace(name, write("two", broken)), broken)
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "one", string(content))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
}
