package stats

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/atomredis/atomredis/command"
)

// Slowlog has the latest commands that took as long as slowlog-log-slower-than says.
type Slowlog struct {
	mu      sync.Mutex // protects what follows
	entries []SlowCommand
	next    int64 // the number of the next entry
}

// SlowCommand is a command that took long.
type SlowCommand struct {
	ID   int64 // no other of this server has it
	At   int64 // when it ended, in s since 1970
	Took time.Duration
	Args []string // as they are logged: not all, not whole, and without secrets
	// Addr and Name are those of its client.
	Addr, Name string
}

// How much of a slow command is kept: so many arguments, and bytes of each.
const (
	maxSlowArgs  = 32
	maxSlowBytes = 128
)

// Add logs a command that took so many ns, of the client of that address and name; now is in ms since 1970. The log
// keeps the latest limit entries.
func (l *Slowlog) Add(now int64, addr, name string, cmd *command.Command, args [][]byte, took int64, limit int) {
	e := SlowCommand{At: now / 1000, Took: time.Duration(took), Args: slowArgs(cmd, args), Addr: addr, Name: name}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.ID = l.next
	l.next++
	l.entries = append(l.entries, e)
	if extra := len(l.entries) - limit; extra > 0 {
		l.entries = slices.Delete(l.entries, 0, extra)
	}
}

// slowArgs returns copies of the arguments as they are logged.
func slowArgs(cmd *command.Command, args [][]byte) []string {
	secret := cmd.SecretArgs(args)
	out := make([]string, 0, min(len(args), maxSlowArgs))
	for i, a := range args {
		switch {
		case i == maxSlowArgs-1 && len(args) > maxSlowArgs:
			return append(out, fmt.Sprintf("... (%d more arguments)", len(args)-i))
		case slices.Contains(secret, i):
			out = append(out, "(redacted)")
		case len(a) > maxSlowBytes:
			out = append(out, fmt.Sprintf("%s... (%d more bytes)", a[:maxSlowBytes], len(a)-maxSlowBytes))
		default:
			out = append(out, string(a))
		}
	}
	return out
}

// Latest returns the latest n entries, the last one first.
func (l *Slowlog) Latest(n int64) []SlowCommand {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := int64(len(l.entries)) - min(n, int64(len(l.entries)))
	out := slices.Clone(l.entries[from:])
	slices.Reverse(out)
	return out
}

// Len returns how many entries there are.
func (l *Slowlog) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.entries)
}

// Reset removes all entries.
func (l *Slowlog) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}
