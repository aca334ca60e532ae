package vectors

import (
	"encoding/binary"
	"errors"
	"math"
	"unsafe"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/vectors/graph"
)

// How sets are stored. The parts are named
//
//	a                   the set's parameters, and the entry of its graph
//	d and four bytes    a node without its links; the bytes are its number, big-endian
//	l and four bytes    the links of a node, from the lowest level up
//	p and four bytes    a row of a stored projection matrix; the bytes are its number, big-endian
//
// Data begins with the format; the first part of a set with a stored matrix has a format of its own. The numbers of the
// first part are uvarints: quantisation, dimensions, M, dimensions before projection, seed (eight bytes), number of
// nodes, nodes ever added, entry, highest level. A node is its norm (four bytes), its words or floats (little-endian),
// and its text: the length of the name as a uvarint, the name, the attributes; empty attributes have a format of their
// own. Links are, for each level, their number and the differences between successive links, as uvarints. A row is its
// 32-bit floats. A small set is stored whole: the format, and the data of all parts in the order of their names, each
// after its length.

// format is the first byte of every stored form, except for nodes with empty attributes and the first part of sets with
// a stored matrix.
const (
	format       = 1
	formatEmpty  = 2
	formatMatrix = 2
)

const (
	metaPart  = 'a'
	nodePart  = 'd'
	linksPart = 'l'
	rowPart   = 'p'
	nameLen   = 5 // of all parts but the first
)

// Errors of stored data.
var (
	errFormat = errors.New("vector set: unknown stored format")
	errCut    = errors.New("vector set: stored form ends within a part")
	errName   = errors.New("vector set: the name of a stored part is malformed")
	errOrder  = errors.New("vector set: stored parts are out of order, or one is missing")
	errMeta   = errors.New("vector set: the stored state of the whole set is malformed")
	errNode   = errors.New("vector set: a stored node is malformed")
	errRow    = errors.New("vector set: a stored row of a projection is malformed")
	errTwice  = errors.New("vector set: stored form has an element twice")
)

