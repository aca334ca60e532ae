package rdb

import (
	"encoding/binary"
	"math"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/labels"
	"github.com/atomredis/atomredis/engine/timeseries"
)

// A time series has the form of RedisTimeSeries, of which all versions are read. Version 8 is written, which RedisTimeSeries
// 8.0 reads, or 9 if a rule needs it. A chunk keeps its samples; compressed ones are encoded anew (gorilla.go).
//
// The source and the rules name keys that may follow in the file. They have no effect until both sides exist.

const (
	seriesModule = "TSDB-TYPE"

	// The first versions with a feature.
	seriesOptions     = 1 // a flag for uncompressed chunks
	seriesStarts      = 1 // the start of a rule's open bucket
	seriesSizes       = 2 // chunk sizes in bytes, chunks instead of samples, and the source
	seriesPolicy      = 3 // the policy, and an empty mark for most aggregators
	seriesOverflow    = 4 // sums that are too large
	seriesAloneDumps  = 5 // no source and rules in payloads of DUMP
	seriesAlignment   = 6 // of buckets
	seriesLastOfEmpty = 7 // an empty mark only for FIRST
	seriesIgnore      = 8
	seriesCountsNaN   = 9 // whether something in an open bucket counts

	// The bits of the options.
	seriesPlain      = 1
	seriesCompressed = 2

	seriesSampleSize  = 16             // bytes of a sample in a plain chunk
	seriesWord        = 8              // chunk sizes are multiples of it
	seriesNoBucket    = math.MaxUint64 // instead of the start of a bucket
	seriesMostSamples = 1 << 53        // of a bucket

	// Our own module, which is only read; its only datum is the stored form of a series.
	ownSeriesModule  = "atomrd-ts"
	ownSeriesVersion = 1
)

// seriesAggregators and seriesPolicies are indexed by their numbers in the module.
var (
	seriesAggregators = [...]timeseries.Aggregator{1: timeseries.MinOf, timeseries.MaxOf, timeseries.SumOf, timeseries.Avg,
		timeseries.Count, timeseries.FirstOf, timeseries.LastOf, timeseries.Range, timeseries.StdP, timeseries.StdS,
		timeseries.VarP, timeseries.VarS, timeseries.TWA, timeseries.CountNaN, timeseries.CountAll}
	seriesPolicies = [...]timeseries.Policy{timeseries.Unset, timeseries.Block, timeseries.Last, timeseries.First,
		timeseries.Min, timeseries.Max, timeseries.Sum}
)

var timeSeriesKind = kind{
	module:        ownSeriesModule,
	moduleVersion: ownSeriesVersion,
	read:          func(d *decoder, _ byte, _ *Limits) (any, error) { return d.ownSeries() },
	redis:         []moduleForm{{name: seriesModule, newest: seriesCountsNaN, read: readSeries}},
	form:          plainForm(typeModule),
	write:         writeSeries,
}

// ownSeries reads a series of our own module.
func (d *decoder) ownSeries() (any, error) {
	b, end, err := d.moduleString()
	if err != nil {
		return nil, err
	}
	if end {
		return nil, corrupt("a time series without data")
	}
	s, err := timeseries.DecodeBlob(b)
	if err != nil {
		return nil, corrupt("%v", err)
	}
	if _, end, err = d.moduleString(); err == nil && !end {
		err = corrupt("a time series with more than one datum")
	}
	return s, err
}

// readSeries reads a series of RedisTimeSeries.
func readSeries(m *Module, _ *Limits) any {
	m.Text() // the key
	version := m.Version
	s := timeseries.Settings{Retention: m.natural(), Policy: timeseries.Unset}
	size := m.natural()
	s.Plain = true
	if version >= seriesOptions {
		s.Plain = m.Uint()&seriesPlain != 0
	}
	source := ""
	if version >= seriesSizes {
		m.Uint()   // the last time
		m.Double() // the last value
		m.Uint()   // the number of samples
	} else {
		size = min(size, timeseries.MaxChunkSize) * seriesSampleSize
	}
	if version >= seriesPolicy {
		if n := m.Uint(); n < uint64(len(seriesPolicies)) {
			s.Policy = seriesPolicies[n]
		} else {
			m.Corrupt("a time series with the policy %d", n)
		}
	}
	if version >= seriesSizes && m.Uint() != 0 {
		source = m.Text()
	}
	if version >= seriesIgnore {
		s.IgnoreTime, s.IgnoreValue = m.natural(), m.Double()
	}
	if size == 0 || size%8 != 0 || !(s.IgnoreValue >= 0) {
		m.Corrupt("a time series with chunks of %d bytes that ignores %v", size, s.IgnoreValue)
	}
	s.ChunkSize = int(min(max(size, timeseries.MinChunkSize), timeseries.MaxChunkSize))
	var list []labels.Label
	for n := m.Uint(); n > 0 && m.err == nil; n-- {
		list = append(list, labels.Label{Name: m.Text(), Value: m.Text()})
	}
	linked := version >= seriesAloneDumps || !m.payload()
	if !linked {
		source = ""
	}
	b := timeseries.NewBuilder(s, list, source)
	var rules []seriesRule
	for n := m.Uint(); n > 0 && m.err == nil; n-- {
		rules = append(rules, m.rule())
	}
	for n := m.Uint(); n > 0 && m.err == nil; n-- {
		switch {
		case version < seriesSizes: // a second sample at the time 0 was possible
			b.Put(timeseries.Sample{Time: m.natural(), Value: m.Double()})
		case s.Plain:
			m.plainChunk(b)
		default:
			m.compressedChunk(b)
		}
	}
	for i := range rules {
		if r := &rules[i]; linked && m.err == nil {
			b.Rule(r.destination, r.aggregator, r.length, r.align, &r.bucket)
		}
	}
	if m.err != nil {
		return nil
	}
	return b.Series()
}

