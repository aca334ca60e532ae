package rdb

import (
	"encoding/binary"
	"math"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/engine/streams"
)

// A stream is several listpacks, each with entries whose IDs are relative to one that precedes it. A listpack begins
// with a master entry:
//
//	count, deleted, number of fields, fields..., 0
//
// and every entry is
//
//	flags, ms, seq, [number of fields, field, value, ... | values...], number of elements since flags
//
// where the second form has the master's fields. The last ID and other numbers follow, and then the groups. From
// typeStream4 on, the data about producers comes at the end,
//
//	duration, maximum number, number of producers, [producer, number of entries, [idempotent ID, ms, seq ...] ...],
//	entries added, duplicates
//
// and from typeStream5 on, each group ends with the IDs of its released entries, in order of release.

const (
	entryDeleted    = 1 // flags
	entrySameFields = 2

	streamIDLength = 16
)

var streamKind = kind{
	numbers: []byte{typeStream, typeStream2, typeStream3, typeStream4, typeStream5},
	read:    (*decoder).stream,
	form:    func(entry *engine.Entry) form { return streamForm(entry.Stream()) },
	write:   func(e *Encoder, entry *engine.Entry) { e.stream(entry.Stream(), streamForm(entry.Stream()).number) },
	saved: func(e *Encoder, entry *engine.Entry, _ lists.Limit) {
		s := entry.Stream()
		if e.stream(s, streamForm(s).number); streamForm(s).number != typeStream2 {
			return
		}
		for _, g := range s.Groups() { // every consumer with its active time
			e.buf = append(e.buf, make([]byte, 8*len(g.Consumers()))...)
		}
	},
}

// streamForm returns the oldest form that can represent a stream completely, except for the consumers' active times.
func streamForm(s *streams.Stream) form {
	for _, g := range s.Groups() {
		if g.Released() > 0 {
			return form{typeStream5, VersionReleased}
		}
	}
	if s.Idempotence() != (streams.Idempotence{}) {
		return form{typeStream4, VersionProducers}
	}
	return form{typeStream2, Version}
}

func (d *decoder) stream(typ byte, lim *Limits) (any, error) {
	s := streams.New()
	n, err := d.length()
	for ; n > 0 && err == nil; n-- {
		err = d.streamBlock(s, lim.Stream)
		d.recycle()
	}
	if err != nil {
		return nil, err
	}
	if err := d.streamMeta(typ, s); err != nil {
		return nil, err
	}
	n, err = d.length()
	for ; n > 0 && err == nil; n-- {
		err = d.streamGroup(typ, s)
		d.recycle()
	}
	if err == nil && typ >= typeStream4 {
		err = d.producers(s)
	}
	return s, err
}

// producers reads the data about a stream's producers. A stream with Redis's default setting and without producers
// counts as one without a setting.
func (d *decoder) producers(s *streams.Stream) error {
	var duration, size, n, added, duplicates uint64
	if err := d.numbers(&duration, &size, &n); err != nil {
		return err
	}
	how := streams.Idempotence{Duration: int(duration), MaxSize: int(size)}
	if duration < 1 || duration > streams.MaxDuration || size < 1 || size > streams.MaxSize {
		return corrupt("a stream that remembers %d entries for %d seconds", size, duration)
	}
	if n > 0 || how != streams.DefaultIdempotence {
		s.SetIdempotence(how)
	}
	for ; n > 0; n-- {
		if err := d.producer(s, how.MaxSize); err != nil {
			return err
		}
		d.recycle()
	}
	if err := d.numbers(&added, &duplicates); err != nil {
		return err
	}
	if added > math.MaxInt64 || duplicates > math.MaxInt64 {
		return corrupt("a stream with %d entries of producers", added)
	}
	if added > 0 || duplicates > 0 {
		s.SetIdempotence(how)
	}
	if s.Idempotence() == how {
		s.SetProducerCounts(int64(added), int64(duplicates))
	}
	return nil
}

// producer reads the data about one producer.
func (d *decoder) producer(s *streams.Stream, size int) error {
	text, err := d.string()
	if err != nil {
		return err
	}
	name := append([]byte(nil), text...)
	n, err := d.length()
	if err == nil && n > uint64(size) {
		err = corrupt("a producer with %d entries", n)
	}
	for ; n > 0 && err == nil; n-- {
		var iid []byte
		var entry streams.ID
		if iid, err = d.string(); err == nil {
			err = d.numbers(&entry.Ms, &entry.Seq)
		}
		if _, twice := s.Produced(name, iid, streams.Always); err == nil && twice {
			err = corrupt("an entry of a producer that comes twice")
		}
		if err == nil {
			s.Produce(name, iid, entry)
		}
	}
	return err
}

