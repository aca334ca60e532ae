package session

import "sync"

// unreadable remembers the keys whose values could not be read, so that each is logged once in unreadablePace however
// often clients try. The zero value is ready.
type unreadable struct {
	mu     sync.Mutex
	logged map[string]int64 // when, in ms since 1970
}

const (
	unreadablePace = 60_000 // ms
	maxUnreadable  = 10_000 // keys that are remembered
)

// first reports whether nothing was logged of a key lately. now is in ms since 1970. Where more keys than are remembered
// have failed lately, nothing is logged of further ones.
func (u *unreadable) first(key string, now int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if at, ok := u.logged[key]; ok && now-at < unreadablePace {
		return false
	}
	if len(u.logged) >= maxUnreadable {
		for k, at := range u.logged {
			if now-at >= unreadablePace {
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
