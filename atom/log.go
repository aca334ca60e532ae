package atom

import (
	"context"
	"fmt"
	"os"
)

// LogLevel is the severity of a message, as in syslog.
type LogLevel int

// The levels of syslog.
const (
	LogEmergency LogLevel = iota
	LogAlert
	LogCritical
	LogError
	LogWarning
	LogNotice
	LogInfo
	LogDebug
)

// Log writes a message to the log that all elements share. The log is a stream without an element: read it with
// EntryReadN(ctx, "", "log", …) and the other functions for entries.
func (e *Element) Log(ctx context.Context, level LogLevel, message string) error {
	const op = "log"
	if level < LogEmergency || level > LogDebug {
		return misuse(op, "%d is not a level of syslog", level)
	}
	host, err := os.Hostname()
	if err != nil {
		return misuse(op, "the name of this host: %w", err)
	}
	return failed(ctx, op, e.protocol.log(ctx, level, e.name, message, host))
}

// Logf is Log with a format, as for fmt.Sprintf.
func (e *Element) Logf(ctx context.Context, level LogLevel, format string, args ...any) error {
	return e.Log(ctx, level, fmt.Sprintf(format, args...))
}