// partName returns the name of a node's part.
func partName(kind byte, id uint32) string {
	b := binary.BigEndian.AppendUint32([]byte{kind}, id)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

const metaName = string(rune(metaPart))

// note must be called before a part of a node changes, appears or goes.
func (s *Set) note(kind byte, id uint32) {
	if s.log != nil {
		var b [nameLen]byte
		b[0] = kind
		binary.BigEndian.PutUint32(b[1:], id)
		s.log.Before(b[:], s)
		s.log.After(partName(kind, id), s.parts())
	}
}

func (s *Set) noteLinks(id uint32) { s.note(linksPart, id) }

// noteNode notes a change of a node apart from its links.
func (s *Set) noteNode(id uint32) { s.note(nodePart, id) }

// noteMeta must be called before the first part changes.
func (s *Set) noteMeta() {
	if s.log != nil {
		s.log.Before([]byte{metaPart}, s)
		s.log.After(metaName, s.parts())
	}
}

func (s *Set) parts() int { return 1 + 2*s.Len() + s.rows() }

// rows returns the number of rows of a stored matrix, otherwise 0.
func (s *Set) rows() int {
	if s.proj.matrix == nil {
		return 0
	}
	return s.dim
}

// largeBytes is about the size in bytes from which a set is stored in parts.
const largeBytes = 16 << 10

func (s *Set) isLarge() bool {
	words, floats := s.quant.code(s.dim)
	return s.Len()*(8*words+4*floats+4*(1+2*s.m))+s.textBytes+4*len(s.proj.matrix) > largeBytes
}

// Large reports whether the set must be stored in parts. A set that was large once stays so.
func (s *Set) Large() bool { return s.large }

// Track makes a Large set note changed parts in l from now on. All present parts count as changed.
func (s *Set) Track(l *delta.Log) {
	s.Attach(l)
	l.After(metaName, s.parts())
	for id := range uint32(s.Len()) {
		l.After(partName(nodePart, id), s.parts())
		l.After(partName(linksPart, id), s.parts())
	}
	for row := range s.rows() {
		l.After(partName(rowPart, uint32(row)), s.parts())
	}
}

// Attach makes a Large set note changed parts in l from now on; nil ends that.
func (s *Set) Attach(l *delta.Log) { s.log = l }

// Log returns the record of changes, nil if the set has none.
func (s *Set) Log() *delta.Log { return s.log }

// Walk calls fn with the names of about count parts from c on, in order, and returns where to continue.
func (s *Set) Walk(c delta.Cursor, count int, fn func(name string)) (next delta.Cursor, more bool) {
	kind, id := byte(nodePart), uint32(0) // of the next part
	switch {
	case c.Name == "":
		c.Name = metaName
		fn(metaName)
		count--
	case c.Name != metaName:
		kind, id = c.Name[0], binary.BigEndian.Uint32([]byte(c.Name[1:]))+1
	}
	for {
		for int(id) >= s.count(kind) {
			switch kind {
			case nodePart:
				kind, id = linksPart, 0
			case linksPart:
				kind, id = rowPart, 0
			default:
				return c, false
			}
		}
		if count <= 0 {
			return c, true
		}
		c.Name = partName(kind, id)
		fn(c.Name)
		count--
		id++
	}
}

// count returns how many parts of a kind there are.
func (s *Set) count(kind byte) int {
	if kind == rowPart {
		return s.rows()
	}
	return s.Len()
}

// AppendPart appends the stored form of a part to dst; ok is false if there is no such part.
func (s *Set) AppendPart(dst []byte, name string) (out []byte, ok bool) {
	if name == metaName {
		return s.appendMeta(dst), true
	}
	if len(name) != nameLen {
		return dst, false
	}
	id := binary.BigEndian.Uint32([]byte(name[1:]))
	switch kind := name[0]; {
	case int64(id) >= int64(s.count(kind)):
		return dst, false
	case kind == nodePart:
		return s.appendNode(dst, id), true
	case kind == linksPart:
		return s.appendLinks(dst, id), true
	case kind == rowPart:
		return s.appendRow(dst, int(id)), true
	}
	return dst, false
}

func (s *Set) appendMeta(dst []byte) []byte {
	f := byte(format)
	if s.proj.matrix != nil {
		f = formatMatrix
	}
	dst = append(dst, f, byte(s.quant))
	for _, n := range [...]int{s.dim, s.m, s.proj.Input} {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	dst = binary.LittleEndian.AppendUint64(dst, s.seed)
	entry, top, _ := s.graph.Entry()
	for _, n := range [...]uint64{uint64(s.Len()), s.Added(), uint64(entry), uint64(top)} {
		dst = binary.AppendUvarint(dst, n)
	}
	return dst
}

func (s *Set) appendNode(dst []byte, id uint32) []byte {
	start := len(dst)
	dst = binary.LittleEndian.AppendUint32(append(dst, format), math.Float32bits(s.norms.At(id)[0]))
	if s.quant == None {
		for _, x := range s.floats.At(id) {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(x))
		}
	} else {
		for _, w := range s.words.At(id) {
			dst = binary.LittleEndian.AppendUint64(dst, w)
		}
	}
	if attributes, ok := s.Attributes(id); ok && attributes == "" {
		dst[start] = formatEmpty
		name := s.Name(id)
		return append(binary.AppendUvarint(dst, uint64(len(name))), name...)
	}
	return append(dst, s.texts.At(id)[0]...)
}

func (s *Set) appendLinks(dst []byte, id uint32) []byte {
	return s.graph.AppendLinks(append(dst, format), id, nil)
}

func (s *Set) appendRow(dst []byte, row int) []byte {
	dst = append(dst, format)
	for _, x := range s.proj.row(row) {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(x))
	}
	return dst
}

