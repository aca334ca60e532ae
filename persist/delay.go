package persist

import "time"

// KeyDelay slows down work on keys, so that tests can observe a server during it: that many microseconds per key or, if
// negative, a microsecond per that many keys.
type KeyDelay int

// of returns the delay for n keys.
func (d KeyDelay) of(n int) time.Duration {
	if d < 0 {
		return time.Duration(n) * time.Microsecond / time.Duration(-d)
	}
	return time.Duration(n) * time.Duration(d) * time.Microsecond
}

// SetKeyDelays slows down loading keys into memory and writing checkpoints. Closing the storage does not wait for the
// delays.
func (s *Storage) SetKeyDelays(load, save KeyDelay) {
	s.loadDelay.Store(int64(load))
	s.saveDelay.Store(int64(save))
}

// SetWriteDelay makes the journal wait before each write.
func (s *Storage) SetWriteDelay(d time.Duration) { s.writeDelay.Store(int64(d)) }

// dawdle waits for d, or until the storage is closed.
func (s *Storage) dawdle(d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.stop:
	}
}

// loaded returns a function that gets the number of keys in memory, stores it in keys, and waits for KeyDelay.
func (s *Storage) loaded(keys *int) func(n int) bool {
	return func(n int) bool {
		s.dawdle(KeyDelay(s.loadDelay.Load()).of(n - *keys))
		*keys = n
		return true
	}
}

// leastDelay is the accumulated delay from which saved really waits.
const leastDelay = time.Millisecond

// saved waits for KeyDelay after another key was written. owed is the delay that has accumulated.
func (s *Storage) saved(owed *time.Duration) {
	if *owed += KeyDelay(s.saveDelay.Load()).of(1); *owed >= leastDelay {
		s.dawdle(*owed)
		*owed = 0
	}
}
