// Package embedding compares a server inside a program with miniredis, and with redis-server if it is installed.
package embedding

import (
	"context"
	"net"
	"runtime"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/internal/testing/oracle"
)

const value = "a value of some bytes"

// BenchmarkStart opens a server in memory, executes a first command and closes it.
func BenchmarkStart(b *testing.B) {
	b.Run("atomredis", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			db, err := atomredis.Open(atomredis.Options{})
			require.NoError(b, err)
			_, err = db.Do(b.Context(), "SET", "key", value)
			require.NoError(b, err)
			require.NoError(b, db.Close())
		}
	})
	b.Run("miniredis", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s := miniredis.NewMiniRedis()
			require.NoError(b, s.Start()) // it has no server without a port
			require.NoError(b, s.Set("key", value))
			s.Close()
		}
	})
}

// BenchmarkInstances reports the memory of one of many servers that were opened and have executed a command.
func BenchmarkInstances(b *testing.B) {
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapInuse + m.StackInuse)
	}
	b.Run("atomredis", func(b *testing.B) {
		before := heap()
		dbs := make([]*atomredis.DB, b.N)
		for i := range dbs {
			db, err := atomredis.Open(atomredis.Options{})
			require.NoError(b, err)
			_, err = db.Do(b.Context(), "SET", "key", value)
			require.NoError(b, err)
			dbs[i] = db
		}
		b.ReportMetric((heap()-before)/float64(b.N), "bytes/instance")
		for _, db := range dbs {
			require.NoError(b, db.Close())
		}
	})
	b.Run("miniredis", func(b *testing.B) {
		before := heap()
		all := make([]*miniredis.Miniredis, b.N)
		for i := range all {
			all[i] = miniredis.NewMiniRedis()
			require.NoError(b, all[i].Start())
			require.NoError(b, all[i].Set("key", value))
		}
		b.ReportMetric((heap()-before)/float64(b.N), "bytes/instance")
		for _, s := range all {
			s.Close()
		}
	})
}

// BenchmarkCommands executes GET and SET from one goroutine, in every way that a program can.
func BenchmarkCommands(b *testing.B) {
	ctx := context.Background()
	db, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0"})
	require.NoError(b, err)
	defer db.Close()
	mini := miniredis.NewMiniRedis()
	require.NoError(b, mini.Start())
	defer mini.Close()
	clients := map[string]*redis.Client{
		"atomredis, go-redis over Dial": redis.NewClient(&redis.Options{Dialer: func(ctx context.Context, _,
			_ string) (net.Conn, error) {
			return db.Dial(ctx)
		}}),
		"atomredis, go-redis over TCP": redis.NewClient(&redis.Options{Addr: db.Addr()}),
		"miniredis, go-redis over TCP": redis.NewClient(&redis.Options{Addr: mini.Addr()}),
	}
	ways := []way{
		{"atomredis, Do", func() error { _, err := db.Do(ctx, "GET", "key"); return err },
			func() error { _, err := db.Do(ctx, "SET", "key", value); return err }},
		{"miniredis, direct", func() error { _, err := mini.Get("key"); return err },
			func() error { return mini.Set("key", value) }},
	}
	for name, c := range clients {
		defer c.Close()
		ways = append(ways, way{name, func() error { return c.Get(ctx, "key").Err() },
			func() error { return c.Set(ctx, "key", value, 0).Err() }})
	}
	for _, w := range ways {
		w.run(b)
	}
	b.Run("redis-server", func(b *testing.B) { // with ATOMREDIS_ORACLE=1
		c := redis.NewClient(&redis.Options{Network: "unix", Addr: oracle.Start(b)})
		defer c.Close()
		way{"redis-server, go-redis over a Unix socket", func() error { return c.Get(ctx, "key").Err() },
			func() error { return c.Set(ctx, "key", value, 0).Err() }}.run(b)
	})
}

// way is a way to execute commands.
type way struct {
	name string
	get  func() error
	set  func() error
}

func (w way) run(b *testing.B) {
	require.NoError(b, w.set())
	for _, c := range []struct {
		name string
		fn   func() error
	}{{"SET", w.set}, {"GET", w.get}} {
		b.Run(c.name+"/"+w.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.fn(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
