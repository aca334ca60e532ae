package query

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
)

// This file calculates the configurations of tables.

// PublicSchema is the schema of statements that name none, and of tables that CREATE TABLE makes.
const PublicSchema = "PUBLIC"

// CacheName returns the name of the cache that CREATE TABLE makes.
func (st *Statement) CacheName() string {
	if name := st.options["CACHE_NAME"]; name != "" {
		return name
	}
	return "SQL_" + PublicSchema + "_" + st.Table
}

// NewTable returns the configuration of the cache that CREATE TABLE makes, and the types to register. unique is part of
// the names of its types.
func (st *Statement) NewTable(cache, unique string) (*binary.Config, []*binary.Type, error) {
	keys, err := st.keyColumns()
	if err != nil {
		return nil, nil, err
	}
	wrapKey, err := st.wraps("WRAP_KEY", keys, len(keys) > 1, "composite primary key exists")
	if err != nil {
		return nil, nil, err
	}
	values := slices.DeleteFunc(slices.Clone(st.definitions), func(f binary.EntityField) bool { return slices.Contains(keys, f.Name) })
	if len(values) == 0 {
		return nil, nil, errors.New("Table must have at least one non PRIMARY KEY column.")
	}
	wrapValue, err := st.wraps("WRAP_VALUE", names(values), true, "multiple non-primary key columns exist")
	if err != nil {
		return nil, nil, err
	}
	e := binary.Entity{Table: st.Table, Fields: st.definitions}
	name := "SQL_" + PublicSchema + "_" + st.Table + "_" + strings.ReplaceAll(unique, "-", "_")
	e.KeyType, e.ValueType = st.option("KEY_TYPE", name+"_KEY"), st.option("VALUE_TYPE", name)
	if !wrapValue {
		e.ValueField, e.ValueType = values[0].Name, values[0].Type
	}
	var keyFields []binary.EntityField
	for i := range e.Fields {
		f := &e.Fields[i]
		if f.Key = slices.Contains(keys, f.Name); !f.Key {
			continue
		}
		if keyFields = append(keyFields, *f); !wrapKey {
			e.KeyField, e.KeyType, f.NotNull = f.Name, f.Type, true
		}
	}
	c := binary.NewConfig()
	c.SetText(binary.PropertyName, cache)
	c.SetText(binary.PropertySchema, PublicSchema)
	c.SetMade()
	c.SetEntities([]binary.Entity{e})
	if err := st.setOptions(c, e.KeyType, keys); err != nil {
		return nil, nil, err
	}
	var types []*binary.Type
	if wrapKey {
		types = append(types, typeOf(e.KeyType, keyFields))
		types[0].Affinity, _ = st.affinity(keys)
	}
	if wrapValue {
		types = append(types, typeOf(e.ValueType, values))
	}
	return c, types, nil
}

// keyColumns returns the columns of the primary key, after it has checked all columns.
func (st *Statement) keyColumns() ([]string, error) {
	seen := map[string]bool{}
	for _, f := range st.definitions {
		switch {
		case seen[f.Name]:
			return nil, fmt.Errorf("Duplicate column name: %s", f.Name)
		case strings.EqualFold(f.Name, "_KEY"), strings.EqualFold(f.Name, "_VAL"), f.Name == "":
			return nil, errors.New("Direct specification of _KEY and _VAL columns is forbidden")
		}
		seen[f.Name] = true
	}
	if len(st.primary) == 0 {
		return nil, errors.New("No PRIMARY KEY defined for CREATE TABLE")
	}
	for i, name := range st.primary {
		switch {
		case !seen[name]:
			return nil, fmt.Errorf("PRIMARY KEY column is not defined: %s", name)
		case slices.Contains(st.primary[:i], name):
			return nil, fmt.Errorf("PRIMARY KEY column is duplicated: %s", name)
		}
	}
	return st.primary, nil
}

func names(fields []binary.EntityField) (names []string) {
	for _, f := range fields {
		names = append(names, f.Name)
	}
	return names
}

// option returns a text, or otherwise if it is not given.
func (st *Statement) option(name, otherwise string) string {
	if s := st.options[name]; s != "" {
		return s
	}
	return otherwise
}

