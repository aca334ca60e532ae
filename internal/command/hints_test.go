package command

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
)

// Memory that is prefetched too early has left the cache when it is used, and listing a hundred thousand keys takes
// time.
func TestOnlySomeKeysOfACommandAreWarmedBefore(t *testing.T) {
	cmd := &Command{Keys: Keys("i1+r-1/1/0[RO,ACCESS]"), Lock: LockKeys}
	for _, n := range []int{1, MaxHints - 1, MaxHints, MaxHints + 1, 100_000} {
		args := make([][]byte, 1+n)
		require.Len(t, cmd.AppendHints(nil, args), min(n, MaxHints))
	}
}

// State beside the keys needs one shard, whatever the arguments, although the command is as one for the whole keyspace.
func TestACommandMayLockOneShard(t *testing.T) {
	ks := engine.New(engine.Options{Shards: 4})
	for one, want := range map[bool]uint64{false: engine.AllShards, true: 1} {
		cmd := &Command{Name: "test", Flags: Write | WholeKeyspace, OneShard: one}
		cmd.derive()
		require.Equal(t, want, cmd.ShardsAmong(ks, [][]byte{[]byte("test"), []byte("a")}))
	}
}
