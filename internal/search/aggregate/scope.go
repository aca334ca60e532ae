package aggregate

import "github.com/atomredis/atomredis/internal/search/args"

// Schema is what a pipeline must know of an index.
type Schema interface {
	// Field returns the field of a name.
	Field(name string) (Field, bool)
}

// Field is a field of an index.
type Field struct {
	Path     string // where documents have it
	Sortable bool   // the index keeps its value beside the document
	Exact    bool   // that value is the original one, not a normalized form: NUMERIC, UNF
}

// Column is a name of rows, with the slot where they have its value.
type Column struct {
	Name string
	Slot int
	// Path is where documents have the field that a Loader puts in the slot; "__key" is the key.
	Path string
	// Field is the name of the field of the schema, "" if it is none of them.
	Field string
}

// scope is the names that are visible at one place of a pipeline.
type scope struct {
	columns []*column // in the order in which rows are printed
	byName  map[string]*column
	width   int
	schema  Schema // nil behind a GROUPBY: nothing can be loaded
	force   bool   // sort values do not count: see Options.ForceLoad
	all     *loadStage
	inputs  []Column
}

// column is a Column and where its value comes from.
type column struct {
	Column
	exact  bool // the source puts the original value in
	loaded bool // a LOAD puts it in
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

// set says which field a column has. It reports whether the source puts the original value in, so that nobody has to load it.
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

// load returns the column for a field that must be loaded; false if its value is there anyway.
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

// make returns the column of a name that a step makes. A name that is there already is replaced if that is allowed.
func (s *scope) make(name string, replace bool) (*column, error) {
	c, ok := s.byName[name]
	switch {
	case !ok:
		c = s.add(name)
	case !replace:
		return nil, args.Errorf(DuplicateName, "Property `%s` specified more than once", name)
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
