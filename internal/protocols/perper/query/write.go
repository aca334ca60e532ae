package query

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf16"

	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
)

// This file calculates what INSERT, MERGE, UPDATE and DELETE write.

// Entry is a key with its new value.
type Entry struct{ Key, Value []byte }

// writes finds the columns that are written.
func (r *Run) writes() {
	if r.st.names == nil {
		r.sets = r.table.columns
	}
	for _, name := range r.st.names {
		c, err := r.table.column(name)
		switch {
		case err != nil:
			r.err = err
		case slices.ContainsFunc(r.sets, func(o *tableColumn) bool { return o == c || o.part == c.part && c.part < fieldOfKey }):
			r.err = fmt.Errorf("Duplicate column name %q", c.Name)
		case r.st.Kind == Update && (c.part == wholeKey || c.part == fieldOfKey):
			r.err = fmt.Errorf("Cannot update key column %q", c.Name)
		}
		if r.err != nil {
			return
		}
		r.sets = append(r.sets, c)
	}
	for _, row := range r.st.rows {
		if len(row) != len(r.sets) {
			r.err = errors.New("Column count does not match")
			return
		}
		for _, n := range row {
			walk(n, func(n node) {
				if f, ok := n.(*field); ok && r.st.Kind != Update && r.err == nil {
					r.err = fmt.Errorf("Column %q not found", f.name)
				}
			})
		}
	}
}

// Inserts returns the entries that INSERT and MERGE write.
func (r *Run) Inserts() (entries []Entry, err error) {
	nothing := &row{run: r}
	for _, nodes := range r.st.rows {
		given := map[*tableColumn][]byte{}
		for i, c := range r.sets {
			if nodes[i] == nil {
				continue
			}
			object := objectOf(nodes[i], nothing)
			if r.err != nil {
				return nil, r.err
			}
			if given[c], err = r.cellOf(c, object); err != nil {
				return nil, err
			}
		}
		key, err := r.assemble(given, wholeKey, &r.table.keys)
		if err != nil {
			return nil, err
		}
		value, err := r.assemble(given, wholeValue, &r.table.values)
		if err != nil {
			return nil, err
		}
		entries = append(entries, Entry{key, value})
	}
	return entries, nil
}

// cellOf returns an object as a value of a column.
func (r *Run) cellOf(c *tableColumn, object []byte) ([]byte, error) {
	object, err := convert(object, c.code)
	if err != nil {
		return nil, err
	}
	isNull := binary.Code(object[0]) == binary.Null
	if isNull && (c.NotNull || c.part == wholeKey || c.part == wholeValue) {
		return nil, fmt.Errorf("Null value is not allowed for column '%s'", c.Name)
	}
	if s, ok := binary.AsString(object); ok && c.Type != "" && c.Precision > 0 {
		if n := len(utf16.Encode([]rune(s))); n > int(c.Precision) {
			return nil, fmt.Errorf("Value for a column '%s' is too long. Maximum length: %d, actual length: %d", c.Name, c.Precision, n)
		}
	}
	return object, nil
}

// assemble returns a key or a value of given cells, and of defaults.
func (r *Run) assemble(given map[*tableColumn][]byte, whole part, content *content) ([]byte, error) {
	missing, part, found := errNoKey, fieldOfKey, false
	if whole == wholeValue {
		missing, part, found = errNoValue, fieldOfValue, true
	}
	for _, c := range r.sets {
		if object := given[c]; c.part == whole && object != nil {
			return r.whole(object, content)
		}
	}
	columns := r.table.fields(part)
	if content.code >= 0 || len(columns) == 0 || content.name == "" {
		for _, c := range r.table.fields(whole) {
			if len(c.Default) > 0 && binary.Code(c.Default[0]) != binary.Null {
				return r.whole(c.Default, content)
			}
		}
		return nil, missing
	}
	fields := make([]binary.Field, len(columns))
	for i, c := range columns {
		object := given[c]
		found = found || object != nil
		if object == nil {
			var err error
			if object, err = r.cellOf(c, c.Default); err != nil {
				return nil, err
			}
		}
		fields[i] = binary.Field{ID: c.id, Value: object}
	}
	if !found {
		return nil, missing
	}
	r.note(content.id, content.name, fields, columns)
	return binary.AppendCompact(nil, content.id, fields), nil
}

// The errors of INSERT and MERGE without the columns of a key or a value.
var (
	errNoKey   = errors.New("Key is missing from query")
	errNoValue = errors.New("Value is missing from query")
)

