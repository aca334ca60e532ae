package store

// Metrics is what the store holds and has done since it was opened.
type Metrics struct {
	// Disk is how many bytes its files take, Tables how many tables there are, Memtables how many bytes wait in memory to
	// become tables.
	Disk, Tables, Memtables int64
	// Cache is how many bytes of blocks are kept in memory; a read of a block was a hit if it was there. A filter hit is a
	// read of a table that its filter made unnecessary.
	Cache, CacheHits, CacheMisses, FilterHits, FilterMisses int64
	// Flushes and Compactions have written so many bytes; Debt is about what compactions have yet to rewrite.
	Flushes, FlushedBytes, Compactions, CompactedBytes, Debt int64
	// ReadAmplification is how many tables a read looks at, at worst.
	ReadAmplification int
}

// Metrics returns the metrics of now; zeros if the store is closed.
func (s *Store) Metrics() (m Metrics) {
	db, err := s.use()
	if err != nil {
		return m
	}
	defer db.users.Done()
	p := db.Metrics()
	m = Metrics{
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
