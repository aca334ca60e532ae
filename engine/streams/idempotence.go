// Idempotence: which entries producers have added lately, so that none is added twice.

package streams

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"unsafe"
)

// Idempotence says how long what producers have added is remembered. The zero value is no setting.
type Idempotence struct {
	Duration int // in seconds, up to MaxDuration
	MaxSize  int // how many entries of each producer at most, up to MaxSize
}

// Values of Idempotence.
const (
	MaxDuration = 86400
	MaxSize     = 10_000
)

// DefaultIdempotence is that of a server that was not told otherwise.
var DefaultIdempotence = Idempotence{Duration: 100, MaxSize: 100}

// valid reports whether a setting is within the limits.
func (i Idempotence) valid() bool {
	return i.Duration >= 1 && i.Duration <= MaxDuration && i.MaxSize >= 1 && i.MaxSize <= MaxSize
}

// ErrOtherEntry says that a producer has added another entry under an idempotent ID.
var ErrOtherEntry = errors.New("ERR IID already exists for this producer with a different stream ID")

// productions is what a stream remembers of its producers. Streams that have none do not have it.
//
// An idempotent ID is forgotten as soon as its entry, whose ID tells when it was added, is older than the duration, or
// the producer has added maxSize others since. What is too old counts as forgotten at once, and goes when its producer
// adds something, or when it is the producer's turn: each addition looks at one other.
type productions struct {
	Idempotence
	added, duplicates int64
	// entries has the entry of each idempotent ID by the name of its part, which has also the producer's.
	entries   map[string]ID
	producers map[string]*producer
	turns     []*producer // all producers
	turn      int         // whose turn it is
	bytes     int         // of names
}

// producer has the names of its parts in the order of the entries.
type producer struct {
	name  string
	queue []production
	at    int // in turns
}

// production is that a producer has added an entry.
type production struct {
	entry ID
	part  string
}

// Memory of the structures around the names, with some free slots.
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

// productionPart appends the name of the part that an idempotent ID of a producer is.
func productionPart(dst, producer, iid []byte) []byte {
	return append(appendBytes(append(dst, kindProduction), producer), iid...)
}

// Idempotence returns the setting of the stream; the zero value if it has none because nobody has asked for any.
func (s *Stream) Idempotence() Idempotence {
	if s.productions == nil {
		return Idempotence{}
	}
	return s.productions.Idempotence
}

// SetIdempotence makes the stream remember its producers as given, which must be within the limits. If it did otherwise
// before it forgets all that they have added.
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

// Produced returns the entry that a producer has added under an idempotent ID, if that is remembered at the given time.
// Without a time everything is that the stream knows, which is what repeats a change.
func (s *Stream) Produced(producer, iid []byte, now int64) (entry ID, ok bool) {
	p := s.productions
	if p == nil {
		return ID{}, false
	}
	var scratch [128]byte
	entry, ok = p.entries[string(productionPart(scratch[:0], producer, iid))]
	return entry, ok && !p.forgets(entry, now)
}

// Always is the time at which nothing is forgotten for its age.
const Always = 0

// forgets reports whether entries added under idempotent IDs are too old to be remembered.
func (p *productions) forgets(entry ID, now int64) bool {
	return now > 0 && entry.Ms < uint64(now) && uint64(now)-entry.Ms >= uint64(p.Duration)*1000
}

// Duplicate counts that a producer wanted to add an entry once more. The stream must have an Idempotence.
func (s *Stream) Duplicate() {
	s.note(productionsPart)
	s.productions.duplicates++
}

// Produce remembers that a producer has added an entry under an idempotent ID, and forgets what is older than the entry
// allows. The stream must have an Idempotence.
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

// remember adds a production of a producer: usually its latest.
func (p *productions) remember(of *producer, made production) {
	p.entries[made.part] = made.entry
	p.bytes += len(made.part)
	i := len(of.queue)
	for i > 0 && made.entry.Less(of.queue[i-1].entry) {
		i--
	}
	of.queue = slices.Insert(of.queue, i, made)
}

// forgetOld forgets what is too old of what a producer has added, and the producer if nothing is left.
func (s *Stream) forgetOld(of *producer, now int64) {
	for len(of.queue) > 0 && s.productions.forgets(of.queue[0].entry, now) {
		s.forgetFirst(of)
	}
	if len(of.queue) == 0 {
		s.productions.drop(of)
	}
}

// forgetFirst forgets the first entry of a producer that has some.
func (s *Stream) forgetFirst(of *producer) {
	part := of.queue[0].part
	s.note(part)
	delete(s.productions.entries, part)
	s.productions.bytes -= len(part)
	of.queue[0] = production{}
	of.queue = of.queue[1:]
}

// forget forgets an entry of a producer, wherever it is in the queue.
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

// drop takes a producer out that has nothing in its queue.
func (p *productions) drop(of *producer) {
	last := p.turns[len(p.turns)-1]
	p.turns[of.at], last.at = last, of.at
	p.turns = p.turns[:len(p.turns)-1]
	delete(p.producers, of.name)
	p.bytes -= len(of.name)
}

// Record is Produce for what is known from elsewhere: it does nothing if the entry is remembered already, and fails
// with ErrOtherEntry if the idempotent ID is that of another one.
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

// ProducerCounts is what there is to say of the producers of a stream.
type ProducerCounts struct {
	Producers, Tracked int   // remembered at this time
	Added, Duplicates  int64 // ever
}

// ProducerCounts returns what there is to say of the producers at the given time. It looks at each of them.
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

// SetProducerCounts sets how many entries were ever added under an idempotent ID, and how many were not because they
// were there. The stream must have an Idempotence.
func (s *Stream) SetProducerCounts(added, duplicates int64) {
	s.note(productionsPart)
	s.productions.added, s.productions.duplicates = added, duplicates
}

// Productions calls fn with all that producers have added and the stream knows, by producers in the byte order of their
// names, and then in the order of the entries. fn must not change the stream.
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

// appendStored appends the stored form of the part that the stream has once.
func (p *productions) appendStored(dst []byte) []byte {
	for _, n := range [...]int64{int64(p.Duration), int64(p.MaxSize), p.added, p.duplicates} {
		dst = binary.AppendVarint(dst, n)
	}
	return dst
}

// decodeProductions reads what appendStored has written.
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

// load adds what is stored: the order of the entries comes with finish.
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

// finish orders what was loaded. It is an error if a producer has more than is kept.
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
