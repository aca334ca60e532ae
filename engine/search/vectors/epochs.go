package vectors

import "sync/atomic"

// epochs tells when all searches that began before an instant have ended. Searches enter and leave; the writer
// advances. An epoch ends only after all searches of the previous one have left, so two counters suffice.
type epochs struct {
	now     atomic.Uint64
	readers [2]struct {
		n atomic.Int64
		_ [56]byte // keeps the counters in cache lines of their own
	}
}

// begin enters the present epoch; end leaves it.
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

// advance starts the next epoch if all searches of the previous one have left. Only the writer calls it.
func (e *epochs) advance() bool {
	epoch := e.now.Load()
	if e.readers[(epoch+1)&1].n.Load() != 0 {
		return false
	}
	e.now.Store(epoch + 1)
	return true
}
