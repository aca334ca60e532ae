// Package timeseries is the data structure of time series: samples in chunks, a series' own data, and aggregation. It
// knows neither keys nor locks: a rule has the name of a destination and the state of its open bucket, and reports
// closed buckets through Compactions.
//
// A series of more than one chunk is stored in parts, one for each chunk, so that a checkpoint writes only changed
// chunks: for samples in order, the last one.
package timeseries

import (
	"math"
	"slices"
	"sort"
	"sync"
	"unsafe"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/labels"
)

// Policy says how to treat a sample at a time that already has one.
type Policy uint8

// The policies.
const (
	Block Policy = iota // refuse it
	First               // keep the old one
	Last                // replace the old one
	Min                 // keep the lower one
	Max                 // keep the higher one
	Sum                 // add both
	Unset               // the series has no policy of its own, and follows that of the server
)

var policyNames = [...]string{"block", "first", "last", "min", "max", "sum", ""}

// String returns the name of the policy in lower case, that of Unset is empty.
func (p Policy) String() string { return policyNames[p] }

// ParsePolicy returns the policy with a name in lower case.
func ParsePolicy(name string) (Policy, bool) {
	i := slices.Index(policyNames[:Unset], name)
	return Policy(max(i, 0)), i >= 0
}

// The limits of chunk sizes, which must be multiples of 8.
const (
	MinChunkSize = 48
	MaxChunkSize = 1 << 20
)

// Settings are the configurable properties of a series.
type Settings struct {
	// Retention is how many ms older than the newest sample a sample may be; 0 is unlimited.
	Retention int64
	// ChunkSize is the size in bytes of new chunks.
	ChunkSize int
	// Plain says that new chunks are not compressed.
	Plain bool
	// Policy applies to samples at times that already have one.
	Policy Policy
	// IgnoreTime, in ms, and IgnoreValue say how close to the newest sample a later one must be to be ignored under the
	// policy Last.
	IgnoreTime  int64
	IgnoreValue float64
}

// Series is a time series.
type Series struct {
	Settings
	chunks  []*chunk // in order
	length  int      // samples
	buffers int      // bytes of the buffers of chunks
	labels  []labels.Label
	said    int    // bytes of labels
	source  string // the key of which the series is a compaction; "" if none
	rules   []*Rule
	log     *delta.Log // nil unless stored in parts
}

// New returns a series without samples.
func New(settings Settings) *Series { return &Series{Settings: settings} }

// Labels returns the labels in the given order. They must not be changed.
func (s *Series) Labels() []labels.Label { return s.labels }

// indexed is about how many bytes a label takes in the index of labels, which count as the series'.
const indexed = 100

// SetLabels makes l, which the series then owns, its labels.
func (s *Series) SetLabels(l []labels.Label) {
	s.before(metaPart)
	s.labels, s.said = l, 0
	for i := range l {
		s.said += indexed + int(unsafe.Sizeof(l[i])) + len(l[i].Name) + len(l[i].Value)
	}
	s.after(metaPart)
}

// Set changes the settings. Existing chunks do not change.
func (s *Series) Set(settings Settings) {
	s.before(metaPart)
	s.Settings = settings
	s.after(metaPart)
}

// Source returns the key of which the series is a compaction, "" if none.
func (s *Series) Source() string { return s.source }

// SetSource sets the result of Source.
func (s *Series) SetSource(key string) {
	s.before(metaPart)
	s.source = key
	s.after(metaPart)
}

// Stored returns the number of samples, including those older than Retention.
func (s *Series) Stored() int { return s.length }

// Newest returns the last sample; ok is false if there is none.
func (s *Series) Newest() (last Sample, ok bool) {
	if len(s.chunks) == 0 {
		return Sample{}, false
	}
	c := s.chunks[len(s.chunks)-1]
	return Sample{c.last, math.Float64frombits(c.value)}, true
}

// Begin returns the earliest time permitted for a sample now.
func (s *Series) Begin() int64 {
	if last, ok := s.Newest(); ok && s.Retention > 0 {
		return max(last.Time-s.Retention, 0)
	}
	return 0
}

// Chunks returns the number of chunks, at least one.
func (s *Series) Chunks() int { return max(len(s.chunks), 1) }

// Chunk describes a chunk.
type Chunk struct {
	First, Last int64 // times of its first and last samples
	Samples     int
	Size        int // bytes
}

