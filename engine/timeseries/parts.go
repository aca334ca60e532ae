package timeseries

import (
	"encoding/binary"
	"errors"
	"math"
	"sort"
	"strings"
	"unsafe"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/labels"
)

// How series are stored. The parts are named
//
//	a                    the series' own data: settings, labels, the source and the rules
//	b                    the states of the rules' open buckets; only if there are rules
//	c and eight bytes    a chunk; the bytes are its base, big-endian
//
// so that the series' own data comes first. A small series is stored whole: the format, and name and data of each part
// with their lengths, in the order of the names.

// format is the first byte of every stored form.
const format = 1

const (
	metaPart  = "a"
	statePart = "b"
	kindChunk = 'c'
	chunkName = 9 // length of a chunk's part name
)

// Errors of stored data.
var (
	errFormat = errors.New("series: unknown stored format")
	errCut    = errors.New("series: stored form ends within a part")
	errName   = errors.New("series: the name of a stored part is malformed")
	errOrder  = errors.New("series: stored parts are out of order")
	errMeta   = errors.New("series: the part that every series has is missing or malformed")
	errState  = errors.New("series: the stored state of a rule is malformed")
	errChunk  = errors.New("series: a stored chunk is malformed")
)

// chunkPart returns the part name of a chunk with a base.
func chunkPart(base int64) string {
	b := binary.BigEndian.AppendUint64([]byte{kindChunk}, uint64(base))
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// name returns the chunk's part name.
func (c *chunk) name() string {
	if c.part == "" {
		c.part = chunkPart(c.base)
	}
	return c.part
}

// before must be called before a part changes, appears or goes.
func (s *Series) before(part string) {
	if s.log != nil {
		s.log.Before(unsafe.Slice(unsafe.StringData(part), len(part)), s)
	}
}

// after must be called after a part has changed, appeared or gone. The name is kept.
func (s *Series) after(part string) {
	if s.log != nil {
		s.log.After(part, len(s.chunks))
	}
}

func (s *Series) beforeChunk(c *chunk) {
	if s.log != nil {
		s.before(c.name())
	}
}

func (s *Series) afterChunk(c *chunk) {
	if s.log != nil {
		s.after(c.name())
	}
}

// Large reports whether the series must be stored in parts.
func (s *Series) Large() bool { return len(s.chunks) > 1 }

// Track makes the series note changed parts in log from now on. All present parts count as changed.
func (s *Series) Track(log *delta.Log) {
	s.log = log
	s.after(metaPart)
	if len(s.rules) > 0 {
		s.after(statePart)
	}
	for _, c := range s.chunks {
		s.afterChunk(c)
	}
}

// Attach makes the series note changed parts in log from now on; nil ends that.
func (s *Series) Attach(log *delta.Log) { s.log = log }

// Log returns the record of changes, nil if the series has none.
func (s *Series) Log() *delta.Log { return s.log }

// Walk calls fn with the names of about count parts, in order. fn may keep them.
func (s *Series) Walk(c delta.Cursor, count int, fn func(name string)) (next delta.Cursor, more bool) {
	i := 0
	if c.Name == "" {
		fn(metaPart)
		fn(statePart)
	} else {
		i = sort.Search(len(s.chunks), func(i int) bool { return s.chunks[i].name() > c.Name })
	}
	for ; i < len(s.chunks) && count > 0; i++ {
		c.Name = s.chunks[i].name()
		fn(c.Name)
		count--
	}
	return c, i < len(s.chunks)
}

// AppendPart appends the stored form of a part to dst; ok is false if there is no such part.
func (s *Series) AppendPart(dst []byte, name string) (out []byte, ok bool) {
	switch {
	case name == metaPart:
		return s.appendMeta(dst), true
	case name == statePart:
		return s.appendStates(dst), len(s.rules) > 0
	case len(name) != chunkName || name[0] != kindChunk:
		return dst, false
	}
	i := sort.Search(len(s.chunks), func(i int) bool { return s.chunks[i].name() >= name })
	if i == len(s.chunks) || s.chunks[i].name() != name {
		return dst, false
	}
	return s.chunks[i].appendStored(dst), true
}

// AppendBlob appends the stored form of the whole series to dst.
func (s *Series) AppendBlob(dst []byte) []byte {
	dst = append(dst, format)
	var data []byte
	add := func(name string) {
		var ok bool
		if data, ok = s.AppendPart(data[:0], name); ok {
			dst = appendText(dst, name)
			dst = append(binary.AppendUvarint(dst, uint64(len(data))), data...)
		}
	}
	add(metaPart)
	add(statePart)
	for _, c := range s.chunks {
		add(c.name())
	}
	return dst
}

// DecodeBlob returns the series that AppendBlob has stored, or an error if b is not one. It does not keep b.
func DecodeBlob(b []byte) (*Series, error) {
	if len(b) == 0 || b[0] != format {
		return nil, errFormat
	}
	l, f := NewLoader(), fields{b: b[1:]}
	for len(f.b) > 0 {
		name, data := f.bytes(), f.bytes()
		if f.bad {
			return nil, errCut
		}
		if err := l.Add(name, data); err != nil {
			return nil, err
		}
	}
	return l.Finish(nil)
}

// LabelsOf returns the labels in a stored part of a series; ok is false if the part has none.
func LabelsOf(name, data []byte) (l []labels.Label, ok bool, err error) {
	if string(name) != metaPart {
		return nil, false, nil
	}
	s := new(Series)
	err = s.readMeta(data)
	return s.labels, true, err
}

// LabelsOfBlob returns the labels of a series stored whole.
func LabelsOfBlob(b []byte) ([]labels.Label, error) {
	if len(b) == 0 || b[0] != format {
		return nil, errFormat
	}
	f := fields{b: b[1:]}
	name, data := f.bytes(), f.bytes()
	if l, ok, err := LabelsOf(name, data); ok && !f.bad {
		return l, err
	}
	return nil, errMeta
}

// Loader builds a series from its parts.
type Loader struct {
	s    *Series
	last string // the name of the last part
}

// NewLoader returns a Loader that has no parts.
func NewLoader() *Loader { return &Loader{s: new(Series)} }

// Add adds the part with the given name and data, and keeps neither. Parts come in the byte order of their names, each
// once; a part out of order, or one that belongs to no series, is an error. After an error the Loader is useless.
func (l *Loader) Add(name, data []byte) error {
	if string(name) <= l.last {
		return errOrder
	}
	l.last = string(name)
	s := l.s
	switch {
	case l.last == metaPart:
		return s.readMeta(data)
	case s.ChunkSize == 0:
		return errMeta
	case l.last == statePart:
		return s.readStates(data)
	case len(name) != chunkName || name[0] != kindChunk || name[1] > 0x7f:
		return errName
	}
	c, err := decodeChunk(int64(binary.BigEndian.Uint64(name[1:])), data)
	if err != nil {
		return err
	}
	if n := len(s.chunks); n > 0 && s.chunks[n-1].last >= c.base {
		return errOrder
	}
	c.part = l.last
	s.chunks = append(s.chunks, c)
	s.buffers += cap(c.buf)
	s.length += int(c.n)
	return nil
}

// Finish returns the series, which notes its changes in log.
func (l *Loader) Finish(log *delta.Log) (*Series, error) {
	if l.s.ChunkSize == 0 {
		return nil, errMeta
	}
	l.s.log = log
	return l.s, nil
}

// appendMeta appends the series' own data.
func (s *Series) appendMeta(dst []byte) []byte {
	dst = append(dst, format)
	for _, v := range [...]uint64{uint64(s.Retention), uint64(s.ChunkSize), uint64(number(s.Plain)), uint64(s.Policy),
		uint64(s.IgnoreTime), math.Float64bits(s.IgnoreValue), uint64(len(s.labels))} {
		dst = binary.AppendUvarint(dst, v)
	}
	for _, l := range s.labels {
		dst = appendText(appendText(dst, l.Name), l.Value)
	}
	dst = binary.AppendUvarint(appendText(dst, s.source), uint64(len(s.rules)))
	for _, r := range s.rules {
		dst = append(appendText(dst, r.Destination), byte(r.Aggregator))
		for _, v := range [...]int64{r.Bucket, r.Align, 0} { // the third was the start of counting in earlier versions
			dst = binary.AppendUvarint(dst, uint64(v))
		}
	}
	return dst
}

// readMeta reads the output of appendMeta.
func (s *Series) readMeta(b []byte) error {
	if len(b) == 0 || b[0] != format {
		return errFormat
	}
	f := fields{b: b[1:]}
	s.Retention, s.ChunkSize = f.natural(math.MaxInt64), int(f.natural(MaxChunkSize))
	s.Plain, s.Policy = f.natural(1) == 1, Policy(f.natural(int64(Unset)))
	s.IgnoreTime, s.IgnoreValue = f.natural(math.MaxInt64), math.Float64frombits(f.uvarint())
	var said []labels.Label
	for n := f.uvarint(); n > 0 && !f.bad; n-- {
		said = append(said, labels.Label{Name: f.text(), Value: f.text()})
	}
	source := f.text()
	for n := f.uvarint(); n > 0 && !f.bad; n-- {
		r := &Rule{Destination: f.text(), Aggregator: Aggregator(f.byte())}
		r.Bucket, r.Align = f.natural(math.MaxInt64), f.natural(math.MaxInt64)
		f.natural(math.MaxInt64)
		if r.Bucket == 0 || r.Aggregator >= aggregators {
			return errMeta
		}
		s.rules = append(s.rules, r)
	}
	if f.bad || len(f.b) > 0 || s.ChunkSize < MinChunkSize || s.ChunkSize%8 != 0 || !(s.IgnoreValue >= 0) {
		return errMeta
	}
	s.source = source
	s.SetLabels(said)
	return nil
}

// number returns 1 for true.
func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// fields reads untrusted data.
type fields struct {
	b   []byte // unread bytes
	bad bool   // a read has failed, so all results are invalid
}

func (f *fields) uvarint() uint64 {
	v, n := binary.Uvarint(f.b)
	if n <= 0 {
		f.bad = true
		return 0
	}
	f.b = f.b[n:]
	return v
}

func (f *fields) varint() int64 {
	v := f.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// natural reads a number from 0 to most.
func (f *fields) natural(most int64) int64 {
	v := f.uvarint()
	if v > uint64(most) {
		f.bad = true
		return 0
	}
	return int64(v)
}

func (f *fields) byte() byte {
	if len(f.b) == 0 {
		f.bad = true
		return 0
	}
	v := f.b[0]
	f.b = f.b[1:]
	return v
}

func (f *fields) double() float64 {
	if len(f.b) < 8 {
		f.bad = true
		return 0
	}
	v := binary.LittleEndian.Uint64(f.b)
	f.b = f.b[8:]
	return math.Float64frombits(v)
}

func (f *fields) bytes() []byte {
	n := f.uvarint()
	if f.bad || n > uint64(len(f.b)) {
		f.bad = true
		return nil
	}
	v := f.b[:n:n]
	f.b = f.b[n:]
	return v
}

func (f *fields) text() string { return strings.Clone(string(f.bytes())) }