// streamMeta reads the data between the entries and the groups. The number of entries may be too large: Redis 5 counts
// those that it has trimmed.
func (d *decoder) streamMeta(typ byte, s *streams.Stream) error {
	var length, added uint64
	var last, first, deleted streams.ID
	if err := d.numbers(&length, &last.Ms, &last.Seq); err != nil {
		return err
	}
	added = length
	if typ != typeStream {
		if err := d.numbers(&first.Ms, &first.Seq, &deleted.Ms, &deleted.Seq, &added); err != nil {
			return err
		}
	}
	if added = max(added, uint64(s.Len())); added > math.MaxInt64 {
		return corrupt("a stream that should have had %d entries", added)
	}
	if err := s.SetID(last, int64(added), deleted); err != nil {
		return corrupt("a stream: %v", err)
	}
	return nil
}

// streamBlock reads some entries.
func (d *decoder) streamBlock(s *streams.Stream, lim streams.Limits) error {
	id, err := d.string()
	if err != nil {
		return err
	}
	if len(id) != streamIDLength {
		return corrupt("the ID of a stream's block")
	}
	base := streamID(id)
	b, err := d.string()
	if err != nil {
		return err
	}
	p, err := listpack(b)
	if err != nil {
		return err
	}
	count, deleted, master, err := streamMaster(p)
	if err != nil {
		return err
	}
	live := int64(0)
	for i := int64(0); i < count+deleted; i++ {
		is, err := streamEntry(s, p, base, master, lim)
		if err != nil {
			return err
		}
		if is {
			live++
		}
	}
	if more, err := p.more(); err != nil || more || live != count {
		return corrupt("a stream's block that should have %d entries", count)
	}
	return nil
}

// streamMaster reads a master entry.
func streamMaster(p *packed) (count, deleted int64, fields [][]byte, err error) {
	var n, end int64
	if count, err = p.number(); err == nil {
		if deleted, err = p.number(); err == nil {
			n, err = p.number()
		}
	}
	if err != nil {
		return 0, 0, nil, err
	}
	if count < 0 || deleted < 0 || count+deleted <= 0 || count > math.MaxInt32 || deleted > math.MaxInt32 || n < 0 {
		return 0, 0, nil, corrupt("a stream's block with %d and %d entries", count, deleted)
	}
	for ; n > 0; n-- {
		field, err := p.next()
		if err != nil {
			return 0, 0, nil, err
		}
		fields = append(fields, append([]byte(nil), field...))
	}
	if end, err = p.number(); err == nil && end != 0 {
		err = corrupt("a stream's block without the end of its fields")
	}
	return count, deleted, fields, err
}

// streamEntry reads an entry, and adds it unless it is deleted, as live reports.
func streamEntry(s *streams.Stream, p *packed, base streams.ID, master [][]byte, lim streams.Limits) (live bool,
	err error) {
	var flags, ms, seq, size int64
	before := p.seen
	for _, n := range []*int64{&flags, &ms, &seq} {
		if *n, err = p.number(); err != nil {
			return false, err
		}
	}
	var fields [][]byte
	text := func() {
		var v []byte
		if err == nil {
			if v, err = p.next(); err == nil {
				fields = append(fields, append([]byte(nil), v...))
			}
		}
	}
	if flags&entrySameFields != 0 {
		for _, f := range master {
			fields = append(fields, f)
			text()
		}
	} else {
		var n int64
		if n, err = p.number(); err == nil && n < 0 {
			err = corrupt("a stream's entry with %d fields", n)
		}
		for ; n > 0 && err == nil; n-- {
			text()
			text()
		}
	}
	if err != nil {
		return false, err
	}
	length := int64(p.seen - before)
	if size, err = p.number(); err != nil {
		return false, err
	}
	if size != length || len(fields) == 0 {
		return false, corrupt("a stream's entry of %d elements", size)
	}
	if flags&entryDeleted != 0 {
		return false, nil
	}
	// The differences wrap around, as they do in Redis.
	id := streams.ID{Ms: base.Ms + uint64(ms), Seq: base.Seq + uint64(seq)}
	if err := s.Append(id, fields, lim); err != nil {
		return false, corrupt("a stream's entry %s: %v", id, err)
	}
	return true, nil
}

