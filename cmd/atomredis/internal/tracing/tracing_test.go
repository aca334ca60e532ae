package tracing

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/server"
)

// A slow command arrives at the collector, without its values.
func TestSlowCommandsAreExported(t *testing.T) {
	bodies := make(chan []byte, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && r.URL.Path == path {
			bodies <- body
		}
	}))
	defer receiver.Close()
	e, err := New(receiver.URL, slog.New(slog.DiscardHandler))
	require.NoError(t, err)

	conf := config.NewConfig()
	conf.InMemory()
	conf.ListenNowhere()
	require.NoError(t, conf.Set("slowlog-log-slower-than", "0", false))
	require.NoError(t, conf.Set(Directive, receiver.URL, false))
	srv, err := server.New(conf, slog.New(slog.DiscardHandler), server.Options{Slow: e.Slow})
	require.NoError(t, err)
	require.NoError(t, srv.Start())
	session, err := srv.Direct(0)
	require.NoError(t, err)
	client := door.NewClient(session)
	_, err = client.Do(t.Context(), "MSET", "k", "hidden value", "l", "hidden value")
	require.NoError(t, err)
	client.Close()
	require.NoError(t, srv.Close())
	require.NoError(t, e.Close())

	body := <-bodies
	require.NotContains(t, string(body), "hidden value")
	var request collector.ExportTraceServiceRequest
	require.NoError(t, proto.Unmarshal(body, &request))
	for _, span := range request.ResourceSpans[0].ScopeSpans[0].Spans {
		if span.Name != "mset" {
			continue
		}
		require.GreaterOrEqual(t, span.EndTimeUnixNano, span.StartTimeUnixNano)
		for _, a := range span.Attributes {
			if a.Key == "atomredis.keys" {
				require.EqualValues(t, 2, a.Value.GetIntValue())
				return
			}
		}
	}
	require.Fail(t, "there is no span with the number of keys", request.String())
}

// Commands do not wait for a collector that does not answer: spans beyond the queue are dropped.
func TestNobodyWaitsForTheCollector(t *testing.T) {
	hang := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer receiver.Close()
	defer close(hang)
	e, err := New(receiver.URL, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	for range 3 * queue {
		e.Slow(session.SlowCommand{Name: "get", End: time.Now(), Took: time.Millisecond})
	}
}

func TestEndpoints(t *testing.T) {
	conf := config.NewConfig()
	for value, ok := range map[string]bool{"": true, "http://collector:4318": true, "https://collector/v1/traces": true,
		"collector:4318": false, "ftp://x": false, "http://": false} {
		require.Equal(t, ok, conf.Set(Directive, value, false) == nil, value)
	}
}
