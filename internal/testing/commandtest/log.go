package commandtest

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// PanicLog is a log handler that keeps the messages about handlers that panicked.
type PanicLog struct{ Found []string }

func (l *PanicLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *PanicLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *PanicLog) WithGroup(string) slog.Handler            { return l }

func (l *PanicLog) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "panicked") {
		text := r.Message
		r.Attrs(func(a slog.Attr) bool {
			text += "\n" + a.String()
			return true
		})
		l.Found = append(l.Found, text)
	}
	return nil
}

// Request encodes a command.
func Request(args ...string) []byte {
	out := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(a), a)
	}
	return out
}
