package lsm

import (
	"github.com/atomredis/atomredis/persist/store"
)

// Metrics returns the present metrics; zeros if the store is closed.
func (s *Store) Metrics() (m store.Metrics) {
	db, err := s.use()
	if err != nil {
		return m
	}
	defer db.users.Done()
	p := db.Metrics()
	m = store.Metrics{
		Disk: int64(p.DiskSpaceUsage()), Memtables: int64(p.MemTable.Size),
		Cache: p.BlockCache.Size, CacheHits: p.BlockCache.Hits, CacheMisses: p.BlockCache.Misses,
		FilterHits: p.Filter.Hits, FilterMisses: p.Filter.Misses,
		Flushes: p.Flush.Count, Compactions: p.Compact.Count, Debt: int64(p.Compact.EstimatedDebt),
		ReadAmplification: p.ReadAmp(),
	}
	for i := range p.Levels {
		l := &p.Levels[i]
		m.Tables += l.TablesCount
		m.FlushedBytes += int64(l.TableBytesFlushed + l.BlobBytesFlushed)
		m.CompactedBytes += int64(l.TableBytesCompacted + l.BlobBytesCompacted)
	}
	return m
}
