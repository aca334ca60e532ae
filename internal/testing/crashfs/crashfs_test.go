package crashfs

import (
	"fmt"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// Copies taken while files are linked and reused complete, each with all synced data.
func TestCopiesWhileFilesAreLinked(t *testing.T) {
	fs := New()
	create := func(name string) {
		f, err := fs.Create(name)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	create("synced")
	dir, err := fs.OpenDir("")
	require.NoError(t, err)
	require.NoError(t, dir.Sync())
	var changes sync.WaitGroup
	changes.Go(func() {
		for i := range 2000 {
			create("file")
			require.NoError(t, fs.Link("file", fmt.Sprint("link", i)))
			f, err := fs.files.ReuseForWrite("file", "reused", vfs.WriteCategoryUnspecified)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
	})
	for range 2000 {
		_, err := fs.CrashClone(CloneCfg{}).Stat("synced")
		require.NoError(t, err)
	}
	changes.Wait()
}
