// The stored forms of streams.

package streams

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/atomredis/atomredis/engine/delta"
)

// A stream is stored in parts, whose names are described in parts.go. Their data is the format, followed by (numbers
// are varints)
//
//	b  last (as the ID of an entry), slots, names and body of the block, and its buffer
//	c  the seen time, the active time
//	d  the duration in seconds, the maximum number of entries, the number of added entries, the number of duplicates
//	g  the last ID, the entries read
//	i  the ID
//	m  the last ID, the highest deleted ID, the entries added
//	p  the name of the consumer with its length, the delivery time, the delivery count; for a released entry no name,
//	   and a time before endOfRelease
//
// A small stream is stored whole: the format, and name and data of every part with their lengths, in the byte order of
// the names.

// format is the first byte of every stored form.
const format = 1

// Errors of stored data.
var (
	errFormat     = errors.New("stream: unknown stored format")
	errCut        = errors.New("stream: stored form ends within a part")
	errName       = errors.New("stream: the name of a stored part is malformed")
	errOrder      = errors.New("stream: stored parts are out of order")
	errData       = errors.New("stream: a stored part is malformed")
	errBlock      = errors.New("stream: a stored block is malformed")
	errBlockOrder = errors.New("stream: stored blocks overlap")
	errConsumer   = errors.New("stream: a stored pending entry belongs to nobody")
	errGroup      = errors.New("stream: a stored consumer belongs to no group")
	errNoMeta     = errors.New("stream: a part that every stream has is missing")
	errProducer   = errors.New("stream: a producer is stored of a stream that remembers none")
	errLastID     = errors.New("stream: the stored last ID is before an entry")
)

// A stream is large if it has more than one block or exceeds one of these numbers.
const (
	smallGroups    = 16
	smallConsumers = 16 // in all groups
	smallPending   = 64 // in one group
	smallProduced  = 64 // remembered entries of all producers
)

// Large reports whether the stream must be stored in parts.
func (s *Stream) Large() bool {
	if s.blocks.len() > 1 || len(s.groups) > smallGroups ||
		s.productions != nil && len(s.productions.entries) > smallProduced {
		return true
	}
	consumers := 0
	for _, g := range s.groups {
		consumers += len(g.consumers)
		if g.pending.len() > smallPending {
			return true
		}
	}
	return consumers > smallConsumers
}

// Track makes the stream note changed parts in log from now on. All present parts count as changed.
func (s *Stream) Track(log *delta.Log) {
	s.eachPart(func(part string) { log.After(part, 0) })
	s.Attach(log)
}

// Attach makes the stream note changed parts in log from now on; nil ends that.
func (s *Stream) Attach(log *delta.Log) {
	s.track = nil
	if log != nil {
		s.track = &tracking{log: log}
	}
}

// Log returns the record of changes, nil if the stream has none.
func (s *Stream) Log() *delta.Log {
	if s.track == nil {
		return nil
	}
	return s.track.log
}

// AppendPart appends the stored form of a part to dst; ok is false if there is no such part.
func (s *Stream) AppendPart(dst []byte, name string) (out []byte, ok bool) {
	p, err := parsePart(raw(name))
	if err != nil {
		return dst, false
	}
	switch p.kind {
	case kindBlock:
		if b := s.blocks.get(p.id); b != nil {
			return b.appendStored(dst), true
		}
		return dst, false
	case kindMeta:
		dst = appendVarID(appendVarID(append(dst, format), s.lastID), s.maxDeletedID)
		return binary.AppendVarint(dst, s.entriesAdded), true
	case kindProductions:
		if s.productions == nil {
			return dst, false
		}
		return s.productions.appendStored(append(dst, format)), true
	case kindProduction:
		if s.productions != nil {
			if entry, ok := s.productions.entries[name]; ok {
				return appendVarID(append(dst, format), entry), true
			}
		}
		return dst, false
	}
	g := s.Group(p.group)
	if g == nil {
		return dst, false
	}
	switch p.kind {
	case kindConsumer:
		if c := g.Consumer(p.consumer); c != nil {
			dst = binary.AppendVarint(append(dst, format), c.SeenTime)
			return binary.AppendVarint(dst, c.ActiveTime), true
		}
	case kindGroup:
		return binary.AppendVarint(appendVarID(append(dst, format), g.LastID), g.EntriesRead), true
	case kindPending:
		if n := g.pending.get(p.id); n != nil {
			dst = appendText(append(dst, format), n.Owner())
			dst = binary.AppendVarint(dst, n.time)
			return binary.AppendVarint(dst, n.DeliveryCount), true
		}
	}
	return dst, false
}

// AppendBlob appends the stored form of the whole stream to dst.
func (s *Stream) AppendBlob(dst []byte) []byte {
	var names []string
	s.eachPart(func(part string) { names = append(names, part) })
	slices.Sort(names)
	dst = append(dst, format)
	var data []byte
	for _, name := range names {
		data, _ = s.AppendPart(data[:0], name)
		dst = appendBytes(appendText(dst, name), data)
	}
	return dst
}

