package binary

import (
	le "encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// Type is a registered type.
type Type struct {
	ID       int32
	Name     string
	Affinity string // the name of a field, "" without an affinity key
	Fields   []TypeField
	Enum     bool
	Values   []EnumValue // of an enum
	Schemas  []Schema
}

// TypeField is a field of a type.
type TypeField struct {
	Name string
	Code int32
	ID   int32
}

// EnumValue is a value of an enum.
type EnumValue struct {
	Name    string
	Ordinal int32
}

// Schema is the list of fields of some objects of a type.
type Schema struct {
	ID     int32
	Fields []int32
}

// ParseType reads a type in its registered form. It must be all of b.
func ParseType(b []byte) (*Type, error) {
	r := Reader{b: b}
	t := &Type{ID: r.Int32(), Name: r.String(), Affinity: r.String()}
	for range r.Count(10) {
		t.Fields = append(t.Fields, TypeField{r.String(), r.Int32(), r.Int32()})
	}
	if t.Enum = r.Byte() != 0; t.Enum {
		for range r.Count(5) {
			t.Values = append(t.Values, EnumValue{r.String(), r.Int32()})
		}
	}
	for range r.Count(8) {
		s := Schema{ID: r.Int32()}
		for range r.Count(4) {
			s.Fields = append(s.Fields, r.Int32())
		}
		t.Schemas = append(t.Schemas, s)
	}
	if r.err == nil && len(r.b) > 0 {
		r.err = ErrMalformed
	}
	return t, r.err
}

// Append appends the type in its registered form.
func (t *Type) Append(dst []byte) []byte {
	i32 := func(n int32) { dst = le.LittleEndian.AppendUint32(dst, uint32(n)) }
	i32(t.ID)
	dst = AppendString(dst, t.Name)
	if t.Affinity == "" {
		dst = AppendNull(dst)
	} else {
		dst = AppendString(dst, t.Affinity)
	}
	i32(int32(len(t.Fields)))
	for _, f := range t.Fields {
		dst = AppendString(dst, f.Name)
		i32(f.Code)
		i32(f.ID)
	}
	if t.Enum {
		dst = append(dst, 1)
		i32(int32(len(t.Values)))
		for _, v := range t.Values {
			dst = AppendString(dst, v.Name)
			i32(v.Ordinal)
		}
	} else {
		dst = append(dst, 0)
	}
	i32(int32(len(t.Schemas)))
	for _, s := range t.Schemas {
		i32(s.ID)
		i32(int32(len(s.Fields)))
		for _, id := range s.Fields {
			i32(id)
		}
	}
	return dst
}

// Merge adds the fields, values and schemas of other to t, which keeps its name. The error says why both cannot be
// one type; t is then unchanged.
func (t *Type) Merge(other *Type) error {
	if t.Affinity != "" && other.Affinity != "" && t.Affinity != other.Affinity {
		return fmt.Errorf("type %q has another affinity key", t.Name)
	}
	if t.Enum != other.Enum {
		return fmt.Errorf("type %q is both an enum and none", t.Name)
	}
	known := map[int32]TypeField{}
	for _, f := range t.Fields {
		known[f.ID] = f
	}
	for _, f := range other.Fields {
		if have, ok := known[f.ID]; ok && have.Code != f.Code {
			return fmt.Errorf("field %q of type %q has another type", f.Name, t.Name)
		}
	}
	for _, f := range other.Fields {
		if _, ok := known[f.ID]; !ok {
			t.Fields, known[f.ID] = append(t.Fields, f), f
		}
	}
	if t.Affinity == "" {
		t.Affinity = other.Affinity
	}
	for _, v := range other.Values {
		if !slices.Contains(t.Values, v) {
			t.Values = append(t.Values, v)
		}
	}
	for _, s := range other.Schemas {
		if t.Schema(s.ID) == nil {
			t.Schemas = append(t.Schemas, s)
		}
	}
	return nil
}

// Schema returns the fields of a schema, nil if it is unknown.
func (t *Type) Schema(id int32) []int32 {
	for _, s := range t.Schemas {
		if s.ID == id {
			return s.Fields
		}
	}
	return nil
}

// Names returns the names of the fields by their ids.
func (t *Type) Names() map[int32]string {
	return maps.Collect(func(yield func(int32, string) bool) {
		for _, f := range t.Fields {
			if !yield(f.ID, f.Name) {
				return
			}
		}
	})
}

// Types returns the registered type with an id, or nil.
type Types func(id int32) *Type

// Schemas returns the schemas of the types.
func (ts Types) Schemas() Schemas {
	return func(typeID, schemaID int32) []int32 {
		if t := ts(typeID); t != nil {
			return t.Schema(schemaID)
		}
		return nil
	}
}
