// Idempotence: the recent additions of producers, so that none is added twice.

package streams

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"unsafe"
)

// Idempotence says how long to remember additions. The zero value means no setting.
type Idempotence struct {
	Duration int // in seconds, up to MaxDuration
	MaxSize  int // maximum number of entries per producer, up to MaxSize
}

// The limits of an Idempotence.
const (
	MaxDuration = 86400
	MaxSize     = 10_000
)

// DefaultIdempotence is the default setting of a server.
var DefaultIdempotence = Idempotence{Duration: 100, MaxSize: 100}

// valid reports whether a setting is within the limits.
func (i Idempotence) valid() bool {
	return i.Duration >= 1 && i.Duration <= MaxDuration && i.MaxSize >= 1 && i.MaxSize <= MaxSize
}

// ErrOtherEntry says that the idempotent ID belongs to another entry of the producer.
var ErrOtherEntry = errors.New("ERR IID already exists for this producer with a different stream ID")

// productions has a stream's record of its producers. Streams without producers do not have it.
//
// An idempotent ID is forgotten once its entry, whose ID tells when it was added, is older than the duration, or once
// the producer has added maxSize others. IDs that are too old count as forgotten at once; they are removed when their
// producer adds an entry or has its turn: each addition cleans up one other producer.
type productions struct {
	Idempotence
	added, duplicates int64
	// entries has the entry of each idempotent ID, by the name of its part, which includes the producer's.
	entries   map[string]ID
	producers map[string]*producer
	turns     []*producer // all producers
	turn      int         // index of the next turn
	bytes     int         // of names
}

// producer has the names of its parts, in the order of the entries.
type producer struct {
	name  string
	queue []production
	at    int // index in turns
}

// production is an entry that a producer has added.
type production struct {
	entry ID
	part  string
}

// Memory of the structures around the names, including some free slots.
const (
	producerOverhead   = 160
	productionOverhead = 112
)

// memory returns how many bytes p takes.
func (p *productions) memory() int {
	if p == nil {
		return 0
	}
	return int(unsafe.Sizeof(*p)) + p.bytes + len(p.turns)*producerOverhead + len(p.entries)*productionOverhead
}

// productionPart appends the name of the part of a producer's idempotent ID.
func productionPart(dst, producer, iid []byte) []byte {
	return append(appendBytes(append(dst, kindProduction), producer), iid...)
}

// Idempotence returns the stream's setting, the zero value if none was ever made.
func (s *Stream) Idempotence() Idempotence {
	if s.productions == nil {
		return Idempotence{}
	}
	return s.productions.Idempotence
}

// SetIdempotence changes the setting, which must be within the limits. A different one makes the stream forget all
// additions.
func (s *Stream) SetIdempotence(how Idempotence) {
	if s.Idempotence() == how {
		return
	}
	s.note(productionsPart)
	if s.productions == nil {
		s.productions = &productions{}
	}
	p := s.productions
	if s.track != nil {
		for part := range p.entries {
			s.note(part)
		}
	}
	p.Idempotence = how
	p.entries, p.producers, p.turns, p.turn, p.bytes = map[string]ID{}, map[string]*producer{}, nil, 0, 0
}

// Produced returns the entry that a producer added under an idempotent ID, if the stream remembers it at time now. With
// Always, age does not matter, as when changes are repeated.
func (s *Stream) Produced(producer, iid []byte, now int64) (entry ID, ok bool) {
	p := s.productions
	if p == nil {
		return ID{}, false
	}
	var scratch [128]byte
	entry, ok = p.entries[string(productionPart(scratch[:0], producer, iid))]
	return entry, ok && !p.forgets(entry, now)
}

// Always is the time at which nothing counts as too old.
const Always = 0

// forgets reports whether an entry is too old to be remembered.
func (p *productions) forgets(entry ID, now int64) bool {
	return now > 0 && entry.Ms < uint64(now) && uint64(now)-entry.Ms >= uint64(p.Duration)*1000
}

