package lsm

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/persist/store"
)

func TestASnapshotStaysAsItIs(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		s := open(t, crashfs.Mem())
		w := newWorld(rapid.Uint64().Draw(t, "seed"))
		require.NoError(t, w.checkpoint(s, 60))
		was := w.clone()
		snapshot, err := s.Snapshot()
		require.NoError(t, err)
		for range rapid.IntRange(0, 5).Draw(t, "checkpoints") {
			require.NoError(t, w.checkpoint(s, rapid.IntRange(0, 60).Draw(t, "changes")))
		}
		for p, h := range was.heads {
			if h.External {
				b, err := snapshot.Blob(p.space, p.key)
				require.NoError(t, err)
				require.Equal(t, string(h.Blob), string(b))
			}
		}
		for id, parts := range was.parts {
			got := map[string]string{}
			require.NoError(t, snapshot.Parts(id, func(name, data []byte) error {
				got[string(name)] = string(data)
				return nil
			}))
			require.Equal(t, parts, got)
		}
		_, err = snapshot.Blob(99, "none")
		require.ErrorIs(t, err, errMissing)
		require.NoError(t, snapshot.Close())
		w.requireReadable(t, s)
		require.NoError(t, s.Close())
		_, err = s.Snapshot()
		require.ErrorIs(t, err, store.ErrClosed)
	})
}

// Reopening a store ends its snapshots.
func TestASnapshotEndsWithItsDatabase(t *testing.T) {
	s := open(t, crashfs.Mem())
	require.NoError(t, newWorld(1).checkpoint(s, 50))
	snapshot, err := s.Snapshot()
	require.NoError(t, err)
	s.mu.RLock()
	s.db.fence.shut(errMissing)
	s.mu.RUnlock()
	require.NoError(t, s.Reopen())
	_, err = snapshot.Blob(1, "any")
	require.ErrorIs(t, err, errReopened)
	require.ErrorIs(t, snapshot.Parts(1, func(_, _ []byte) error { return nil }), errReopened)
	require.NoError(t, snapshot.Close())
	require.NoError(t, s.Close())
}
