package vectors

import "sync/atomic"

// epochs tells when a search that began before some instant can no longer be running. Searches enter and leave; the
// writer advances. An epoch ends only when nobody is left of the one before, so two counts do.
type epochs struct {
	now     atomic.Uint64
	readers [2]struct {
		n atomic.Int64
		_ [56]byte // keeps the counts on lines of their own
	}
}

// begin enters the epoch, which end leaves.
func (e *epochs) begin() (epoch uint64) {
	for {
		epoch = e.now.Load()
		e.readers[epoch&1].n.Add(1)
		if e.now.Load() == epoch {
			return epoch
		}
		e.readers[epoch&1].n.Add(-1)
	}
}

func (e *epochs) end(epoch uint64) { e.readers[epoch&1].n.Add(-1) }

// advance begins the next epoch if nobody is left of the one before this. Only the writer calls it.
func (e *epochs) advance() bool {
	epoch := e.now.Load()
	if e.readers[(epoch+1)&1].n.Load() != 0 {
		return false
	}
	e.now.Store(epoch + 1)
	return true
}