// DecodeBlob returns the stream that AppendBlob has stored, or an error if b is not one. It does not keep b.
func DecodeBlob(b []byte) (*Stream, error) {
	if len(b) == 0 || b[0] != format {
		return nil, errFormat
	}
	l, r := NewLoader(), reader{b: b[1:]}
	for len(r.b) > 0 {
		name, data := r.bytes(), r.bytes()
		if r.bad {
			return nil, errCut
		}
		if err := l.Add(name, data); err != nil {
			return nil, err
		}
	}
	return l.Finish(nil)
}

// part is the parsed name of a part.
type part struct {
	kind            byte
	group, consumer []byte
	producer        []byte
	id              ID
}

// parsePart parses the name of a part.
func parsePart(name []byte) (p part, err error) {
	if len(name) == 0 {
		return part{}, errName
	}
	p.kind = name[0]
	r := reader{b: name[1:]}
	switch p.kind {
	case kindBlock:
		p.id = r.fixedID()
	case kindConsumer:
		p.group = r.bytes()
		p.consumer, r.b = r.b, nil
	case kindGroup:
		p.group, r.b = r.b, nil
	case kindMeta, kindProductions:
	case kindProduction:
		p.producer = r.bytes()
		r.b = nil
	case kindPending:
		p.group = r.bytes()
		p.id = r.fixedID()
	default:
		return part{}, errName
	}
	if !r.end() {
		return part{}, errName
	}
	return p, nil
}

// Loader builds a stream from its parts.
type Loader struct {
	s      *Stream
	last   string            // the name of the last part
	groups map[string]*Group // those mentioned so far
	known  int               // number of groups whose own part was seen
	meta   bool              // seen
}

// NewLoader returns a Loader that has no parts.
func NewLoader() *Loader { return &Loader{s: New(), groups: map[string]*Group{}} }

// Add adds the part with the given name and data, and keeps neither. Parts come in the byte order of their names, each
// once; a part out of order, or one that belongs to no stream, is an error. After an error the Loader is useless.
func (l *Loader) Add(name, data []byte) error {
	if string(name) <= l.last { // no name is empty
		return errOrder
	}
	l.last = string(name)
	p, err := parsePart(name)
	if err != nil {
		return err
	}
	if len(data) == 0 || data[0] != format {
		return errFormat
	}
	r := reader{b: data[1:]}
	switch p.kind {
	case kindBlock:
		return l.addBlock(p.id, &r)
	case kindConsumer:
		g := l.group(p.group)
		g.consumers = append(g.consumers, newConsumer(g, string(p.consumer), r.varint(), r.varint()))
	case kindGroup:
		g := l.group(p.group)
		g.LastID, g.EntriesRead = r.id(), r.varint()
		l.known++
	case kindProductions:
		if l.s.productions, err = decodeProductions(&r); err != nil {
			return err
		}
	case kindProduction:
		if l.s.productions == nil {
			return errProducer
		}
		l.s.productions.load(p.producer, production{r.id(), string(name)})
	case kindMeta:
		l.s.lastID, l.s.maxDeletedID, l.s.entriesAdded = r.id(), r.id(), r.varint()
		l.meta = true
	case kindPending:
		g := l.groups[string(p.group)]
		consumer, time, count := r.bytes(), r.varint(), r.varint()
		released := time < endOfRelease
		if g == nil || !released && g.Consumer(consumer) == nil || released && len(consumer) > 0 {
			return errConsumer
		}
		n := g.pending.add(p.id)
		if *n = (NACK{ID: p.id, time: time, DeliveryCount: count}); !released {
			n.Consumer = g.Consumer(consumer)
			*n.Consumer.pending.add(p.id) = p.id
			break
		}
		if g.released++; g.released == 1 || g.lastRelease < time {
			g.lastRelease = time
		}
	}
	if !r.end() {
		return errData
	}
	return nil
}

// group returns the group with the given name, and creates it if it is new.
func (l *Loader) group(name []byte) *Group {
	g := l.groups[string(name)]
	if g == nil {
		g = newGroup(l.s, string(name), ID{}, 0)
		l.groups[g.Name] = g
	}
	return g
}

func (l *Loader) addBlock(base ID, r *reader) error {
	s := l.s
	b, err := decodeBlock(base, r)
	if err != nil {
		return err
	}
	if tail := s.blocks.last(); tail != nil && !tail.newest().id.Less(base) {
		return errBlockOrder
	}
	*s.blocks.add(base) = b
	s.buffers += cap(b.buf)
	s.length += int(b.live)
	return nil
}

// Finish returns the stream, which notes its changes in log.
func (l *Loader) Finish(log *delta.Log) (*Stream, error) {
	s := l.s
	switch {
	case !l.meta:
		return nil, errNoMeta
	case l.known != len(l.groups):
		return nil, errGroup
	case s.blocks.len() > 0 && s.lastID.Less(s.blocks.last().newest().id):
		return nil, errLastID
	}
	if s.productions != nil {
		if err := s.productions.finish(); err != nil {
			return nil, err
		}
	}
	for _, g := range l.groups {
		s.groups = append(s.groups, g)
	}
	slices.SortFunc(s.groups, func(a, b *Group) int { return cmp.Compare(a.Name, b.Name) })
	if log != nil {
		s.track = &tracking{log: log}
	}
	return s, nil
}