// Duplicate counts an addition that was a duplicate. The stream must have an Idempotence.
func (s *Stream) Duplicate() {
	s.note(productionsPart)
	s.productions.duplicates++
}

// Produce records that a producer has added an entry under an idempotent ID, and removes what has become too old by the
// time of the entry. The stream must have an Idempotence.
func (s *Stream) Produce(producerID, iid []byte, entry ID) {
	p := s.productions
	s.note(productionsPart)
	p.added++
	part := text(productionPart(make([]byte, 0, 1+bytesLen(producerID)+len(iid)), producerID, iid))
	if before, ok := p.entries[part]; ok { // too old
		s.forget(p.producers[string(producerID)], before, part)
	}
	of := p.producers[string(producerID)]
	if of == nil {
		name := string(producerID)
		of = &producer{name: name, at: len(p.turns)}
		p.producers[name] = of
		p.turns = append(p.turns, of)
		p.bytes += len(name)
	}
	s.note(part)
	p.remember(of, production{entry, part})
	for len(of.queue) > p.MaxSize || p.forgets(of.queue[0].entry, int64(entry.Ms)) && len(of.queue) > 1 {
		s.forgetFirst(of)
	}
	p.turn++
	if p.turn >= len(p.turns) {
		p.turn = 0
	}
	if other := p.turns[p.turn]; other != of {
		s.forgetOld(other, int64(entry.Ms))
	}
}

// remember adds a production to a producer's queue, usually at its end.
func (p *productions) remember(of *producer, made production) {
	p.entries[made.part] = made.entry
	p.bytes += len(made.part)
	i := len(of.queue)
	for i > 0 && made.entry.Less(of.queue[i-1].entry) {
		i--
	}
	of.queue = slices.Insert(of.queue, i, made)
}

// forgetOld removes a producer's entries that are too old, and the producer if none are left.
func (s *Stream) forgetOld(of *producer, now int64) {
	for len(of.queue) > 0 && s.productions.forgets(of.queue[0].entry, now) {
		s.forgetFirst(of)
	}
	if len(of.queue) == 0 {
		s.productions.drop(of)
	}
}

// forgetFirst removes the first entry of a producer that has some.
func (s *Stream) forgetFirst(of *producer) {
	part := of.queue[0].part
	s.note(part)
	delete(s.productions.entries, part)
	s.productions.bytes -= len(part)
	of.queue[0] = production{}
	of.queue = of.queue[1:]
}

// forget removes an entry of a producer, wherever it is in the queue.
func (s *Stream) forget(of *producer, entry ID, part string) {
	i, _ := slices.BinarySearchFunc(of.queue, entry, func(m production, id ID) int { return m.entry.Compare(id) })
	for of.queue[i].part != part {
		i++
	}
	s.note(part)
	delete(s.productions.entries, part)
	s.productions.bytes -= len(part)
	of.queue = slices.Delete(of.queue, i, i+1)
}

// drop removes a producer with an empty queue.
func (p *productions) drop(of *producer) {
	last := p.turns[len(p.turns)-1]
	p.turns[of.at], last.at = last, of.at
	p.turns = p.turns[:len(p.turns)-1]
	delete(p.producers, of.name)
	p.bytes -= len(of.name)
}

// Record is Produce for additions known from elsewhere: it does nothing if the entry is already recorded, and fails
// with ErrOtherEntry if the idempotent ID belongs to another one.
func (s *Stream) Record(producer, iid []byte, entry ID) error {
	if before, ok := s.Produced(producer, iid, Always); ok {
		if before != entry {
			return ErrOtherEntry
		}
		return nil
	}
	s.Produce(producer, iid, entry)
	return nil
}

// ProducerCounts are the counters of a stream's producers.
type ProducerCounts struct {
	Producers, Tracked int   // remembered at the given time
	Added, Duplicates  int64 // since the beginning
}