// streamGroup reads a consumer group.
func (d *decoder) streamGroup(typ byte, s *streams.Stream) error {
	name, err := d.string()
	if err != nil {
		return err
	}
	var last streams.ID
	if err := d.numbers(&last.Ms, &last.Seq); err != nil {
		return err
	}
	read := s.EstimateRead(last)
	if typ != typeStream {
		n, err := d.length()
		if err != nil {
			return err
		}
		if read = int64(n); read < streams.UnknownEntriesRead {
			return corrupt("a group that has read %d entries", read)
		}
	}
	g, created := s.CreateGroup(name, last, read)
	if !created {
		return corrupt("a group that comes twice")
	}
	d.recycle()

	type delivery struct{ time, count int64 }
	pending := map[streams.ID]delivery{}
	n, err := d.length()
	for ; n > 0 && err == nil; n-- {
		id, p := streams.ID{}, delivery{}
		if id, err = d.streamID(); err != nil {
			break
		}
		if p.time, err = d.millis(); err != nil {
			break
		}
		var count uint64
		if count, err = d.length(); err != nil {
			break
		}
		p.count = int64(count)
		if _, twice := pending[id]; twice || p.count < 0 || p.time < 0 {
			err = corrupt("a pending entry")
		}
		pending[id] = p
	}
	if err != nil {
		return err
	}
	n, err = d.length()
	for ; n > 0 && err == nil; n-- {
		err = d.streamConsumer(typ, g, func(id streams.ID, c *streams.Consumer) bool {
			p, ok := pending[id]
			if ok {
				g.AddPending(id, c, p.time, p.count)
				delete(pending, id)
			}
			return ok
		})
		d.recycle()
	}
	if err == nil && typ >= typeStream5 {
		n, err = d.length()
		for ; n > 0 && err == nil; n-- {
			var id streams.ID
			if id, err = d.streamID(); err != nil {
				break
			}
			p, ok := pending[id]
			if !ok {
				return corrupt("a pending entry that was released and is not in the group, or is a consumer's")
			}
			g.AddReleased(id, p.count)
			delete(pending, id)
		}
	}
	if err == nil && len(pending) > 0 {
		err = corrupt("pending entries that belong to no consumer")
	}
	return err
}

// streamConsumer reads a consumer, and calls claim for each of its pending entries; claim reports whether the entry is
// pending.
func (d *decoder) streamConsumer(typ byte, g *streams.Group, claim func(streams.ID, *streams.Consumer) bool) error {
	name, err := d.string()
	if err != nil {
		return err
	}
	seen, err := d.millis()
	if err != nil {
		return err
	}
	active := seen
	if typ >= typeStream3 {
		if active, err = d.millis(); err != nil {
			return err
		}
	}
	c, created := g.CreateConsumer(name, seen)
	if !created {
		return corrupt("a consumer that comes twice")
	}
	c.SetTimes(seen, active)
	n, err := d.length()
	for ; n > 0 && err == nil; n-- {
		var id streams.ID
		if id, err = d.streamID(); err == nil && !claim(id, c) {
			err = corrupt("an entry that is pending for a consumer and not in the group")
		}
	}
	return err
}

func (d *decoder) streamID() (streams.ID, error) {
	b, err := d.fixed(streamIDLength)
	if err != nil {
		return streams.ID{}, err
	}
	return streamID(b), nil
}

func streamID(b []byte) streams.ID {
	return streams.ID{Ms: binary.BigEndian.Uint64(b), Seq: binary.BigEndian.Uint64(b[8:])}
}

func appendStreamID(dst []byte, id streams.ID) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, id.Ms), id.Seq)
}

// The size of the listpacks that are written: Redis's default.
const (
	blockEntries = 100
	blockBytes   = 4096
)

