package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/atomredis/atomredis/internal/config"
)

// The formats of log lines, by log-format and log-timestamp-format at the time of each line.

// redisTime is the layout of times in Redis's log.
const redisTime = "02 Jan 2006 15:04:05.000"

// isoTime is the layout of iso8601.
const isoTime = "2006-01-02T15:04:05.000Z07:00"

// logFormat is a slog.Handler that formats records as configured.
type logFormat struct {
	conf *config.Config
	by   [config.LogFormats]slog.Handler
}

// newLogFormat returns a handler that writes to buf. The time, the level and the message pass through
// options.ReplaceAttr.
func newLogFormat(conf *config.Config, buf *bytes.Buffer, options slog.HandlerOptions) slog.Handler {
	replace := options.ReplaceAttr
	if replace == nil {
		replace = func(_ []string, a slog.Attr) slog.Attr { return a }
	}
	structured := options
	structured.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime {
			switch t := a.Value.Time(); conf.Get().Log.Timestamps {
			case config.TimestampsISO8601:
				a.Value = slog.StringValue(t.Format(isoTime))
			case config.TimestampsMilliseconds:
				a.Value = slog.Int64Value(t.UnixMilli())
			}
		}
		return replace(groups, a)
	}
	rest := options
	rest.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
			return slog.Attr{}
		}
		return replace(groups, a)
	}
	plain := plainFormat{Handler: slog.NewTextHandler(buf, &rest), conf: conf, buf: buf, replace: replace}
	f := logFormat{conf: conf}
	f.by[config.LogLogfmt] = slog.NewTextHandler(buf, &structured)
	f.by[config.LogJSON] = slog.NewJSONHandler(buf, &structured)
	f.by[config.LogText] = plain
	plain.legacy = true
	f.by[config.LogLegacy] = plain
	return f
}

// Enabled implements slog.Handler.
func (f logFormat) Enabled(ctx context.Context, level slog.Level) bool {
	return f.by[0].Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (f logFormat) Handle(ctx context.Context, r slog.Record) error {
	return f.by[f.conf.Get().Log.Format].Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (f logFormat) WithAttrs(attrs []slog.Attr) slog.Handler {
	for i, h := range f.by {
		f.by[i] = h.WithAttrs(attrs)
	}
	return f
}

// WithGroup implements slog.Handler.
func (f logFormat) WithGroup(name string) slog.Handler {
	for i, h := range f.by {
		f.by[i] = h.WithGroup(name)
	}
	return f
}

// plainFormat writes lines for people: the time, the level and the message, and then the attributes.
type plainFormat struct {
	slog.Handler // writes the attributes to buf
	conf         *config.Config
	buf          *bytes.Buffer
	replace      func([]string, slog.Attr) slog.Attr
	legacy       bool // Redis's form: the process and its role first, and the level as a sign
}

// Handle implements slog.Handler.
func (p plainFormat) Handle(ctx context.Context, r slog.Record) error {
	if p.shown(slog.Time(slog.TimeKey, r.Time)) {
		if p.legacy {
			role := 'M'
			if p.conf.Get().Replication.ReplicaOf.Host != "" {
				role = 'S'
			}
			fmt.Fprintf(p.buf, "%d:%c ", os.Getpid(), role)
		}
		p.buf.WriteString(timestamp(p.conf.Get(), r.Time))
		p.buf.WriteByte(' ')
	}
	if level := slog.Any(slog.LevelKey, r.Level); p.shown(level) {
		if p.legacy {
			p.buf.WriteByte(levelSign(r.Level))
		} else {
			p.buf.WriteString(p.replace(nil, level).Value.String())
		}
		p.buf.WriteByte(' ')
	}
	p.buf.WriteString(r.Message)
	p.buf.WriteByte(' ')
	mark := p.buf.Len()
	err := p.Handler.Handle(ctx, r)
	if p.buf.Len() == mark+1 { // no attributes
		p.buf.Truncate(mark - 1)
		p.buf.WriteByte('\n')
	}
	return err
}

// shown reports whether lines include an attribute.
func (p plainFormat) shown(a slog.Attr) bool { return p.replace(nil, a).Key != "" }

// WithAttrs implements slog.Handler.
func (p plainFormat) WithAttrs(attrs []slog.Attr) slog.Handler {
	p.Handler = p.Handler.WithAttrs(attrs)
	return p
}

// WithGroup implements slog.Handler.
func (p plainFormat) WithGroup(name string) slog.Handler {
	p.Handler = p.Handler.WithGroup(name)
	return p
}

// timestamp returns a time in the form for plain lines.
func timestamp(set *config.Settings, t time.Time) string {
	switch set.Log.Timestamps {
	case config.TimestampsISO8601:
		return t.Format(isoTime)
	case config.TimestampsMilliseconds:
		return fmt.Sprint(t.UnixMilli())
	}
	return t.Format(redisTime)
}

// levelSign returns Redis's sign for a level.
func levelSign(level slog.Level) byte {
	switch {
	case level < config.LevelVerbose:
		return '.'
	case level < slog.LevelInfo:
		return '-'
	case level < slog.LevelWarn:
		return '*'
	}
	return '#'
}