// ProducerCounts returns the counters at the given time. It visits every producer.
func (s *Stream) ProducerCounts(now int64) (c ProducerCounts) {
	p := s.productions
	if p == nil {
		return c
	}
	c.Added, c.Duplicates = p.added, p.duplicates
	for _, of := range p.turns {
		old, _ := slices.BinarySearchFunc(of.queue, now, func(m production, now int64) int {
			if p.forgets(m.entry, now) {
				return -1
			}
			return 1
		})
		if n := len(of.queue) - old; n > 0 {
			c.Producers++
			c.Tracked += n
		}
	}
	return c
}

// SetProducerCounts sets the counters of entries ever added under an idempotent ID, and of duplicates. The stream must
// have an Idempotence.
func (s *Stream) SetProducerCounts(added, duplicates int64) {
	s.note(productionsPart)
	s.productions.added, s.productions.duplicates = added, duplicates
}

// Productions calls fn with all recorded additions, by producer in the byte order of their names, and then in the order
// of the entries. fn must not change the stream.
func (s *Stream) Productions(fn func(producer, iid []byte, entry ID)) {
	if s.productions == nil {
		return
	}
	all := slices.Clone(s.productions.turns)
	slices.SortFunc(all, func(a, b *producer) int { return cmp.Compare(a.name, b.name) })
	for _, of := range all {
		for _, made := range of.queue {
			fn(raw(of.name), raw(made.part)[1+bytesLen(raw(of.name)):], made.entry)
		}
	}
}

// clone returns a deep copy; names are shared.
func (p *productions) clone() *productions {
	if p == nil {
		return nil
	}
	c := *p
	c.entries, c.producers = make(map[string]ID, len(p.entries)), make(map[string]*producer, len(p.producers))
	c.turns = make([]*producer, len(p.turns))
	for i, of := range p.turns {
		copied := *of
		copied.queue = slices.Clone(of.queue)
		c.turns[i], c.producers[of.name] = &copied, &copied
		for _, made := range copied.queue {
			c.entries[made.part] = made.entry
		}
	}
	return &c
}

// eachPart calls fn with the names of all parts.
func (p *productions) eachPart(fn func(part string)) {
	if p == nil {
		return
	}
	fn(productionsPart)
	for _, of := range p.turns {
		for _, made := range of.queue {
			fn(made.part)
		}
	}
}

// appendStored appends the stored form of the part with the setting and the counters.
func (p *productions) appendStored(dst []byte) []byte {
	for _, n := range [...]int64{int64(p.Duration), int64(p.MaxSize), p.added, p.duplicates} {
		dst = binary.AppendVarint(dst, n)
	}
	return dst
}

// decodeProductions reads the output of appendStored.
func decodeProductions(r *reader) (*productions, error) {
	p := &productions{}
	duration, size := r.varint(), r.varint()
	p.added, p.duplicates = r.varint(), r.varint()
	if duration <= MaxDuration && size <= MaxSize {
		p.Idempotence = Idempotence{int(duration), int(size)}
	}
	if !p.valid() || p.added < 0 || p.duplicates < 0 {
		return nil, errData
	}
	p.entries, p.producers = map[string]ID{}, map[string]*producer{}
	return p, nil
}

// load adds a stored production; finish orders the entries.
func (p *productions) load(producerID []byte, made production) {
	of := p.producers[string(producerID)]
	if of == nil {
		of = &producer{name: string(producerID), at: len(p.turns)}
		p.producers[of.name] = of
		p.turns = append(p.turns, of)
		p.bytes += len(of.name)
	}
	of.queue = append(of.queue, made)
	p.entries[made.part] = made.entry
	p.bytes += len(made.part)
}

// finish orders the loaded entries. It fails if a producer has more than the setting permits.
func (p *productions) finish() error {
	for _, of := range p.turns {
		if len(of.queue) > p.MaxSize {
			return errData
		}
		slices.SortFunc(of.queue, func(a, b production) int {
			return cmp.Or(a.entry.Compare(b.entry), cmp.Compare(a.part, b.part))
		})
	}
	return nil
}
