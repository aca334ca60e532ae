package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
)

// This file finds the columns of tables.

// part says where the value of a column is.
type part uint8

const (
	wholeKey part = iota
	wholeValue
	fieldOfKey
	fieldOfValue
)

// tableColumn is a column of a table.
type tableColumn struct {
	binary.EntityField        // Name is in upper case
	field              string // the name of the field, before aliases
	id                 int32
	code               binary.Code // of its values; 0 if they have various types
	part               part
}

// table is a table of a cache.
type table struct {
	columns []*tableColumn          // of "*"
	named   map[string]*tableColumn // by names in upper case, with _KEY and _VAL
	made    bool                    // by CREATE TABLE
	// keys and values say which entries are rows.
	keys, values content
}

// content is the type of the keys or the values of a table.
type content struct {
	name  string // of the type
	code  int    // of objects, -1 if the type is complex
	id    int32  // of complex objects
	other int32  // another id of them: that of the name without its package
}

// contentOf returns the type of a name.
func contentOf(name string, types binary.Types) content {
	c := content{name: name, code: -1, id: binary.ID(name), other: binary.ID(simpleName(name))}
	if code := codeOf(name); code != 0 && types(c.id) == nil && types(c.other) == nil {
		c.code = int(code)
	}
	if types(c.id) == nil && types(c.other) != nil {
		c.id, c.other = c.other, c.id // clients that leave packages out have registered it
	}
	return c
}

// has reports whether an object is of the type. Complex objects must have been read into o.
func (c *content) has(object []byte, o *binary.Object) bool {
	if len(object) > 0 && c.code >= 0 {
		return int(object[0]) == c.code
	}
	return o != nil && (o.TypeID == c.id || o.TypeID == c.other)
}

// simpleName is the name of a type without its package or outer class.
func simpleName(name string) string { return name[strings.LastIndexAny(name, ".+")+1:] }

// entityOf returns the position of a table in the configuration of its cache, -1 if it is not there.
func (st *Statement) entityOf(entities []binary.Entity) int {
	return slices.IndexFunc(entities, func(e binary.Entity) bool {
		return strings.EqualFold(e.Table, st.Table) || strings.EqualFold(simpleName(e.ValueType), st.Table) ||
			strings.EqualFold(e.ValueType, st.Table)
	})
}

// ErrNoTable says that a cache does not have a table.
type ErrNoTable struct{ Table string }

// Error implements error.
func (e ErrNoTable) Error() string { return fmt.Sprintf("Table %q not found", e.Table) }

// newTable returns the table of the statement in the cache with a configuration.
func (st *Statement) newTable(config *binary.Config, types binary.Types) (*table, error) {
	t := &table{named: map[string]*tableColumn{}, made: config.Made()}
	entities := config.Entities()
	at := st.entityOf(entities)
	switch {
	case at >= 0:
		t.describe(&entities[at], types)
	case len(entities) > 0:
		return nil, ErrNoTable{st.Table}
	default:
		t.values = contentOf(st.Table, types)
		if t.values.code < 0 && types(t.values.id) == nil {
			return nil, ErrNoTable{st.Table}
		}
	}
	t.add(&tableColumn{EntityField: binary.EntityField{Name: "_KEY"}, part: wholeKey}, false)
	t.add(&tableColumn{EntityField: binary.EntityField{Name: "_VAL"}, part: wholeValue}, false)
	if typ := types(t.values.id); typ != nil && !t.made {
		// A table that only names the whole key and value also has the fields of the type.
		shown := !slices.ContainsFunc(t.columns, func(c *tableColumn) bool { return c.part >= fieldOfKey })
		for _, f := range typ.Fields {
			t.add(&tableColumn{EntityField: binary.EntityField{Name: strings.ToUpper(f.Name), Precision: -1, Scale: -1}, field: f.Name,
				id: f.ID, code: columnCode(f.Code), part: fieldOfValue}, shown)
		}
	}
	return t, nil
}

// columnCode returns the type of the values of a registered field; 0 if they have various types.
func columnCode(code int32) binary.Code {
	if c := binary.Code(code); code == int32(c) && sqlNames[c] != "" {
		return c
	}
	return 0
}

// describe adds the columns of a configuration.
func (t *table) describe(e *binary.Entity, types binary.Types) {
	t.keys, t.values = contentOf(e.KeyType, types), contentOf(e.ValueType, types)
	for _, f := range e.Fields {
		c := &tableColumn{EntityField: f, field: f.Name, id: binary.ID(f.Name), part: fieldOfValue}
		switch {
		case strings.EqualFold(f.Name, e.KeyField) && e.KeyField != "":
			c.part = wholeKey
		case strings.EqualFold(f.Name, e.ValueField) && e.ValueField != "":
			c.part = wholeValue
		case f.Key:
			c.part = fieldOfKey
		}
		if alias := e.Aliases[f.Name]; alias != "" {
			c.Name = alias
		}
		c.Name = strings.ToUpper(c.Name)
		t.add(c, true)
	}
	for field, alias := range e.Aliases {
		t.add(&tableColumn{EntityField: binary.EntityField{Name: strings.ToUpper(alias), Precision: -1, Scale: -1}, field: field,
			id: binary.ID(field), part: fieldOfValue}, false)
	}
	t.add(&tableColumn{EntityField: binary.EntityField{Name: strings.ToUpper(e.KeyField), Type: e.KeyType}, part: wholeKey}, false)
	t.add(&tableColumn{EntityField: binary.EntityField{Name: strings.ToUpper(e.ValueField), Type: e.ValueType}, part: wholeValue}, false)
}

// add adds a column whose name is not taken. shown says that "*" includes it.
func (t *table) add(c *tableColumn, shown bool) {
	if c.Name == "" || t.named[c.Name] != nil {
		return
	}
	if c.Type != "" {
		c.code = codeOf(c.Type)
	}
	t.named[c.Name] = c
	if shown {
		t.columns = append(t.columns, c)
	}
}

// column returns the column of a name.
func (t *table) column(name string) (*tableColumn, error) {
	if c := t.named[strings.ToUpper(name)]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("Column %q not found", name)
}

// fields returns the columns that are in a part of entries.
func (t *table) fields(p part) (columns []*tableColumn) {
	for _, c := range t.columns {
		if c.part == p {
			columns = append(columns, c)
		}
	}
	return columns
}
