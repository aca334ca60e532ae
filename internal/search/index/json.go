package index

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/atomredis/atomredis/engine/documents"
	"github.com/atomredis/atomredis/engine/documents/path"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/schema"
)

// JSONDocument is the document in a JSON value.
type JSONDocument struct {
	Root  documents.Value
	Paths *Paths

	values []Value
}

// Paths are JSONPaths that were parsed already. They belong to one goroutine.
type Paths struct{ parsed map[string]*path.Path }

// Get returns a path; nil if the text is invalid.
func (p *Paths) Get(text string) *path.Path {
	if parsed, ok := p.parsed[text]; ok {
		return parsed
	}
	parsed, err := path.Parse(dotted(text))
	if err != nil {
		parsed = nil
	}
	if p.parsed == nil || len(p.parsed) >= maxPaths {
		p.parsed = map[string]*path.Path{}
	}
	p.parsed[text] = parsed
	return parsed
}

// dotted adds the missing dot to a path like $t. Other commands read that as a legacy path.
func dotted(text string) string {
	if len(text) > 1 && text[0] == '$' && strings.IndexByte(".[~", text[1]) < 0 {
		return "$." + text[1:]
	}
	return text
}

// maxPaths is how many paths are remembered.
const maxPaths = 4096

// Find returns the values under a path.
func (p *Paths) Find(root documents.Value, text string) []documents.Value {
	parsed := p.Get(text)
	if parsed == nil {
		return nil
	}
	found, err := parsed.Values(root, func() {})
	if err != nil {
		return nil
	}
	return found
}

// Text implements Document.
func (d *JSONDocument) Text(path string) ([]byte, bool) {
	found := d.Paths.Find(d.Root, path)
	if len(found) == 0 || found[0].Kind() == documents.Null {
		return nil, false
	}
	if found[0].Kind() == documents.String {
		return []byte(found[0].Text()), true
	}
	return found[0].AppendJSON(nil, documents.Layout{}), true
}

// Values implements Document. A single value may be an array, whose elements are then the values; if there are
// several values, none may be an array.
func (d *JSONDocument) Values(f *schema.Field) (values []Value, failure string) {
	found := d.Paths.Find(d.Root, f.Path)
	d.values = d.values[:0]
	if len(found) == 1 {
		if failure := misfit(f.Kind, found[0].Kind()); failure != "" {
			return nil, failure
		}
	}
	switch {
	case f.Kind == query.VectorKind:
		return d.vectors(f, found)
	case len(found) != 1:
		for _, v := range found {
			if !d.element(f, v) {
				return nil, badElement(f.Kind)
			}
		}
	case found[0].Kind() == documents.Array:
		found[0].Elements(func(_ int, _ string, e documents.Value) bool {
			if !d.element(f, e) {
				failure = badElement(f.Kind)
			}
			return failure == ""
		})
	case found[0].Kind() == documents.Boolean:
		d.values = append(d.values, Value{Text: fmt.Append(nil, found[0].Bool())})
	case found[0].Kind() == documents.Object:
		return nil, query.Generic.With("Object type is not supported")
	default:
		d.element(f, found[0])
	}
	if failure != "" {
		return nil, failure
	}
	return d.values, ""
}

// misfit returns the error if a field cannot have a value of a kind, otherwise "".
func misfit(f query.Kind, v documents.Kind) string {
	fits, what := true, ""
	switch v {
	case documents.String:
		fits, what = f&(query.NumericKind|query.VectorKind) == 0, "String type can represent only TEXT, TAG, GEO or GEOMETRY field"
	case documents.Integer, documents.Number:
		fits, what = f == query.NumericKind, "Numeric type can represent only NUMERIC field"
	case documents.Boolean:
		fits, what = f == query.TagKind, "Boolean type can be represent only TAG field"
	case documents.Array:
		fits, what = f != query.GeoShapeKind, "Array type cannot represent GEOMETRY field"
	case documents.Object:
		fits, what = f == query.GeoShapeKind, "Object type can represent only GEOMETRY fields"
	}
	if fits {
		return ""
	}
	return query.BadJSON.With("Invalid JSON type: " + what)
}