// natural reads an unsigned integer, which must fit into 63 bits.
func (m *Module) natural() int64 {
	n := m.Uint()
	if n > math.MaxInt64 {
		m.Corrupt("the number %d", n)
		return 0
	}
	return int64(n)
}

// count checks and converts the number of samples of a bucket.
func (m *Module) count(f float64) int64 {
	if !(f >= 0 && f <= seriesMostSamples) {
		m.Corrupt("a bucket of %v samples", f)
		return 0
	}
	return int64(f)
}

// seriesRule is a rule.
type seriesRule struct {
	destination   string
	aggregator    timeseries.Aggregator
	length, align int64
	bucket        timeseries.OpenBucket
}

// rule reads a rule.
func (m *Module) rule() (r seriesRule) {
	r.destination, r.length = m.Text(), m.natural()
	if m.Version >= seriesAlignment {
		r.align = m.natural()
	}
	number, start := m.Uint(), uint64(seriesNoBucket)
	if m.Version >= seriesStarts {
		start = m.Uint()
	}
	open := start != seriesNoBucket
	switch {
	case number == 0 || number >= uint64(len(seriesAggregators)) || r.length == 0:
		m.Corrupt("a rule with buckets of %d ms and the aggregator %d", r.length, number)
	case open && start > math.MaxInt64:
		m.Corrupt("a bucket at the time %d", start)
	}
	counts := open || m.Version < seriesStarts
	if m.Version >= seriesCountsNaN {
		counts = m.Uint() != 0
	}
	if m.err != nil {
		return r
	}
	r.aggregator = seriesAggregators[number]
	r.bucket = m.bucket(r.aggregator, counts)
	r.bucket.Open, r.bucket.Start = open, int64(start)
	if !open { // the state is that of the newest sample's bucket
		r.bucket.Open, r.bucket.Start = m.Version < seriesStarts, timeseries.Newest
	}
	return r
}

// bucket reads the state of an aggregator. Some states lack the number of samples: it is then 1 if counts is set or the
// values differ from the initial ones.
func (m *Module) bucket(a timeseries.Aggregator, counts bool) (b timeseries.OpenBucket) {
	switch a {
	case timeseries.MinOf, timeseries.MaxOf, timeseries.Range:
		b.High, b.Low = m.Double(), m.Double()
		counts = counts || b.High != -math.MaxFloat64 || b.Low != math.MaxFloat64
		if a == timeseries.MinOf {
			b.High = b.Low
		} else if a == timeseries.MaxOf {
			b.Low = b.High
		}
		if m.Version < seriesAlignment {
			m.Text() // whether the bucket is empty
		}
	case timeseries.SumOf:
		b.Sum = m.Double()
		m.emptyMark()
		counts = counts || b.Sum != 0
	case timeseries.Count, timeseries.CountAll:
		b.Count = m.count(m.Double())
		m.emptyMark()
	case timeseries.CountNaN:
		b.NaNs = m.count(m.Double())
	case timeseries.FirstOf:
		b.First = m.Double()
		if m.Version >= seriesPolicy {
			counts = m.Uint() == 0
		}
	case timeseries.LastOf:
		b.Last = m.Double()
		m.emptyMark()
	case timeseries.Avg:
		b.Sum, b.Count = m.Double(), m.count(m.Double())
		if m.Version >= seriesOverflow && m.Uint() != 0 {
			b.TooLarge, b.Average, b.Sum = true, b.Sum, 0
		}
	case timeseries.StdP, timeseries.StdS, timeseries.VarP, timeseries.VarS:
		b.Sum, b.Squares, b.Count = m.Double(), m.Double(), m.count(float64(m.Uint()))
	case timeseries.TWA:
		b.Area, b.Previous = m.Double(), timeseries.Sample{Time: m.natural(), Value: m.Double()}
		m.Uint() // the start of the bucket
		m.Uint() // and its end
		b.From = m.natural()
		m.Uint() // the time of the last sample
		first := m.Uint() != 0
		b.Count = m.count(float64(m.Uint()))
		m.Uint() // whether samples come in reverse order
		b.HasPrevious = b.Count > 0 || !first
	}
	switch a {
	case timeseries.MinOf, timeseries.MaxOf, timeseries.Range, timeseries.SumOf, timeseries.FirstOf, timeseries.LastOf:
		if counts {
			b.Count = 1
		}
	}
	return b
}