// AppendBlob appends the stored form of the whole set to dst.
func (s *Set) AppendBlob(dst []byte) []byte {
	dst = append(dst, format)
	var data []byte
	add := func() { dst = append(binary.AppendUvarint(dst, uint64(len(data))), data...) }
	data = s.appendMeta(data)
	add()
	for id := range uint32(s.Len()) {
		data = s.appendNode(data[:0], id)
		add()
	}
	for id := range uint32(s.Len()) {
		data = s.appendLinks(data[:0], id)
		add()
	}
	for row := range s.rows() {
		data = s.appendRow(data[:0], row)
		add()
	}
	return dst
}

// DecodeBlob returns the set that AppendBlob has stored, or an error if b is not one. It does not keep b.
func DecodeBlob(b []byte) (*Set, error) {
	if len(b) == 0 || b[0] != format {
		return nil, errFormat
	}
	l := NewLoader()
	f := fields{b: b[1:]}
	next := func(add func([]byte) error) error {
		n := f.uvarint()
		data := f.take(n)
		if f.bad {
			return errCut
		}
		return add(data)
	}
	if err := next(l.meta); err != nil {
		return nil, err
	}
	for range l.n {
		if err := next(l.node); err != nil {
			return nil, err
		}
	}
	for range l.n {
		if err := next(l.addLinks); err != nil {
			return nil, err
		}
	}
	for range l.rows {
		if err := next(l.addRow); err != nil {
			return nil, err
		}
	}
	if len(f.b) > 0 {
		return nil, errCut
	}
	return l.finish(nil)
}

// Loader builds a set from its parts.
type Loader struct {
	s     *Set          // nil before the first part
	n     int           // nodes that there should be
	rows  int           // expected rows of the matrix
	links *graph.Loader // of the set's graph
	added uint64        // nodes that ever were
	entry uint32
	top   int
}

// NewLoader returns a Loader that has no parts.
func NewLoader() *Loader { return &Loader{} }

// Add adds the part with the given name and data, and keeps neither. Parts come in the byte order of their names, each
// once; a part out of order, or one that belongs to no set, is an error. After an error the Loader is useless.
func (l *Loader) Add(name, data []byte) error {
	switch {
	case string(name) == metaName:
		return l.meta(data)
	case l.s == nil:
		return errOrder
	case len(name) != nameLen:
		return errName
	}
	id := int64(binary.BigEndian.Uint32(name[1:]))
	switch name[0] {
	case nodePart:
		if id != int64(l.s.Len()) {
			return errOrder
		}
		return l.node(data)
	case linksPart:
		if id != int64(l.links.Len()) {
			return errOrder
		}
		return l.addLinks(data)
	case rowPart:
		if id != int64(l.readRows()) {
			return errOrder
		}
		return l.addRow(data)
	}
	return errName
}

// readRows returns the number of rows so far.
func (l *Loader) readRows() int { return len(l.s.proj.matrix) / max(l.s.proj.Input, 1) }

func (l *Loader) meta(data []byte) error {
	if l.s != nil {
		return errOrder
	}
	if len(data) == 0 || data[0] != format && data[0] != formatMatrix {
		return errFormat
	}
	matrix := data[0] == formatMatrix
	f := fields{b: data[1:]}
	quant := f.natural(uint64(None))
	dim, m, input := f.natural(MaxDim), f.natural(MaxM), f.natural(math.MaxInt32)
	seed := f.fixed64()
	n, added := f.natural(math.MaxUint32), f.uvarint()
	entry, top := f.natural(math.MaxUint32), f.natural(graph.MaxLevel)
	if f.bad || len(f.b) > 0 || dim == 0 || m < MinM || n == 0 || n > math.MaxInt32 ||
		!matrix && input*dim > MaxProjection || matrix && input == 0 {
		return errMeta
	}
	l.s = &Set{dim: int(dim), quant: Quantisation(quant), m: int(m), proj: Projection{int(input), int(dim), seed, nil},
		seed: seed}
	if matrix {
		l.rows = int(dim)
	}
	l.n, l.added, l.entry, l.top = int(n), added, uint32(entry), int(top)
	l.s.prepare()
	l.links = l.s.graph.Load(l.n)
	return nil
}