// element adds one of several values, and reports whether it fits. It ignores null.
func (d *JSONDocument) element(f *schema.Field, v documents.Value) bool {
	switch {
	case v.Kind() == documents.Null:
	case v.Kind() == documents.String && f.Kind != query.NumericKind:
		d.values = append(d.values, Value{Text: []byte(v.Text())})
	case v.IsNumber() && f.Kind == query.NumericKind:
		d.values = append(d.values, Value{Number: v.Float(), IsNumber: true})
	default:
		return false
	}
	return true
}

// badElement is the error for one of several values that does not fit.
func badElement(k query.Kind) string {
	if k == query.NumericKind {
		return query.BadValue.With("NUMERIC fields can only contain numeric or nulls")
	}
	return query.BadValue.With("TEXT/TAG fields can only contain strings or nulls")
}

// KindName returns the word of FT.CREATE for a kind.
func KindName(k query.Kind) string {
	switch k {
	case query.TextKind:
		return "TEXT"
	case query.TagKind:
		return "TAG"
	case query.NumericKind:
		return "NUMERIC"
	case query.GeoKind:
		return "GEO"
	case query.GeoShapeKind:
		return "GEOSHAPE"
	}
	return "VECTOR"
}

// vectors reads the vectors of a field: an array of numbers, or several. It ignores null among several.
func (d *JSONDocument) vectors(f *schema.Field, found []documents.Value) (values []Value, failure string) {
	lists := found
	if len(found) == 1 && found[0].Kind() == documents.Array {
		switch v := found[0]; {
		case v.Len() == 0:
			return nil, query.BadValue.With("Empty array for vector field on JSON document")
		case v.At(0).Kind() == documents.Array:
			lists = nil
			v.Elements(func(_ int, _ string, e documents.Value) bool {
				lists = append(lists, e)
				return true
			})
		}
	}
	for _, list := range lists {
		if list.Kind() == documents.Null {
			continue
		}
		if list.Kind() != documents.Array {
			return nil, query.BadValue.With("VECTOR fields can only contain arrays or nulls")
		}
		if list.Len() != f.Vector.Dim {
			return nil, query.BadVectorLength.With(fmt.Sprintf("Invalid vector length. Expected %d, got %d", f.Vector.Dim, list.Len()))
		}
		whole := f.Vector.Type == schema.Int8 || f.Vector.Type == schema.Uint8
		blob := make([]byte, 0, f.Vector.Bytes())
		for i := range list.Len() {
			e := list.At(i)
			if !e.IsNumber() || whole && e.Kind() != documents.Integer {
				return nil, query.Generic.With(fmt.Sprintf("Invalid vector element at index %d", i))
			}
			blob = appendNumber(blob, f.Vector.Type, e.Float())
		}
		d.values = append(d.values, Value{Vector: blob})
	}
	return d.values, ""
}

// appendNumber appends a number in the form of a vector type.
func appendNumber(b []byte, t schema.VectorType, v float64) []byte {
	le := binary.LittleEndian
	switch t {
	case schema.Float32:
		return le.AppendUint32(b, math.Float32bits(float32(v)))
	case schema.Float64:
		return le.AppendUint64(b, math.Float64bits(v))
	case schema.Float16:
		return le.AppendUint16(b, halfBits(float32(v)))
	case schema.BFloat16:
		bits := math.Float32bits(float32(v))
		return le.AppendUint16(b, uint16((bits+0x7fff+bits>>16&1)>>16))
	case schema.Int8:
		return append(b, byte(int8(max(-128, min(127, v)))))
	}
	return append(b, byte(max(0, min(255, v))))
}

// halfBits converts a number to 16 bits of IEEE 754, rounded to even.
func halfBits(f float32) uint16 {
	bits := math.Float32bits(f)
	sign := uint16(bits>>16) & 0x8000
	abs := math.Abs(float64(f))
	switch {
	case f != f:
		return sign | 0x7e00
	case abs >= 65520:
		return sign | 0x7c00
	case abs < 0x1p-14: // subnormal: multiples of 2^-24
		return sign | uint16(math.RoundToEven(abs*0x1p24))
	}
	exponent := int(bits>>23&0xff) - 127
	fraction := uint32(math.RoundToEven(float64(bits&0x7fffff) / 0x2000))
	return sign | uint16((uint32(exponent+15)<<10)+fraction)
}

// Unordered reports whether a path may find values in places that have no order.
func Unordered(text string) bool {
	return strings.Contains(text, "..") || strings.Contains(text, "*") || strings.Contains(text, "?")
}
