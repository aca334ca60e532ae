package acl

import (
	"slices"
	"sync"
)

// Entry is one kind of refusal in the log.
type Entry struct {
	// Count is how often it has happened.
	Count  int64
	Reason Reason
	// Context is where the command came from: "toplevel", "multi" or "lua".
	Context string
	// Object is what was refused: a command, key or channel.
	Object string
	// User is the name of the user, or the name in a failed authentication.
	User string
	// Time is when it happened last, in ms since 1970, and Created when it happened first.
	Time, Created int64
	// ID is the entry's number, counted since the server started.
	ID int64
	// Client describes the client that was refused last.
	Client string
}

const (
	// sameSpan is the time in ms within which equal refusals are counted in one entry.
	sameSpan = 60_000
	// sameDepth is how many of the newest entries are compared with a new one.
	sameDepth = 10
)

// Log keeps the latest refusals. Any goroutine may call its methods.
type Log struct {
	mu      sync.Mutex
	entries []*Entry // the newest is the last
	nextID  int64
}

// Add adds a refusal, or counts it in an equal entry. At most limit entries are kept.
func (l *Log) Add(e Entry, limit int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Count, e.ID, e.Created = 1, l.nextID, e.Time
	for i := len(l.entries) - 1; i >= max(len(l.entries)-sameDepth, 0); i-- {
		if old := l.entries[i]; old.same(&e) {
			e.Count, e.ID, e.Created = e.Count+old.Count, old.ID, old.Created
			l.entries = slices.Delete(l.entries, i, i+1)
			break
		}
	}
	if e.ID == l.nextID {
		l.nextID++
	}
	l.entries = append(l.entries, &e)
	if n := len(l.entries) - limit; n > 0 {
		l.entries = slices.Delete(l.entries, 0, n)
	}
}

func (e *Entry) same(o *Entry) bool {
	return e.Reason == o.Reason && e.Context == o.Context && e.Object == o.Object && e.User == o.User &&
		max(e.Time-o.Time, o.Time-e.Time) <= sameSpan
}

// Newest returns the entries, at most n, the newest first.
func (l *Log) Newest(n int64) []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	n = min(n, int64(len(l.entries)))
	list := make([]Entry, 0, n)
	for i := range int(n) {
		list = append(list, *l.entries[len(l.entries)-1-i])
	}
	return list
}

// Reset empties the log.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}
