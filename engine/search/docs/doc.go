package docs

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// Fields are a table's data about a document. The table copies them.
type Fields struct {
	Key     string
	Score   float64 // the document's own score, 0 to 1
	Len     uint32  // number of words in its TEXT fields, weighted by the fields' weights
	MaxFreq uint32  // number of occurrences of its most frequent term
	Payload []byte  // nil if it has none
	Sort    []Value // values of SORTABLE fields, by the field's number
	Terms   []byte  // data with which the index removes the document; only the index reads it
}

// Value is the value of a SORTABLE field: a number, a text, or nothing.
type Value struct {
	Kind   ValueKind
	Number float64
	Text   string
}

// ValueKind says what a value is.
type ValueKind uint8

const (
	None ValueKind = iota
	Number
	Text
)

// Doc is an immutable document of an index.
type Doc struct {
	// data has the key with its length; a byte of flags; the score, and the payload with its length, if the flags say
	// so; the number of values, and the values; and the terms. Lengths and numbers are unsigned varints. A value is a
	// byte with its kind, followed by a number in eight bytes or a text with its length.
	data    string
	Len     uint32 // as in Fields
	MaxFreq uint32 // as in Fields
}

const (
	hasScore = 1 << iota // the score differs from 1
	hasPayload
)

// newDoc returns a document, and how many bytes its values of SORTABLE fields take.
func newDoc(f *Fields) (d Doc, sort int) {
	b := make([]byte, 0, 128)
	b = append(binary.AppendUvarint(b, uint64(len(f.Key))), f.Key...)
	at := len(b)
	b = append(b, 0)
	if f.Score != 1 {
		b[at] |= hasScore
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(f.Score))
	}
	if f.Payload != nil {
		b[at] |= hasPayload
		b = append(binary.AppendUvarint(b, uint64(len(f.Payload))), f.Payload...)
	}
	b = binary.AppendUvarint(b, uint64(len(f.Sort)))
	start := len(b)
	for i := range f.Sort {
		v := &f.Sort[i]
		b = append(b, byte(v.Kind))
		switch v.Kind {
		case Number:
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v.Number))
		case Text:
			b = append(binary.AppendUvarint(b, uint64(len(v.Text))), v.Text...)
		}
	}
	return Doc{string(append(b, f.Terms...)), f.Len, f.MaxFreq}, len(b) - start
}

// Key returns the document's key.
func (d *Doc) Key() string {
	r := reader{d.data, 0}
	return r.text()
}

// Score returns the document's own score.
func (d *Doc) Score() float64 {
	r := reader{d.data, 0}
	r.text()
	if r.byte()&hasScore == 0 {
		return 1
	}
	return r.number()
}

// Payload returns the payload. ok is false if the document has no payload.
func (d *Doc) Payload() (payload string, ok bool) {
	r := reader{d.data, 0}
	r.text()
	return r.payload()
}

// Sortables returns the number of values.
func (d *Doc) Sortables() int {
	r := reader{d.data, 0}
	r.text()
	r.payload()
	return int(r.uvarint())
}

// Sort returns the value of a SORTABLE field by the field's number, or none for a field newer than the document.
func (d *Doc) Sort(i int) Value {
	r := reader{d.data, 0}
	r.text()
	r.payload()
	if uint64(i) >= r.uvarint() {
		return Value{}
	}
	for range i {
		r.value()
	}
	return r.value()
}

// Terms returns the data with which the index removes the document.
func (d *Doc) Terms() string {
	r := reader{d.data, 0}
	r.text()
	r.payload()
	for range r.uvarint() {
		r.value()
	}
	return d.data[r.at:]
}

// sortBytes returns how many bytes the values of SORTABLE fields take.
func (d *Doc) sortBytes() int {
	r := reader{d.data, 0}
	r.text()
	r.payload()
	n := r.uvarint()
	start := r.at
	for range n {
		r.value()
	}
	return r.at - start
}

// reader reads Doc.data, which newDoc wrote.
type reader struct {
	s  string
	at int
}

func (r *reader) byte() byte {
	r.at++
	return r.s[r.at-1]
}

func (r *reader) uvarint() uint64 {
	v := uint64(0)
	for shift := 0; ; shift += 7 {
		b := r.byte()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
}

func (r *reader) text() string {
	n := int(r.uvarint())
	r.at += n
	return r.s[r.at-n : r.at]
}

func (r *reader) number() float64 {
	r.at += 8
	b := unsafe.Slice(unsafe.StringData(r.s), r.at)[r.at-8:]
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}

// payload reads flags, score and payload.
func (r *reader) payload() (string, bool) {
	flags := r.byte()
	if flags&hasScore != 0 {
		r.at += 8
	}
	if flags&hasPayload == 0 {
		return "", false
	}
	return r.text(), true
}

func (r *reader) value() Value {
	switch k := ValueKind(r.byte()); k {
	case Number:
		return Value{Kind: k, Number: r.number()}
	case Text:
		return Value{Kind: k, Text: r.text()}
	}
	return Value{}
}
