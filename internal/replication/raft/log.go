package raft

import (
	"bytes"
	"context"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// newLogger returns a logger for Raft that writes to ours. Once the node has stopped, errors are not logged as such,
// because Raft only reports that connections end.
func newLogger(log *slog.Logger, stopped func() bool) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{
		Name: "raft", Level: hclog.Info, DisableTime: true, Output: lines{log, stopped},
	})
}

// lines receives lines of the form "[LEVEL] raft: what: key=value".
type lines struct {
	log     *slog.Logger
	stopped func() bool
}

func (l lines) Write(b []byte) (int, error) {
	level, what := slog.LevelInfo, bytes.TrimSpace(b)
	if word, rest, ok := bytes.Cut(what, []byte("]")); ok && bytes.HasPrefix(word, []byte("[")) {
		switch what = bytes.TrimSpace(rest); string(bytes.TrimSpace(word[1:])) {
		case "ERROR":
			level = slog.LevelError
		case "WARN":
			level = slog.LevelWarn
		case "INFO":
			level = slog.LevelDebug // Raft logs too much for operators
		}
	}
	if l.stopped() {
		level = slog.LevelDebug
	}
	l.log.Log(context.Background(), level, string(what))
	return len(b), nil
}