// emptyMark skips the mark for an empty bucket that some versions have for most aggregators.
func (m *Module) emptyMark() {
	if m.Version >= seriesPolicy && m.Version < seriesLastOfEmpty {
		m.Uint()
	}
}

// sample adds a sample.
func (m *Module) sample(b *timeseries.Builder, x timeseries.Sample) {
	if m.err == nil && !b.Add(x) {
		m.Corrupt("a sample at the time %d is out of order", x.Time)
	}
}

// plainChunk reads a chunk that is not compressed.
func (m *Module) plainChunk(b *timeseries.Builder) {
	m.Uint() // the time of the first sample
	n, size := m.Uint(), m.Uint()
	data := m.bytes()
	if uint64(len(data)) != size || n > size/seriesSampleSize {
		m.Corrupt("a chunk of %d samples in %d bytes, which should be %d", n, len(data), size)
	}
	b.Chunk()
	for ; n > 0 && m.err == nil; n-- {
		m.sample(b, timeseries.Sample{Time: int64(binary.LittleEndian.Uint64(data)),
			Value: math.Float64frombits(binary.LittleEndian.Uint64(data[8:]))})
		data = data[seriesSampleSize:]
	}
}

// compressedChunk reads a compressed chunk.
func (m *Module) compressedChunk(b *timeseries.Builder) {
	size, n, used := m.Uint(), m.Uint(), m.Uint()
	value, first := m.Uint(), m.natural()
	m.Uint() // the last time
	m.Uint() // the last distance between times
	m.Uint() // the last value
	m.Uint() // the window: its lead
	m.Uint() // and trail
	data := m.bytes()
	if uint64(len(data)) != size || used > size*8 {
		m.Corrupt("a chunk of %d bits in %d bytes, which should be %d", used, len(data), size)
	}
	if m.err != nil {
		return
	}
	b.Chunk()
	r := gorillaReader{data: data, end: uint(used)}
	m.Fail(r.samples(n, timeseries.Sample{Time: first, Value: math.Float64frombits(value)}, func(x timeseries.Sample) error {
		m.sample(b, x)
		return m.err
	}))
}

// writeSeries writes a series as RedisTimeSeries does.
func writeSeries(e *Encoder, entry *engine.Entry) {
	s := entry.Series()
	if e.alone {
		s = s.Alone()
	}
	version := seriesVersion(s)
	w := e.moduleHead(seriesModule, version)
	w.Text(entry.Key())
	last, _ := s.Newest()
	options := uint64(seriesCompressed)
	if s.Plain {
		options = seriesPlain
	}
	w.Uint(uint64(s.Retention), uint64(s.ChunkSize), options, uint64(last.Time))
	w.Double(last.Value)
	w.Uint(uint64(s.Stored()), numberIn(seriesPolicies[:], s.Policy))
	if s.Source() == "" {
		w.Uint(0)
	} else {
		w.Uint(1)
		w.Text(s.Source())
	}
	w.Uint(uint64(s.IgnoreTime))
	w.Double(s.IgnoreValue)
	w.Uint(uint64(len(s.Labels())))
	for _, l := range s.Labels() {
		w.Text(l.Name)
		w.Text(l.Value)
	}
	w.Uint(uint64(len(s.Rules())))
	for _, r := range s.Rules() {
		w.rule(r, version)
	}
	w.chunks(s)
	w.End()
}

// numberIn returns the index of an element that is in a list.
func numberIn[T comparable](list []T, element T) (n uint64) {
	for list[n] != element {
		n++
	}
	return n
}

// seriesVersion returns the version in which a series is written.
func seriesVersion(s *timeseries.Series) uint64 {
	for _, r := range s.Rules() {
		b := r.State()
		if r.Aggregator == timeseries.CountNaN || r.Aggregator == timeseries.CountAll || b.Open && !b.Counts {
			return seriesCountsNaN
		}
	}
	return seriesIgnore
}