// appendStored appends the stored form of the block, including deleted entries: they count towards the size at which
// the block is full.
func (b *block) appendStored(dst []byte) []byte {
	ms, seq := b.distance(b.last)
	dst = append(dst, format)
	for _, v := range [...]uint64{ms, seq, uint64(b.slots), uint64(b.names), uint64(b.body)} {
		dst = binary.AppendUvarint(dst, v)
	}
	return append(dst, b.buf...)
}

// decodeBlock reads a block from r, and checks everything that the methods of blocks rely on.
func decodeBlock(base ID, r *reader) (b block, err error) {
	b.base = base
	var ok bool
	if b.last, ok = r.idFrom(base); !ok {
		return b, errBlock
	}
	slots, names, body := r.uvarint(), r.uvarint(), r.uvarint()
	if r.bad || slots > math.MaxUint32 || names == 0 || uint64(len(r.b)) > math.MaxUint32 || body > uint64(len(r.b)) ||
		names > body {
		return b, errBlock
	}
	b.slots, b.names, b.body = uint32(slots), uint32(names), uint32(body)
	b.buf = slices.Clone(r.b)
	nr := reader{b: b.buf[:b.body]}
	nr.skip(names)
	if !nr.end() {
		return b, errBlock
	}

	var newest ID
	found := uint32(0)
	for pos := int(b.body); pos < len(b.buf); found++ {
		id, next, ok := b.check(pos)
		if !ok {
			return b, errBlock
		}
		if b.buf[pos]&flagDeleted != 0 {
			b.dead += uint32(next - pos)
		} else {
			if b.live == 0 {
				b.head = uint32(pos)
			} else if !newest.Less(id) {
				return b, errBlock
			}
			newest = id
			b.live++
		}
		pos = next
	}
	if b.live == 0 || b.slots < found || b.last.Less(newest) || int(b.dead) > len(b.buf)/2 {
		return b, errBlock
	}
	return b, nil
}

// check checks that there is a slot at pos, and returns its ID and the start of the next one.
func (b *block) check(pos int) (id ID, next int, ok bool) {
	flags := b.buf[pos]
	if flags&^(flagDeleted|flagShared) != 0 {
		return ID{}, 0, false
	}
	rest := reader{b: b.buf[pos+1:]}
	r := reader{b: rest.bytes()}
	if id, ok = r.idFrom(b.base); !ok {
		return ID{}, 0, false
	}
	if flags&flagShared != 0 {
		r.skip(uint64(b.names))
	} else {
		n := r.uvarint()
		r.skip(n) // the names and the values
		r.skip(n)
		r.bad = r.bad || n == 0
	}
	end := len(b.buf) - len(rest.b)
	var back [binary.MaxVarintLen64]byte
	if rest.bad || !r.end() || !bytes.HasPrefix(rest.b, appendBack(back[:0], end-pos)) {
		return ID{}, 0, false
	}
	return id, end + uvarintLen(uint64(end-pos)), true
}

// appendVarID appends an ID as two uvarints.
func appendVarID(dst []byte, id ID) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, id.Ms), id.Seq)
}

// reader reads untrusted data.
type reader struct {
	b   []byte // unread bytes
	bad bool   // a read has failed, so all results are invalid
}

// end reports whether all reads succeeded and nothing is left.
func (r *reader) end() bool { return !r.bad && len(r.b) == 0 }

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || n != uvarintLen(v) {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	v := r.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// bytes reads a byte string, in the form of appendBytes.
func (r *reader) bytes() []byte {
	n := r.uvarint()
	if r.bad || n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

// skip reads n byte strings.
func (r *reader) skip(n uint64) {
	for ; n > 0 && !r.bad; n-- {
		r.bytes()
	}
}

// id reads an ID as two uvarints.
func (r *reader) id() ID { return ID{r.uvarint(), r.uvarint()} }

// fixedID reads an ID in the form of a part's name.
func (r *reader) fixedID() ID {
	if r.bad || len(r.b) < idLen {
		r.bad = true
		return ID{}
	}
	id := ID{binary.BigEndian.Uint64(r.b), binary.BigEndian.Uint64(r.b[8:])}
	r.b = r.b[idLen:]
	return id
}

// idFrom reads an ID in a block's form; see distance.
func (r *reader) idFrom(base ID) (id ID, ok bool) {
	ms, seq := r.uvarint(), r.uvarint()
	if ms == 0 {
		seq += base.Seq
		if seq < base.Seq {
			return ID{}, false
		}
	}
	id = ID{base.Ms + ms, seq}
	return id, !r.bad && id.Ms >= base.Ms
}