// EachChunk calls fn with each chunk that has samples.
func (s *Series) EachChunk(fn func(c Chunk)) {
	for _, c := range s.chunks {
		fn(Chunk{c.first, c.last, int(c.n), max(int(c.used+7)/8, s.ChunkSize)})
	}
}

// Outcome says what Add did with a sample.
type Outcome uint8

// The outcomes.
const (
	// Appended: the sample is the newest.
	Appended Outcome = iota
	// Inserted: the sample is late, or has changed another one.
	Inserted
	// Ignored: the sample is too close to the newest; the series has not changed.
	Ignored
	// Kept: the policy kept the old value; the series has not changed.
	Kept
	// TooOld: the sample is beyond the retention; the series has not changed.
	TooOld
	// Refused: the policy forbids the sample; the series has not changed.
	Refused
)

// Changed reports whether the series has changed.
func (o Outcome) Changed() bool { return o <= Inserted }

// Add adds a sample; the policy decides if its time already has one. Rules are updated by Advance and Repair.
func (s *Series) Add(sample Sample, policy Policy) Outcome {
	if len(s.chunks) == 0 {
		s.appendChunk(sample)
		return Appended
	}
	tail := s.chunks[len(s.chunks)-1]
	if sample.Time < tail.last && s.Retention > 0 && sample.Time < tail.last-s.Retention {
		return TooOld
	}
	if sample.Time >= tail.last && policy == Last && s.source == "" && sample.Time-tail.last <= s.IgnoreTime &&
		math.Abs(sample.Value-math.Float64frombits(tail.value)) <= s.IgnoreValue {
		return Ignored
	}
	if sample.Time > tail.last {
		s.append(tail, sample)
		return Appended
	}
	return s.upsert(sample, policy)
}

// append adds a sample after the last chunk's.
func (s *Series) append(tail *chunk, sample Sample) {
	if tail.full(s.ChunkSize) || tail.plain != s.Plain {
		s.buffers -= cap(tail.buf)
		tail.trim()
		s.buffers += cap(tail.buf)
		s.expire(tail.last)
		s.appendChunk(sample)
		return
	}
	s.beforeChunk(tail)
	was := cap(tail.buf)
	tail.append(sample)
	s.buffers += cap(tail.buf) - was
	s.length++
	s.afterChunk(tail)
}

// appendChunk adds a chunk with one sample at the end.
func (s *Series) appendChunk(sample Sample) {
	c := newChunk(sample, s.Plain)
	s.beforeChunk(c)
	s.chunks = append(s.chunks, c)
	s.buffers += cap(c.buf)
	s.length++
	s.afterChunk(c)
}

// expire drops chunks at the beginning that are entirely beyond the retention, given a sample at time last.
func (s *Series) expire(last int64) {
	if s.Retention == 0 {
		return
	}
	n := 0
	for n < len(s.chunks)-1 && s.chunks[n].last < last-s.Retention {
		n++
	}
	s.remove(0, n)
}

// remove removes chunks.
func (s *Series) remove(from, to int) {
	var parts []string
	for _, c := range s.chunks[from:to] {
		if s.log != nil {
			parts = append(parts, c.name())
			s.before(c.name())
		}
		s.length -= int(c.n)
		s.buffers -= cap(c.buf)
	}
	s.chunks = slices.Delete(s.chunks, from, to)
	for _, part := range parts {
		s.after(part)
	}
}

// at returns the index of the chunk that has or should have a sample at a time. There must be at least one chunk.
func (s *Series) at(time int64) int {
	i := sort.Search(len(s.chunks), func(i int) bool { return s.chunks[i].base > time })
	return max(i-1, 0)
}

// upsert adds a sample that is not later than all others.
func (s *Series) upsert(sample Sample, policy Policy) Outcome {
	i := s.at(sample.Time)
	c := s.chunks[i]
	room := borrow()
	defer room.giveBack()
	samples := c.samples(room.samples[:0])
	defer func() { room.samples = samples[:0] }()
	k := search(samples, sample.Time)
	if k < len(samples) && samples[k].Time == sample.Time {
		value, outcome := policy.choose(samples[k].Value, sample.Value)
		if outcome != Inserted {
			return outcome
		}
		samples[k].Value = value
	} else {
		samples = slices.Insert(samples, k, sample)
	}
	s.replace(i, samples)
	return Inserted
}