// rule writes a rule.
func (w ModuleWriter) rule(r *timeseries.Rule, version uint64) {
	b := r.State()
	start := uint64(seriesNoBucket)
	if b.Open {
		start = uint64(max(b.Start, 0))
	}
	w.Text(r.Destination)
	// Element 0 is no aggregator, although it equals one.
	w.Uint(uint64(r.Bucket), uint64(r.Align), 1+numberIn(seriesAggregators[1:], r.Aggregator), start)
	if version >= seriesCountsNaN {
		w.Uint(flag(b.Open && b.Counts))
	}
	w.bucket(r, &b)
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// bucket writes the state of a rule's open bucket.
func (w ModuleWriter) bucket(r *timeseries.Rule, b *timeseries.OpenBucket) {
	switch r.Aggregator {
	case timeseries.MinOf, timeseries.MaxOf, timeseries.Range:
		high, low := -math.MaxFloat64, math.MaxFloat64
		if b.Count > 0 && r.Aggregator != timeseries.MinOf {
			high = b.High
		}
		if b.Count > 0 && r.Aggregator != timeseries.MaxOf {
			low = b.Low
		}
		w.Double(high)
		w.Double(low)
	case timeseries.SumOf:
		w.Double(b.Sum)
	case timeseries.Count:
		w.Double(float64(b.Count))
	case timeseries.CountAll:
		w.Double(float64(b.Count + b.NaNs))
	case timeseries.CountNaN:
		w.Double(float64(b.NaNs))
	case timeseries.FirstOf:
		w.Double(b.First)
		w.Uint(flag(b.Count == 0))
	case timeseries.LastOf:
		w.Double(b.Last)
	case timeseries.Avg:
		if b.TooLarge {
			w.Double(b.Average)
		} else {
			w.Double(b.Sum)
		}
		w.Double(float64(b.Count))
		w.Uint(flag(b.TooLarge))
	case timeseries.StdP, timeseries.StdS, timeseries.VarP, timeseries.VarS:
		w.Double(b.Sum)
		w.Double(b.Squares)
		w.Uint(uint64(b.Count))
	case timeseries.TWA:
		var start, end, from, last uint64
		if b.Open {
			start, end = uint64(max(b.Start, 0)), uint64(b.Start)+uint64(r.Bucket)
		}
		if b.Count > 0 {
			from, last = uint64(b.From), uint64(b.Previous.Time)
		}
		w.Double(b.Area)
		w.Uint(uint64(b.Previous.Time))
		w.Double(b.Previous.Value)
		w.Uint(start, end, from, last, flag(!b.HasPrevious), uint64(b.Count), 0)
	}
}

// chunks writes the samples. The last chunk has room for more; an empty series has one empty chunk.
func (w ModuleWriter) chunks(s *timeseries.Series) {
	n := s.Chunks()
	w.Uint(uint64(n))
	var buf []byte
	chunk := func(samples []timeseries.Sample) {
		room := 0
		if n--; n == 0 {
			room = s.ChunkSize
		}
		if s.Plain {
			buf = w.plainChunk(samples, room, buf)
		} else {
			buf = w.compressedChunk(samples, room, buf)
		}
		w.e.written()
	}
	if s.Stored() == 0 {
		chunk(nil)
		return
	}
	s.EachRun(chunk)
}

// plainChunk writes an uncompressed chunk of at least room bytes. It uses buf as memory, and returns it for the next one.
func (w ModuleWriter) plainChunk(samples []timeseries.Sample, room int, buf []byte) []byte {
	buf = buf[:0]
	first := int64(0)
	for i, x := range samples {
		if i == 0 {
			first = x.Time
		}
		buf = binary.LittleEndian.AppendUint64(buf, uint64(x.Time))
		buf = binary.LittleEndian.AppendUint64(buf, math.Float64bits(x.Value))
	}
	buf = padded(buf, room)
	w.Uint(uint64(first), uint64(len(samples)), uint64(len(buf)))
	w.e.moduleString(buf)
	return buf
}

// compressedChunk is plainChunk for a compressed one.
func (w ModuleWriter) compressedChunk(samples []timeseries.Sample, room int, buf []byte) []byte {
	c := gorillaOf(samples, buf)
	buf = padded(c.bits, max(room, seriesWord))
	w.Uint(uint64(len(buf)), uint64(len(samples)), uint64(c.used), math.Float64bits(c.first.Value), uint64(c.first.Time),
		uint64(c.last.Time), uint64(c.delta), c.value, uint64(c.lead), uint64(c.trail))
	w.e.moduleString(buf)
	return buf
}

// padded appends zeros to b until it has at least n bytes, and a multiple of seriesWord.
func padded(b []byte, n int) []byte {
	n = max(n, (len(b)+seriesWord-1)/seriesWord*seriesWord)
	return append(b, make([]byte, n-len(b))...)
}
