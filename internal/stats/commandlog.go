package stats

import (
	"fmt"
	"slices"
	"sync"

	"github.com/atomredis/atomredis/internal/command"
)

// LogKind is the kind of a log: the property that its commands have in common.
type LogKind uint8

// The kinds of logs.
const (
	// SlowCommands took at least slowlog-log-slower-than microseconds.
	SlowCommands LogKind = iota
	// LargeRequests had at least commandlog-request-larger-than bytes.
	LargeRequests
	// LargeReplies had at least commandlog-reply-larger-than bytes.
	LargeReplies
	LogKinds // how many there are
)

// CommandLog has the latest commands of one kind.
type CommandLog struct {
	mu      sync.Mutex // protects the following fields
	entries []LoggedCommand
	next    int64 // the number of the next entry
}

// LoggedCommand is a command in a log.
type LoggedCommand struct {
	ID    int64 // unique in this log
	At    int64 // when it ended, in s since 1970
	Value int64 // its duration in µs, or the size of its request or reply in bytes
	Args  []string
	Argc  int // how many arguments there were, with the name, before Args was cut
	// Addr and Name are those of its client.
	Addr, Name string
}

// LogLimits limits the entries of a log.
type LogLimits struct {
	Entries int
	// Args is the number of arguments that are kept of a command, at least 2; Bytes is the number of bytes kept of
	// each.
	Args, Bytes int
}

// Add logs a command of the client with the given address and name; now is in ms since 1970. Secrets among the
// arguments are not logged.
func (l *CommandLog) Add(now int64, addr, name string, cmd *command.Command, args [][]byte, value int64, limits LogLimits) {
	e := LoggedCommand{At: now / 1000, Value: value, Args: limits.cut(cmd, args), Argc: len(args), Addr: addr, Name: name}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.ID = l.next
	l.next++
	l.entries = append(l.entries, e)
	if extra := len(l.entries) - limits.Entries; extra > 0 {
		l.entries = slices.Delete(l.entries, 0, extra)
	}
}

// cut returns copies of the arguments for the log, limited in number and length.
func (l *LogLimits) cut(cmd *command.Command, args [][]byte) []string {
	secret := cmd.SecretArgs(args)
	out := make([]string, 0, min(len(args), l.Args))
	for i, a := range args {
		switch {
		case i == l.Args-1 && len(args) > l.Args:
			return append(out, fmt.Sprintf("... (%d more arguments)", len(args)-i))
		case slices.Contains(secret, i):
			out = append(out, "(redacted)")
		case len(a) > l.Bytes:
			out = append(out, fmt.Sprintf("%s... (%d more bytes)", a[:l.Bytes], len(a)-l.Bytes))
		default:
			out = append(out, string(a))
		}
	}
	return out
}

// Latest returns the latest n entries, the last one first.
func (l *CommandLog) Latest(n int64) []LoggedCommand {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := int64(len(l.entries)) - min(n, int64(len(l.entries)))
	out := slices.Clone(l.entries[from:])
	slices.Reverse(out)
	return out
}

// Len returns how many entries there are.
func (l *CommandLog) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.entries)
}

// Reset removes all entries.
func (l *CommandLog) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}