func (l *Loader) node(data []byte) error {
	s := l.s
	words, floats := s.quant.code(s.dim)
	switch {
	case len(data) == 0 || data[0] != format && data[0] != formatEmpty:
		return errFormat
	case l.links.Len() > 0 || s.Len() >= l.n:
		return errOrder
	case len(data) < 1+4+8*words+4*floats:
		return errNode
	}
	f := fields{b: data[1:]}
	norm := f.float()
	if !(norm >= 0 && norm <= math.MaxFloat32) {
		return errNode
	}
	if s.quant == None {
		for i, v := 0, s.floats.Push(); i < floats; i++ {
			if v[i] = f.float(); !(v[i] >= -1.001 && v[i] <= 1.001) {
				return errNode
			}
		}
	} else {
		v := s.words.Push()
		for i := range v {
			v[i] = f.fixed64()
		}
		if s.quant == Q8 && !valid8(v, s.dim) || s.quant == Bin && s.dim%64 != 0 && v[words-1]>>(s.dim%64) != 0 {
			return errNode
		}
	}
	text := f.b
	n := f.uvarint()
	if f.bad || n > uint64(len(f.b)) || len(text) != len(f.b)+uvarintLen(n) {
		return errNode
	}
	kept := string(text)
	if data[0] == formatEmpty {
		if n != uint64(len(f.b)) {
			return errNode
		}
		kept = makeText(f.b, []byte{})
	}
	id := uint32(s.Len())
	s.norms.Push()[0] = norm
	s.texts.Push()
	s.setText(id, kept)
	name := s.Name(id)
	if _, has := s.Attributes(id); has {
		s.withAttributes++
	}
	if _, twice := s.order.get(name); twice {
		return errTwice
	}
	s.order.insert(name, id)
	return nil
}

// uvarintLen returns the length of the shortest uvarint of n.
func uvarintLen(n uint64) int {
	var b [binary.MaxVarintLen64]byte
	return binary.PutUvarint(b[:], n)
}

func (l *Loader) addLinks(data []byte) error {
	switch {
	case len(data) == 0 || data[0] != format:
		return errFormat
	case l.s.Len() != l.n || l.links.Len() == l.n:
		return errOrder
	}
	return l.links.Add(data[1:])
}

// addRow adds a row of the matrix.
func (l *Loader) addRow(data []byte) error {
	p := &l.s.proj
	switch {
	case len(data) == 0 || data[0] != format:
		return errFormat
	case l.links.Len() != l.n || l.readRows() == l.rows:
		return errOrder
	case len(data)-1 != 4*p.Input:
		return errRow
	}
	f := fields{b: data[1:]}
	for range p.Input {
		x := f.float()
		if !(math.Abs(float64(x)) <= math.MaxFloat32) {
			return errRow
		}
		p.matrix = append(p.matrix, x)
	}
	return nil
}

// Finish returns the set, whose changes will be noted in log.
func (l *Loader) Finish(log *delta.Log) (*Set, error) {
	s, err := l.finish(log)
	if err == nil && log != nil {
		s.large = true // as stored
	}
	return s, err
}

func (l *Loader) finish(log *delta.Log) (*Set, error) {
	s := l.s
	if s == nil || s.Len() != l.n || l.links.Len() != l.n || l.readRows() != l.rows {
		return nil, errOrder
	}
	if err := l.links.Finish(l.added, l.entry, l.top); err != nil {
		return nil, err
	}
	s.large = s.isLarge()
	s.log = log
	return s, nil
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

// natural reads a number from 0 to most.
func (f *fields) natural(most uint64) uint64 {
	v := f.uvarint()
	if v > most {
		f.bad = true
		return 0
	}
	return v
}

func (f *fields) take(n uint64) []byte {
	if f.bad || n > uint64(len(f.b)) {
		f.bad = true
		return nil
	}
	v := f.b[:n:n]
	f.b = f.b[n:]
	return v
}

func (f *fields) fixed64() uint64 {
	if b := f.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (f *fields) float() float32 {
	if b := f.take(4); b != nil {
		return math.Float32frombits(binary.LittleEndian.Uint32(b))
	}
	return 0
}