// stream writes a stream in one of its forms.
func (e *Encoder) stream(s *streams.Stream, typ byte) {
	var blocks [][]byte // pairs: the data before a listpack, and the listpack
	var b []byte        // the elements of a listpack
	var base streams.ID
	var fields [][]byte                // of the listpack's master entry
	entries, elements, head := 0, 0, 0 // head is the size of the listpack beside b
	end := func() {
		if entries == 0 {
			return
		}
		master := appendMaster(nil, entries, fields)
		elements += 4 + len(fields)
		blocks = append(blocks, appendStreamID(nil, base), sealListpack(append(master, b...), elements))
		b, entries, elements = b[:0], 0, 0
	}
	s.Range(streams.MinID, streams.MaxID, false, func(entry streams.Entry) bool {
		more, same := 0, true
		i := 0
		for f, v := range entry.Fields() {
			more += len(f) + len(v)
			same = same && i < len(fields) && string(f) == string(fields[i])
			i++
		}
		if entries == blockEntries || entries > 0 && head+len(b)+more >= blockBytes {
			end()
		}
		if entries == 0 {
			base, fields = entry.ID, fields[:0]
			for f := range entry.Fields() {
				fields = append(fields, append([]byte(nil), f...))
			}
			same = true
			head = packedBytes + len(appendMaster(nil, 1, fields))
		}
		same = same && i == len(fields)
		flags := int64(0)
		if same {
			flags = entrySameFields
		}
		n := int64(3)
		b = appendListpackInt(b, flags)
		b = appendListpackInt(b, int64(entry.ID.Ms-base.Ms))
		b = appendListpackInt(b, int64(entry.ID.Seq-base.Seq))
		if !same {
			b = appendListpackInt(b, int64(i))
			n++
		}
		for f, v := range entry.Fields() {
			if !same {
				b = appendListpackString(b, f)
				n++
			}
			b = appendListpackString(b, v)
			n++
		}
		b = appendListpackInt(b, n)
		elements += int(n) + 1
		entries++
		return true
	})
	end()
	e.length(uint64(len(blocks) / 2))
	for _, text := range blocks {
		e.string(text)
	}
	e.length(uint64(s.Len()))
	first := s.FirstID()
	for _, id := range []streams.ID{s.LastID(), first, s.MaxDeletedID()} {
		e.length(id.Ms)
		e.length(id.Seq)
	}
	e.length(uint64(s.EntriesAdded()))
	e.length(uint64(len(s.Groups())))
	for _, g := range s.Groups() {
		e.streamGroup(g, typ)
	}
	if typ >= typeStream4 {
		e.producers(s)
	}
}

// producers writes the data about a stream's producers.
func (e *Encoder) producers(s *streams.Stream) {
	how := s.Idempotence()
	if how == (streams.Idempotence{}) {
		how = streams.DefaultIdempotence
	}
	e.length(uint64(how.Duration))
	e.length(uint64(how.MaxSize))
	sizes := map[string]int{}
	s.Productions(func(producer, _ []byte, _ streams.ID) { sizes[string(producer)]++ })
	e.length(uint64(len(sizes)))
	left := 0 // entries left for the producer
	s.Productions(func(producer, iid []byte, entry streams.ID) {
		if left == 0 {
			left = sizes[string(producer)]
			e.string(producer)
			e.length(uint64(left))
		}
		left--
		e.string(iid)
		e.length(entry.Ms)
		e.length(entry.Seq)
	})
	counts := s.ProducerCounts(streams.Always)
	e.length(uint64(counts.Added))
	e.length(uint64(counts.Duplicates))
}

// appendMaster appends the elements of a listpack's master entry.
func appendMaster(dst []byte, entries int, fields [][]byte) []byte {
	dst = appendListpackInt(dst, int64(entries))
	dst = appendListpackInt(dst, 0)
	dst = appendListpackInt(dst, int64(len(fields)))
	for _, f := range fields {
		dst = appendListpackString(dst, f)
	}
	return appendListpackInt(dst, 0)
}

func (e *Encoder) streamGroup(g *streams.Group, typ byte) {
	e.string([]byte(g.Name))
	e.length(g.LastID.Ms)
	e.length(g.LastID.Seq)
	e.length(uint64(g.EntriesRead))
	e.length(uint64(g.PendingLen()))
	g.Pending(streams.MinID, streams.MaxID, func(n *streams.NACK) bool {
		e.buf = appendStreamID(e.buf, n.ID)
		e.millis(n.DeliveryTime())
		e.length(uint64(n.DeliveryCount))
		return true
	})
	e.length(uint64(len(g.Consumers())))
	for _, c := range g.Consumers() {
		e.string([]byte(c.Name))
		e.millis(c.SeenTime)
		if typ >= typeStream3 {
			e.millis(c.ActiveTime)
		}
		e.length(uint64(c.PendingLen()))
		c.Pending(streams.MinID, streams.MaxID, func(n *streams.NACK) bool {
			e.buf = appendStreamID(e.buf, n.ID)
			return true
		})
	}
	if typ >= typeStream5 {
		e.length(uint64(g.Released()))
		g.EachReleased(func(n *streams.NACK) { e.buf = appendStreamID(e.buf, n.ID) })
	}
}
