package atomredis_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/atomredis/atomredis"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ExampleOpen() {
	db, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()

	client := redis.NewClient(&redis.Options{Addr: db.Addr()})
	defer client.Close()
	client.Set(context.Background(), "greeting", "hello", 0)
	fmt.Println(client.Get(context.Background(), "greeting").Val())
	// Output: hello
}

func TestInstancesAreIndependent(t *testing.T) {
	ctx := t.Context()
	var clients []*redis.Client
	for _, o := range []atomredis.Options{
		{Addr: "127.0.0.1:0"},
		{Addr: "127.0.0.1:0", Config: map[string]string{"databases": "1", "requirepass": "secret"}},
		{UnixSocket: filepath.Join(t.TempDir(), "s")},
	} {
		db, err := atomredis.Open(o)
		require.NoError(t, err)
		defer func() { require.NoError(t, db.Close()) }()
		network := "tcp"
		if o.UnixSocket != "" {
			network = "unix"
		}
		c := redis.NewClient(&redis.Options{Network: network, Addr: db.Addr(), Password: o.Config["requirepass"]})
		defer c.Close()
		clients = append(clients, c)
	}
	for i, c := range clients {
		require.NoError(t, c.Set(ctx, "k", i, 0).Err())
	}
	for i, c := range clients {
		require.Equal(t, fmt.Sprint(i), c.Get(ctx, "k").Val())
	}
	require.ErrorContains(t, clients[1].Do(ctx, "SELECT", 1).Err(), "out of range")
}

func TestOpenRefusesWhatItCannotDo(t *testing.T) {
	for name, o := range map[string]atomredis.Options{
		"an unknown directive":    {Config: map[string]string{"no-such-directive": "1"}},
		"a bad value":             {Config: map[string]string{"databases": "many"}},
		"no place for the data":   {Config: map[string]string{"appendonly": "yes"}},
		"an address of nowhere":   {Addr: "192.0.2.1:0"},
		"an address that is none": {Addr: "nonsense"},
	} {
		_, err := atomredis.Open(o)
		require.Error(t, err, name)
	}
}

func TestServerWithoutListenersOpensAndCloses(t *testing.T) {
	db, err := atomredis.Open(atomredis.Options{})
	require.NoError(t, err)
	require.Empty(t, db.Addr())
	require.NoError(t, db.Close())
	require.NoError(t, db.Close())
}

func ExampleOpen_durable() {
	dir, err := os.MkdirTemp("", "atomredis")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	for range 2 {
		// The second server finds the data of the first.
		db, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0", Dir: dir,
			Config: map[string]string{"appendfsync": "always"}})
		if err != nil {
			fmt.Println(err)
			return
		}
		client := redis.NewClient(&redis.Options{Addr: db.Addr()})
		fmt.Println(client.Incr(context.Background(), "starts").Val())
		client.Close()
		if err := db.Close(); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 1
	// 2
}

func TestADirectoryIsItsOwnersAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	db, err := atomredis.Open(atomredis.Options{Dir: dir})
	require.NoError(t, err)
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		if d.IsDir() {
			require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), path)
		}
		return nil
	}))
	_, err = atomredis.Open(atomredis.Options{Dir: dir})
	require.ErrorContains(t, err, "another server uses the directory")
	require.NoError(t, db.Close())
}
