package atomredis_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/atomredis/atomredis"
)

// BenchmarkGet reads one key in the ways that a program has.
func BenchmarkGet(b *testing.B) {
	db := open(b, atomredis.Options{Addr: "127.0.0.1:0"})
	ctx := b.Context()
	do(b, db, "SET", "key", "a value of some bytes")
	b.Run("Do", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := db.Do(ctx, "GET", "key"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("DoParallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				if _, err := db.Do(ctx, "GET", "key"); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("DoMany16", func(b *testing.B) {
		b.ReportAllocs()
		commands := make([]atomredis.Args, 16)
		for i := range commands {
			commands[i] = atomredis.Args{"GET", "key"}
		}
		for i := 0; i < b.N; i += len(commands) {
			if _, err := db.DoMany(ctx, commands...); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, client := range map[string]*redis.Client{
		"go-redis, in memory":     dial(db, &redis.Options{}),
		"go-redis, over loopback": redis.NewClient(&redis.Options{Addr: db.Addr()}),
	} {
		b.Run(name, func(b *testing.B) {
			defer client.Close()
			b.ReportAllocs()
			for b.Loop() {
				if err := client.Get(ctx, "key").Err(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
