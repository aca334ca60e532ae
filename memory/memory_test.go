package memory_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/atomredis/atomredis/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The tests of package atomredis cover the rest of this package.
func TestTheServerWorksWithoutStorage(t *testing.T) {
	db, err := memory.Open(memory.Options{})
	require.NoError(t, err)
	defer db.Close()
	r, err := db.Do(t.Context(), "INCR", "visits")
	require.NoError(t, err)
	n, err := r.Int()
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
}

// In a program that does not import package atomredis, Open reports the missing storage.
func TestADirectoryNeedsStorage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	for _, o := range []memory.Options{{Dir: dir}, {Dir: dir, Raft: &memory.Raft{Addr: "a:1", Peers: []string{"a:1"}}}} {
		_, err := memory.Open(o)
		require.ErrorIs(t, err, memory.ErrNoStorage)
		require.ErrorContains(t, err, `import _ "github.com/atomredis/atomredis"`)
		require.NoDirExists(t, dir)
	}
}
