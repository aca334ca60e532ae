package persist

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
)

// A directory that replaces the opened one may be another server's: nothing is written there. Acknowledged changes
// still go to the open file of the journal, until a checkpoint needs another file; then changes cannot be made durable
// until the directory is back.
func TestNothingIsWrittenIntoAnotherDirectoryInTheSamePlace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	open := func() (*Storage, *engine.Keyspace, map[string]bool) {
		s, err := Open(Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		ks := engine.New(engine.Options{Source: s.Source()})
		seen := map[string]bool{}
		require.NoError(t, s.Recover(ks, func(_ int64, commands []byte) error {
			seen[string(commands)] = true
			return nil
		}))
		return s, ks, seen
	}
	set := func(ks *engine.Keyspace, key string) {
		var g engine.Guard
		g.Lock(ks, engine.AllShards, ks.Now())
		g.Changed(g.CreateString(0, []byte(key), []byte("v")), engine.EventString, "set")
		g.Log(0, [][]byte{[]byte("SET"), []byte(key), []byte("v")})
		g.Unlock()
	}
	s, ks, _ := open()
	set(ks, "a")
	require.NoError(t, s.Save())
	set(ks, "b")
	require.NoError(t, os.Rename(dir, dir+".away"))
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.ErrorContains(t, s.Save(), "is another directory than the one that was opened")
	require.NotNil(t, s.Err())
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, names)

	require.NoError(t, os.Remove(dir))
	require.NoError(t, os.Rename(dir+".away", dir))
	require.Eventually(t, func() bool { return s.Err() == nil }, time.Minute, time.Millisecond) // it retries by itself
	set(ks, "c")
	require.NoError(t, s.Close(false))
	ks.Close()

	s, ks, _ = open()
	var g engine.Guard
	g.Lock(ks, engine.AllShards, ks.Now())
	for _, key := range []string{"a", "b"} {
		require.NotNil(t, g.Peek(0, []byte(key)), key)
	}
	g.Unlock()
	require.NoError(t, s.Close(false))
	ks.Close()
}