// choose returns the value of a sample that already had one.
func (p Policy) choose(old, value float64) (float64, Outcome) {
	oldNaN, newNaN := math.IsNaN(old), math.IsNaN(value)
	switch {
	case p == Block, oldNaN != newNaN && (p == Min || p == Max || p == Sum):
		return 0, Refused
	case p == First && !oldNaN, newNaN: // prefer a number to NaN
		return 0, Kept
	case p == Min:
		value = math.Min(old, value)
	case p == Max:
		value = math.Max(old, value)
	case p == Sum:
		value += old
	}
	if math.Float64bits(value) == math.Float64bits(old) {
		return 0, Kept
	}
	return value, Inserted
}

// search returns the index of the first sample at or after a time.
func search(samples []Sample, time int64) int {
	return sort.Search(len(samples), func(i int) bool { return samples[i].Time >= time })
}

// replace replaces the samples of a chunk, and adds a second chunk after it if they are too many. samples has no time
// that belongs in another chunk; it may be empty.
func (s *Series) replace(i int, samples []Sample) {
	c := s.chunks[i]
	if len(samples) == 0 {
		s.remove(i, i+1)
		return
	}
	s.beforeChunk(c)
	if first := samples[0].Time; first < c.base { // only possible in the first chunk
		was, is := c.name(), chunkPart(first)
		s.before(is)
		c.base, c.part = first, is
		defer s.after(was)
	}
	was := cap(c.buf)
	s.length += len(samples) - int(c.n)
	c.fill(samples)
	if len(samples) > 1 && c.over(s.ChunkSize) {
		half := len(samples) / 2
		second := newChunk(samples[half], c.plain)
		for _, sample := range samples[half+1:] {
			second.append(sample)
		}
		s.beforeChunk(second)
		c.fill(samples[:half])
		c.trim()
		s.chunks = slices.Insert(s.chunks, i+1, second)
		s.buffers += cap(second.buf)
		s.afterChunk(second)
	}
	s.buffers += cap(c.buf) - was
	s.afterChunk(c)
}

// Delete removes the samples from one time to another, both included, and returns how many there were.
func (s *Series) Delete(from, to int64) int {
	if len(s.chunks) == 0 || from > to {
		return 0
	}
	was := s.length
	i := s.at(from)
	if s.chunks[i].first < from && s.chunks[i].last >= from {
		s.cut(i, from, to)
	}
	for i < len(s.chunks) && s.chunks[i].first < from {
		i++
	}
	end := i
	for end < len(s.chunks) && s.chunks[end].last <= to {
		end++
	}
	s.remove(i, end)
	if i < len(s.chunks) && s.chunks[i].first <= to {
		s.cut(i, from, to)
	}
	return was - s.length
}

// cut removes samples from a chunk, of which some must stay.
func (s *Series) cut(i int, from, to int64) {
	samples := s.chunks[i].samples(nil)
	s.replace(i, slices.DeleteFunc(samples, func(x Sample) bool { return x.Time >= from && x.Time <= to }))
}

// Clone returns a copy without source and rules.
func (s *Series) Clone() *Series {
	c := &Series{Settings: s.Settings, labels: s.labels, said: s.said, length: s.length}
	for _, k := range s.chunks {
		c.chunks = append(c.chunks, k.clone())
		c.buffers += cap(c.chunks[len(c.chunks)-1].buf)
	}
	return c
}

// Alone returns the series without source and rules, for reading: it shares the samples.
func (s *Series) Alone() *Series {
	alone := *s
	alone.source, alone.rules, alone.log = "", nil, nil
	return &alone
}

// MemoryUsage returns how many bytes of memory the series takes, in constant time.
func (s *Series) MemoryUsage() int {
	return int(unsafe.Sizeof(*s)) + s.buffers + s.said + len(s.source) + len(s.chunks)*int(unsafe.Sizeof(chunk{})) +
		cap(s.chunks)*int(unsafe.Sizeof(s)) + len(s.rules)*int(unsafe.Sizeof(Rule{}))
}

// room is temporary memory for samples.
type room struct{ samples []Sample }

var rooms = sync.Pool{New: func() any { return &room{make([]Sample, roomSize)} }}

const (
	roomSize = 512
	maxRoom  = 64 << 10 // samples; larger memory is left to the garbage collector
)

func borrow() *room { return rooms.Get().(*room) }

func (r *room) giveBack() {
	if cap(r.samples) <= maxRoom {
		rooms.Put(r)
	}
}