// wraps reports whether columns are fields of an object, and not one column that is a whole key or value.
func (st *Statement) wraps(option string, columns []string, otherwise bool, why string) (bool, error) {
	switch text := strings.ToUpper(st.options[option]); {
	case text == "":
		return otherwise, nil
	case text == "TRUE":
		return true, nil
	case text != "FALSE":
		return false, fmt.Errorf("Invalid value of %q parameter: %s", option, text)
	case len(columns) > 1:
		return false, fmt.Errorf("%s cannot be false when %s.", option, why)
	}
	return false, nil
}

// affinity returns the column that decides where keys are, "" if no column does.
func (st *Statement) affinity(keys []string) (string, error) {
	text := strings.Trim(st.options["AFFINITY_KEY"], "'\"")
	if text == "" {
		return "", nil
	}
	at := slices.IndexFunc(keys, func(name string) bool { return strings.EqualFold(name, text) })
	if at < 0 {
		return "", fmt.Errorf("Affinity key column must be one of key columns: %s", strings.ToUpper(text))
	}
	return keys[at], nil
}

// choices are the values of options that are words, and the properties of the cache that they set.
var choices = map[string]struct {
	property binary.Property
	values   map[string]int
}{
	"TEMPLATE":                   {binary.PropertyMode, map[string]int{"REPLICATED": 1, "PARTITIONED": 2}},
	"ATOMICITY":                  {binary.PropertyAtomicity, map[string]int{"TRANSACTIONAL": 0, "ATOMIC": 1}},
	"WRITE_SYNCHRONIZATION_MODE": {binary.PropertyWriteSync, map[string]int{"FULL_SYNC": 0, "FULL_ASYNC": 1, "PRIMARY_SYNC": 2}},
}

// setOptions sets the properties that the options of the table give.
func (st *Statement) setOptions(c *binary.Config, keyType string, keys []string) error {
	for option, choice := range choices {
		text, given := st.options[option]
		n, ok := choice.values[strings.ToUpper(text)]
		if given && !ok {
			return fmt.Errorf("Invalid value of %q parameter: %s", option, text)
		}
		if given {
			c.SetInt(choice.property, n)
		}
	}
	for option, p := range map[string]binary.Property{"BACKUPS": binary.PropertyBackups, "PARALLELISM": binary.PropertyParallel} {
		n, given, err := st.number(option)
		if err != nil {
			return err
		}
		if given {
			c.SetInt(p, n)
		}
	}
	for option, p := range map[string]binary.Property{"CACHE_GROUP": binary.PropertyGroup, "DATA_REGION": binary.PropertyRegion} {
		if s := st.options[option]; s != "" {
			c.SetText(p, s)
		}
	}
	affinity, err := st.affinity(keys)
	if affinity != "" && len(keys) > 1 {
		c.SetAffinityKey(keyType, affinity)
	}
	return err
}

// typeOf returns the type of objects with fields.
func typeOf(name string, fields []binary.EntityField) *binary.Type {
	t := &binary.Type{ID: binary.ID(name), Name: name}
	var s binary.Schema
	for _, f := range fields {
		id := binary.ID(f.Name)
		t.Fields = append(t.Fields, typeField(f.Name, id, codeOf(f.Type)))
		s.Fields = append(s.Fields, id)
	}
	s.ID = binary.SchemaID(s.Fields)
	t.Schemas = []binary.Schema{s}
	return t
}

// Drops returns an error if DROP TABLE may not remove the cache with a configuration.
func (st *Statement) Drops(cache string, config *binary.Config) error {
	if st.entityOf(config.Entities()) < 0 {
		return ErrNoTable{st.Table}
	}
	if !config.Made() {
		return fmt.Errorf("Only cache created with CREATE TABLE may be removed with DROP TABLE [cacheName=%s]", cache)
	}
	return nil
}

