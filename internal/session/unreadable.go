package session

import "sync"

// unreadable remembers the keys whose values could not be read, so that each is logged at most once in unreadableInterval.
// The zero value is ready.
type unreadable struct {
	mu     sync.Mutex
	logged map[string]int64 // the time of the last entry, in ms since 1970
}

const (
	unreadableInterval = 60_000 // ms
	maxUnreadable      = 10_000 // keys that are remembered
)

// first reports whether a key must be logged, which is so if it was not logged within unreadableInterval. now is in
// ms since 1970. Once maxUnreadable keys are remembered, further ones are not logged.
func (u *unreadable) first(key string, now int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if at, ok := u.logged[key]; ok && now-at < unreadableInterval {
		return false
	}
	if len(u.logged) >= maxUnreadable {
		for k, at := range u.logged {
			if now-at >= unreadableInterval {
				delete(u.logged, k)
			}
		}
		if len(u.logged) >= maxUnreadable {
			return false
		}
	}
	if u.logged == nil {
		u.logged = map[string]int64{}
	}
	u.logged[key] = now
	return true
}
