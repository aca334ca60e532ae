package engine

import (
	"sync"
	"sync/atomic"
)

// Strings that are read without a guard, because they have not been sent to a client yet. As long as a string is the
// value of a key, it is in the count of memory, however many readers it has. Bytes that only readers keep alive are
// counted here, once.

// Loan is a string that is or was lent. It outlives the key.
type Loan struct {
	// readers changes without a lock. While there are any, the bytes must not change: a change gives the string new
	// memory. Adding a reader needs a guard that holds the entry's shard; removing one needs none.
	readers atomic.Int64
	loans   *loans

	// loans.mu protects the following fields; the shard of the key protects space too.
	size   int    // bytes
	space  uint32 // of the key: its index in Keyspace.spaces
	left   bool   // the string is no longer a key's value
	listed bool   // in loans.current
}

// loans are the strings of a keyspace with readers.
type loans struct {
	kept atomic.Int64 // bytes of those that are no longer a key's value

	mu      sync.Mutex // protects the fields below; a leaf in the order of locks
	current map[*Loan]struct{}
}

// Lend returns the value of a string of more than 1 KiB for reading beyond the guard's end: the bytes do not change,
// whatever happens to the key, until the reader calls Return. A reader that never does costs the next change a copy.
func (g *Guard) Lend(e *Entry) (b []byte, l *Loan) {
	b = e.Bytes()
	long := e.long()
	if long.loan == nil {
		long.loan = &Loan{loans: &g.ks.loans}
	}
	if l = long.loan; l.readers.Add(1) == 1 {
		l.loans.begin(l, cap(b), e.space)
	}
	return b, l
}

// Return ends a reader's use.
func (l *Loan) Return() {
	if l.readers.Add(-1) == 0 {
		l.loans.end(l)
	}
}

// begin lists a string that has its first reader.
func (s *loans) begin(l *Loan, size int, space uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		s.current = map[*Loan]struct{}{}
	}
	s.current[l] = struct{}{}
	l.size, l.space, l.listed = size, space, true
}

// end removes a string whose last reader has gone, unless there is a new one.
func (s *loans) end(l *Loan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.readers.Load() != 0 || !l.listed {
		return
	}
	delete(s.current, l)
	l.listed = false
	if l.left {
		s.kept.Add(-int64(l.size))
	}
}

// leave notes that a string is no longer a key's value.
func (s *loans) leave(l *Loan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaveLocked(l)
}

func (s *loans) leaveLocked(l *Loan) {
	if !l.left && l.listed {
		s.kept.Add(int64(l.size))
	}
	l.left = true
}

// emptied notes that the values of all keys of a database were removed.
func (s *loans) emptied(space uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.current {
		if l.space == space {
			s.leaveLocked(l)
		}
	}
}

// moved notes that the value of an entry belonged to another entry before.
func (s *loans) moved(e *Entry) {
	if long := e.long(); long.lent() {
		s.mu.Lock()
		defer s.mu.Unlock()
		long.loan.space = e.space
	}
}

// LentMemory returns the bytes of strings that only readers keep alive.
func (ks *Keyspace) LentMemory() int64 { return ks.loans.kept.Load() }

// lent reports whether the string has readers without a guard.
func (s *longString) lent() bool { return s != nil && s.loan != nil && s.loan.readers.Load() != 0 }

// leave notes that the string is about to stop being a key's value.
func (s *longString) leave() {
	if s.lent() {
		s.loan.loans.leave(s.loan)
	}
}