// whole returns an object that is a whole key or value.
func (r *Run) whole(object []byte, content *content) ([]byte, error) {
	object, err := convert(object, binary.Code(max(content.code, 0)))
	if err == nil && r.table.made && !content.has(object, complexOf(object)) {
		err = fmt.Errorf("The object is not of the type %q", content.name)
	}
	return object, err
}

// updated returns the new value of a row.
func (r *Run) updated(row *row) []byte {
	var fields []binary.Field
	if row.v != nil {
		err := row.v.Fields(r.types.Schemas(), func(f binary.Field) bool {
			fields = append(fields, f)
			return true
		})
		if err != nil && r.err == nil {
			r.err = err
		}
	}
	for i, c := range r.sets {
		object := c.Default
		if n := r.st.rows[0][i]; n != nil {
			object = objectOf(n, row)
		}
		if r.err != nil {
			return nil
		}
		object, err := r.cellOf(c, object)
		if err == nil && c.part == wholeValue {
			if object, err = r.whole(object, &r.table.values); err == nil {
				return object
			}
		}
		if err == nil && row.v == nil {
			err = fmt.Errorf("Column %q is in no object", c.Name)
		}
		if err != nil {
			r.err = err
			return nil
		}
		at := slices.IndexFunc(fields, func(f binary.Field) bool { return f.ID == c.id })
		if at < 0 {
			at = len(fields)
			fields = append(fields, binary.Field{ID: c.id})
		}
		fields[at].Value = object
	}
	if row.v == nil {
		return nil
	}
	r.note(row.v.TypeID, r.table.values.name, fields, r.sets)
	return binary.AppendCompact(nil, row.v.TypeID, fields)
}

// note remembers the type of an object that is written if its schema is not registered.
func (r *Run) note(id int32, name string, fields []binary.Field, columns []*tableColumn) {
	ids := make([]int32, len(fields))
	for i, f := range fields {
		ids[i] = f.ID
	}
	schema := binary.SchemaID(ids)
	t := r.written[id]
	if t == nil {
		if known := r.types(id); known != nil && known.Schema(schema) != nil {
			return
		}
		t = &binary.Type{ID: id, Name: name}
		if r.written == nil {
			r.written = map[int32]*binary.Type{}
		}
		r.written[id] = t
	}
	if t.Schema(schema) != nil {
		return
	}
	t.Schemas = append(t.Schemas, binary.Schema{ID: schema, Fields: ids})
	for _, c := range columns {
		if !slices.ContainsFunc(t.Fields, func(f binary.TypeField) bool { return f.ID == c.id }) {
			t.Fields = append(t.Fields, typeField(c.field, c.id, c.code))
		}
	}
}

// typeField returns a field with the form in which clients register it.
func typeField(name string, id int32, code binary.Code) binary.TypeField {
	if code == 0 {
		code = binary.Complex
	}
	return binary.TypeField{Name: name, Code: int32(code), ID: id}
}

// Types returns the types that must be registered before the entries are written.
func (r *Run) Types() (types []*binary.Type) {
	for _, t := range r.written {
		types = append(types, t)
	}
	return types
}

// Changes returns the entries that UPDATE writes. Those that DELETE removes have no value.
func (r *Run) Changes() (entries []Entry, err error) {
	if r.err != nil {
		return nil, r.err
	}
	for _, row := range r.rows {
		e := Entry{Key: row.cells[0]}
		if r.st.Kind == Update {
			e.Value = row.cells[1]
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// Key returns the only key that the condition permits; ok is false if it may permit several.
func (r *Run) Key() (key []byte, ok bool) {
	if !r.table.made {
		return nil, false
	}
	switch code := binary.Code(max(r.table.keys.code, 0)); code {
	case binary.Byte, binary.Short, binary.Int, binary.Long, binary.UUID, binary.String:
		return r.keyIn(r.st.where, code)
	}
	return nil, false
}

// keyIn is Key for a condition.
func (r *Run) keyIn(n node, code binary.Code) (key []byte, ok bool) {
	switch n := n.(type) {
	case *logic:
		if n.op != "AND" {
			return nil, false
		}
		if key, ok = r.keyIn(n.a, code); !ok {
			key, ok = r.keyIn(n.b, code)
		}
		return key, ok
	case *compare:
		f, ok := n.a.(*field)
		if !ok || n.op != "=" || f.column.part != wholeKey {
			return nil, false
		}
		var object []byte
		switch b := n.b.(type) {
		case literal:
			object = b.object()
		case argument:
			object = r.objects[b]
		}
		if len(object) == 0 || code == binary.String && binary.Code(object[0]) != binary.String {
			return nil, false // a number may be equal to several texts
		}
		key, err := convert(object, code)
		return key, err == nil && binary.Code(key[0]) == code
	}
	return nil, false
}