// Alter changes the configuration of a cache as CREATE INDEX, DROP INDEX and ALTER TABLE ask for, and returns the type to
// register, nil if there is nothing to register. changed is false if there is nothing to do.
func (st *Statement) Alter(config *binary.Config) (changed bool, typ *binary.Type, err error) {
	entities := config.Entities()
	at := st.entityOf(entities)
	if st.Kind == DropIndex {
		at = slices.IndexFunc(entities, func(e binary.Entity) bool { return e.HasIndex(st.Index) })
		if at < 0 && st.Optional {
			return false, nil, nil
		}
		if at < 0 {
			return false, nil, fmt.Errorf("Index doesn't exist: %s", st.Index)
		}
	}
	if at < 0 {
		return false, nil, ErrNoTable{st.Table}
	}
	e := &entities[at]
	switch st.Kind {
	case CreateIndex:
		changed, err = st.createIndex(e)
	case DropIndex:
		e.Indexes = slices.DeleteFunc(e.Indexes, func(i binary.EntityIndex) bool { return i.Name == st.Index })
		changed = true
	case AddColumns:
		changed, typ, err = st.addColumns(e)
	case DropColumns:
		changed, err = st.dropColumns(e)
	}
	if err == nil && changed {
		config.SetEntities(entities)
	}
	return changed, typ, err
}

func (st *Statement) createIndex(e *binary.Entity) (changed bool, err error) {
	index := binary.EntityIndex{Name: st.Index, Inline: -1, Fields: st.indexed}
	parts := []string{strings.ToLower(st.Table)}
	for _, f := range st.indexed {
		if columnAt(e, f.Name) < 0 {
			return false, fmt.Errorf("Column doesn't exist: %s", f.Name)
		}
		if parts = append(parts, strings.ToLower(f.Name), "asc"); f.Descending {
			parts[len(parts)-1] = "desc"
		}
	}
	if index.Name == "" {
		index.Name = strings.Join(append(parts, "idx"), "_")
	}
	switch {
	case !e.HasIndex(index.Name):
		e.Indexes = append(e.Indexes, index)
		return true, nil
	case st.Optional:
		return false, nil
	}
	return false, fmt.Errorf("Index already exists: %s", index.Name)
}

// columnAt returns the position of a column, -1 if it is not there.
func columnAt(e *binary.Entity, name string) int {
	return slices.IndexFunc(e.Fields, func(f binary.EntityField) bool { return strings.EqualFold(f.Name, name) })
}

func (st *Statement) addColumns(e *binary.Entity) (changed bool, typ *binary.Type, err error) {
	if e.ValueField != "" || codeOf(e.ValueType) != 0 {
		return false, nil, errors.New("Cannot add column(s) because table was created with WRAP_VALUE=false option.")
	}
	var added []binary.EntityField
	for _, f := range st.definitions {
		switch {
		case columnAt(e, f.Name) >= 0 && st.skips:
			continue
		case columnAt(e, f.Name) >= 0:
			return false, nil, fmt.Errorf("Column already exists: %s", f.Name)
		}
		e.Fields, added = append(e.Fields, f), append(added, f)
	}
	if len(added) == 0 {
		return false, nil, nil
	}
	typ = typeOf(e.ValueType, added)
	typ.Schemas = nil // the first object that has the columns adds one
	return true, typ, nil
}

func (st *Statement) dropColumns(e *binary.Entity) (changed bool, err error) {
	for _, name := range st.names {
		at := columnAt(e, name)
		switch {
		case at < 0 && st.skips:
			continue
		case at < 0:
			return false, fmt.Errorf("Column doesn't exist: %s", name)
		case e.Fields[at].Key || strings.EqualFold(name, e.KeyField):
			return false, fmt.Errorf("Cannot drop column because it is a part of a cache key: %q", name)
		case strings.EqualFold(name, e.ValueField):
			return false, fmt.Errorf("Cannot drop column because it represents an entire cache value: %q", name)
		}
		for _, index := range e.Indexes {
			if slices.ContainsFunc(index.Fields, func(f binary.IndexField) bool { return strings.EqualFold(f.Name, name) }) {
				return false, fmt.Errorf("Cannot drop column %q because an index exists (%q) that uses the column.", name, index.Name)
			}
		}
		e.Fields = slices.Delete(e.Fields, at, at+1)
		changed = true
	}
	return changed, nil
}
