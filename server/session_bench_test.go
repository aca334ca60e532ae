package server

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// benchmarkSession measures commands from their bytes to those of their replies, without sockets: pipelines of sixteen, on
// random ones of 100,000 keys.
func benchmarkSession(b *testing.B, command func(key string) []string) {
	config := NewConfig()
	config.InMemory()
	require.NoError(b, config.Set("port", "0", false))
	srv, err := New(config, slog.New(slog.DiscardHandler), Options{Goroutines: true})
	require.NoError(b, err)
	defer srv.Close()
	s := srv.newSession(Peer{}, func() {})
	defer s.Close()
	encode := func(args []string) string {
		var out strings.Builder
		fmt.Fprintf(&out, "*%d\r\n", len(args))
		for _, a := range args {
			fmt.Fprintf(&out, "$%d\r\n%s\r\n", len(a), a)
		}
		return out.String()
	}
	value := strings.Repeat("x", 64)
	const keys, depth = 100_000, 16
	for i := range keys {
		s.Input([]byte(encode([]string{"SET", fmt.Sprintf("key:%012d", i), value})), time.Now().UnixMilli())
		s.SetOutput(s.Output()[:0])
	}
	pipelines := make([][]byte, 4096)
	for i := range pipelines {
		var p strings.Builder
		for range depth {
			p.WriteString(encode(command(fmt.Sprintf("key:%012d", rand.IntN(keys)))))
		}
		pipelines[i] = []byte(p.String())
	}
	now := time.Now().UnixMilli()
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i += depth {
		s.Input(pipelines[i/depth%len(pipelines)], now)
		s.SetOutput(s.Output()[:0])
	}
}

func BenchmarkGet(b *testing.B) {
	benchmarkSession(b, func(key string) []string { return []string{"GET", key} })
}

func BenchmarkSet(b *testing.B) {
	value := strings.Repeat("y", 64)
	benchmarkSession(b, func(key string) []string { return []string{"SET", key, value} })
}

func BenchmarkIncr(b *testing.B) {
	benchmarkSession(b, func(key string) []string { return []string{"INCR", "n" + key} })
}
