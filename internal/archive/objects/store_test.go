package objects

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/archive"
	"github.com/atomredis/atomredis/persist/disk"
)

// list returns the names that a store lists.
func list(t *testing.T, s Store, prefix, after string) (names []string) {
	t.Helper()
	for o, err := range s.List(t.Context(), prefix, after) {
		require.NoError(t, err)
		names = append(names, o.Name)
	}
	return names
}

func put(t *testing.T, s Store, name, content string) {
	t.Helper()
	require.NoError(t, s.Put(t.Context(), name, strings.NewReader(content), int64(len(content))))
}

func TestADirectoryIsAStore(t *testing.T) {
	root := filepath.Join(t.TempDir(), "a", "b")
	s, err := Open(disk.System, "file://"+root)
	require.NoError(t, err)
	require.Empty(t, list(t, s, "", ""))
	_, err = s.Get(t.Context(), "x")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, s.Delete(t.Context(), "x/y"))
	names := []string{"a/1/x", "a/1/y", "a/10/x", "a/2/x", "b/1", "head"}
	for _, name := range names {
		put(t, s, name, "old")
		put(t, s, name, name)
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "a", "1", "z.0123"+temporary), nil, 0o600))
	r, err := s.Get(t.Context(), "a/10/x")
	require.NoError(t, err)
	content, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Equal(t, "a/10/x", string(content))
	require.Equal(t, names, list(t, s, "", ""))
	require.Equal(t, []string{"a/1/x", "a/1/y"}, list(t, s, "a/1/", ""))
	require.Equal(t, []string{"a/10/x", "a/2/x", "b/1", "head"}, list(t, s, "", "a/1/y"))
	require.Equal(t, []string{"a/10/x", "a/2/x"}, list(t, s, "a/", "a/10"))
	require.Equal(t, []string{"a/1/y"}, list(t, s, "a/1/y", ""))
	for o := range s.List(t.Context(), "", "") {
		require.Equal(t, Object{"a/1/x", 5}, o)
		break
	}
	folders, err := s.Folders(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, folders)
	folders, err = s.Folders(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, []string{"1", "10", "2"}, folders)
	require.NoError(t, s.Delete(t.Context(), "b/1"))
	require.NoDirExists(t, filepath.Join(root, "b"))
	require.DirExists(t, root)
}

// What cannot be read to its end is not stored, and neither is an upload that is cancelled.
func TestAnIncompleteObjectIsNotStored(t *testing.T) {
	root := t.TempDir()
	s, err := Open(disk.System, root)
	require.NoError(t, err)
	put(t, s, "x/y", "before")
	failure := errors.New("failure")
	require.ErrorIs(t, s.Put(t.Context(), "x/y", io.MultiReader(strings.NewReader("half"), failing{failure}), -1), failure)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Put(ctx, "x/y", strings.NewReader("late"), 4), context.Canceled)
	left, err := os.ReadDir(filepath.Join(root, "x"))
	require.NoError(t, err)
	require.Len(t, left, 1)
	content, err := os.ReadFile(filepath.Join(root, "x", "y"))
	require.NoError(t, err)
	require.Equal(t, "before", string(content))
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestNamesOfArchives(t *testing.T) {
	for name, problem := range map[string]string{
		"/a/b": "", "file:/a/b": "", "file:///a/b": "",
		"a/b":      "archive a/b: the path of a directory must be absolute",
		"file:a":   "archive file:a: the path of a directory must be absolute",
		"file:":    "archive: the name of a directory is missing",
		"ftp://a/": "archive ftp://a/: unknown scheme ftp: this program knows file",
	} {
		err := archive.Check(name)
		if problem == "" {
			require.NoError(t, err, name)
		} else {
			require.EqualError(t, err, problem)
		}
	}
	require.True(t, slices.IsSorted([]string{basePrefix, piecePrefix}), "bases come first in a volume")
}
