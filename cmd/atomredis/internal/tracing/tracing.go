// Package tracing exports slow commands as spans of OpenTelemetry, by OTLP over HTTP.
package tracing

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/version"
)

// Directive is the directive with the URL of the collector; "" exports nothing.
const Directive = "otel-endpoint"

func init() {
	config.Register(config.Directive{Name: Directive, Check: check, AtStart: true})
}

const (
	// queue is how many spans may wait; further ones are dropped, so that no command waits. batch is the size of an
	// export.
	queue, batch = 2048, 256
	// flushTimeout is how long the end of the program waits for the last spans.
	flushTimeout = 2 * time.Second
	// path is the default path of the URL.
	path = "/v1/traces"
)

// check returns an error for a malformed endpoint.
func check(value string) error {
	if value == "" {
		return nil
	}
	if u, err := url.Parse(value); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("argument must be a URL such as http://host:4318")
	}
	return nil
}

// Exporter exports slow commands.
type Exporter struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// New returns an exporter to the endpoint, a URL that the directive accepts. Failures are logged.
func New(endpoint string, log *slog.Logger) (*Exporter, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = path
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Warn("traces cannot be exported", "error", err.Error())
	}))
	client, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(u.String()))
	if err != nil {
		return nil, err
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(client, sdktrace.WithMaxQueueSize(queue), sdktrace.WithMaxExportBatchSize(batch)),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "atomredis"),
			attribute.String("service.version", version.Number))))
	return &Exporter{provider, provider.Tracer("github.com/atomredis/atomredis")}, nil
}

// Slow exports a command without waiting. The span has neither keys nor values.
func (e *Exporter) Slow(c session.SlowCommand) {
	_, span := e.tracer.Start(context.Background(), c.Name, trace.WithTimestamp(c.End.Add(-c.Took)),
		trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
			attribute.String("db.system.name", "redis"),
			attribute.String("db.operation.name", c.Name),
			attribute.Int("db.namespace", c.DB),
			attribute.Int("atomredis.keys", c.Keys),
			attribute.Int("atomredis.arguments", c.Arguments),
			attribute.Int64("atomredis.client.id", c.Client),
			attribute.String("client.address", c.Addr)))
	span.End(trace.WithTimestamp(c.End))
}

// Close exports the waiting spans, for flushTimeout at most.
func (e *Exporter) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	return e.provider.Shutdown(ctx)
}
