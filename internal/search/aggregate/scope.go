package aggregate

import (
	"github.com/atomredis/atomredis/internal/search/args"
	"github.com/atomredis/atomredis/internal/search/query"
)

// Schema is an index as pipelines see it.
type Schema interface {
	// Field returns the field of a name.
	Field(name string) (Field, bool)
}

// Field is a field of an index.
type Field struct {
	Path     string // its path in documents
	Sortable bool   // the index keeps its value beside the document
	Exact    bool   // that value is the original one, not a normalized form: NUMERIC, UNF
}

// Column is a name of rows, with the slot where they have its value.
type Column struct {
	Name string
	Slot int
	// Path is the path in documents of the field that a Loader puts into the slot; "__key" is the key.
	Path string
	// Field is the name of the field in the schema, "" if it is not in the schema.
	Field string
}

// scope has the names that are visible at one place of a pipeline.
type scope struct {
	columns []*column // in the order in which rows are printed
	byName  map[string]*column
	width   int
	schema  Schema // nil after a GROUPBY: nothing can be loaded
	force   bool   // ignore sort values: see Options.ForceLoad
	all     *loadStage
	inputs  []Column
}

// column is a Column and the source of its value.
type column struct {
	Column
	exact  bool // the source fills in the original value
	loaded bool // a LOAD fills it in
	made   bool // the query, an APPLY or a GROUPBY has made it
}

func newScope(schema Schema) *scope { return &scope{byName: map[string]*column{}, schema: schema} }

// add adds a name.
func (s *scope) add(name string) *column {
	c := &column{Column: Column{Name: name, Slot: s.width, Path: name}}
	s.columns = append(s.columns, c)
	s.byName[name] = c
	s.width++
	return c
}

// set sets the field of a column. It reports whether the source fills in the original value, so that it need not be
// loaded.
func (s *scope) set(c *column, field string, f Field, loading bool) bool {
	c.Path, c.Field = f.Path, field
	c.exact = f.Sortable && f.Exact && !s.force
	if f.Sortable && (c.exact || !loading) {
		s.inputs = append(s.inputs, c.Column)
	}
	return c.exact
}

// read returns the column of a name that has a value without being loaded.
func (s *scope) read(name string) (*column, bool) {
	if c, ok := s.byName[name]; ok {
		return c, true
	}
	if s.schema == nil {
		return nil, false
	}
	f, ok := s.schema.Field(name)
	if !ok || !f.Sortable && s.all == nil {
		return nil, false
	}
	c := s.add(name)
	if exact := s.set(c, name, f, false); s.all != nil && !exact {
		s.all.columns = append(s.all.columns, c.Column)
		c.loaded = true
	}
	return c, true
}

// slot is read for an expression.
func (s *scope) slot(name string) (int, bool) {
	c, ok := s.read(name)
	if !ok {
		return 0, false
	}
	return c.Slot, true
}

// load returns the column for a field that must be loaded; false if its value is present without loading.
func (s *scope) load(name, path string) (*column, bool) {
	c, ok := s.byName[name]
	switch {
	case !ok:
		c = s.add(name)
	case c.made || c.loaded || c.exact:
		return nil, false
	}
	c.Path, c.Field = path, ""
	if f, ok := s.schema.Field(path); ok && s.set(c, path, f, true) {
		return nil, false
	}
	c.loaded = true
	return c, true
}

// make returns the column of a name that a step makes. With replace it replaces an existing name.
func (s *scope) make(name string, replace bool) (*column, error) {
	c, ok := s.byName[name]
	switch {
	case !ok:
		c = s.add(name)
	case !replace:
		return nil, args.Errorf(query.Duplicate, "Property `%s` specified more than once", name)
	}
	c.made = true
	return c, nil
}

// find returns the column of a name, loading it if it is a field of the schema.
func (s *scope) find(name string, load *loadStage) (*column, bool) {
	if c, ok := s.read(name); ok {
		return c, true
	}
	if s.schema == nil {
		return nil, false
	}
	if _, ok := s.schema.Field(name); !ok {
		return nil, false
	}
	c, ok := s.load(name, name)
	if !ok {
		return s.byName[name], true
	}
	load.columns = append(load.columns, c.Column)
	return c, true
}
