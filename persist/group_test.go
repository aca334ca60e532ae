package persist

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/journal"
)

// shared is a group's journal that only fails.
type shared struct {
	*journal.File
	failure error
}

func (s *shared) Err() error { return s.failure }
func (s *shared) Anchor(uint64) (journal.Anchor, error) {
	return journal.Anchor{Group: []byte("agreed")}, nil
}

// Changes that a group has not agreed on never become the stored state, and the group's stored state stays.
func TestAJournalOfAGroupThatHasFailedIsNotCheckpointed(t *testing.T) {
	var j *shared
	storage, err := Open(Options{FS: crashfs.New(), Dir: "/db", Log: slog.New(slog.DiscardHandler),
		Group: func(fs disk.FS, dir string, _ []byte) (journal.Journal, error) {
			j = &shared{File: journal.Open(journal.Options{FS: fs, Dir: dir})}
			_, err := j.Read(0, nil)
			return j, err
		}})
	require.NoError(t, err)
	ks := engine.New(engine.Options{Source: storage.Source()})
	require.NoError(t, storage.Recover(ks, nil))
	j.Append(1, []byte("a record"))
	require.NoError(t, storage.Save())
	require.Equal(t, "agreed", string(storage.Group()))
	has, err := storage.HasData()
	require.NoError(t, err)
	require.False(t, has)
	j.failure = errors.New("the lead was lost")
	require.ErrorContains(t, storage.Save(), "the lead was lost")
	require.Equal(t, "agreed", string(storage.Group()))
	storage.SetPolicy(journal.No)
	require.Equal(t, int32(journal.Always), storage.policy.Load())
	require.Error(t, storage.Close(true))
	ks.Close()
}
