package binary

import (
	le "encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Property is the code of a property in the configuration of a cache.
type Property int16

// The properties that are used here. Others are stored without effect.
const (
	PropertyName      Property = 0
	PropertyMode      Property = 1
	PropertyAtomicity Property = 2
	PropertyBackups   Property = 3
	PropertyWriteSync Property = 4
	PropertyRegion    Property = 100
	PropertyEntities  Property = 200
	PropertyParallel  Property = 201
	PropertySchema    Property = 203
	PropertyGroup     Property = 400
	PropertyKeys      Property = 401
	PropertyExpiry    Property = 407

	// PropertyMade says that CREATE TABLE made the cache. It is no property of Ignite, and clients do not get it.
	PropertyMade Property = -1
)

// form is the encoding of a property's value.
type form byte

const (
	formBool form = iota + 1
	formInt
	formLong
	formString
	formKeys     // of 401
	formExpiry   // of 407
	formEntities // of 200
)

var forms = map[Property]form{
	0: formString, 1: formInt, 2: formInt, 3: formInt, 4: formInt, 5: formBool, 6: formBool, 100: formString, 101: formBool,
	200: formEntities, 201: formInt, 202: formInt, 203: formString, 204: formInt, 205: formBool, 206: formInt, 300: formInt,
	301: formLong, 302: formLong, 303: formInt, 304: formLong, 305: formInt, 306: formLong, 400: formString, 401: formKeys,
	402: formLong, 403: formInt, 404: formInt, 405: formBool, 406: formBool, 407: formExpiry, PropertyMade: formBool,
}

// shown is the order of the properties on the wire.
var shown = []Property{2, 3, 1, 5, 100, 405, 406, 400, 402, 403, 206, 0, 101, 404, 202, 201, 6, 303, 304, 301, 300, 305, 306,
	302, 205, 204, 203, 4, 401, 200}

// defaults are the default values of properties, where they are not 0, false, null or none.
var defaults = map[Property]int64{1: 2, 2: 1, 5: 1, 6: 1, 201: 1, 206: 1024, 300: 1, 302: 10000, 303: 524288, 304: 2, 403: 500,
	404: 4, 405: 1, 4: 2, 204: -1}

// Config is the configuration of a cache.
type Config struct {
	values map[Property][]byte // encoded, as received
}

// ErrConfig says that a configuration has an unknown property, whose length is therefore unknown.
var ErrConfig = errors.New("unknown property")

// ParseConfig reads a configuration: the number of its properties, and each value after its code. It must be all of
// b. The configuration refers to the memory of b.
func ParseConfig(b []byte) (*Config, error) {
	r := Reader{b: b}
	c := &Config{values: map[Property][]byte{}}
	for range r.Int16() {
		p := Property(r.Int16())
		if r.err != nil {
			break
		}
		f, ok := forms[p]
		if !ok {
			return nil, fmt.Errorf("%w %d", ErrConfig, p)
		}
		start := r.b
		r.skip(f)
		c.values[p] = start[:len(start)-len(r.b)]
	}
	if r.err == nil && len(r.b) > 0 {
		r.err = ErrMalformed
	}
	return c, r.err
}

// skip skips the value of a property.
func (r *Reader) skip(f form) {
	switch f {
	case formBool:
		r.Take(1)
	case formInt:
		r.Take(4)
	case formLong:
		r.Take(8)
	case formString:
		_ = r.String()
	case formKeys:
		for range r.Count(2) {
			_, _ = r.String(), r.String()
		}
	case formExpiry:
		if r.Bool() {
			r.Expiry()
		}
	case formEntities:
		for range r.Count(5) {
			r.entity()
		}
	}
}

// Name returns the name of the cache.
func (c *Config) Name() string { return c.text(PropertyName) }

// Schema returns the name of the cache in SQL, if that differs.
func (c *Config) Schema() string { return c.text(PropertySchema) }

// Replicated reports whether the cache asks for a copy on every server.
func (c *Config) Replicated() bool { return c.number(PropertyMode, defaults[PropertyMode]) == 1 }

// Backups returns how many copies besides the first the cache asks for.
func (c *Config) Backups() int { return int(max(c.number(PropertyBackups, 0), 0)) }

// AffinityKey says that the field of a type decides where its objects are as keys.
type AffinityKey struct{ TypeID, FieldID int32 }

// AffinityKeys returns the affinity keys of the cache.
func (c *Config) AffinityKeys() (all []AffinityKey) {
	r := Reader{b: c.values[PropertyKeys]}
	if len(r.b) == 0 {
		return nil
	}
	for range r.Count(2) {
		all = append(all, AffinityKey{TypeID: ID(r.String())})
		all[len(all)-1].FieldID = ID(r.String())
	}
	return all
}

func (c *Config) number(p Property, otherwise int64) int64 {
	if b, ok := c.values[p]; ok && len(b) == 4 {
		return int64(int32(le.LittleEndian.Uint32(b)))
	}
	return otherwise
}

func (c *Config) text(p Property) string {
	r := Reader{b: c.values[p]}
	return r.String()
}

// Expiry is the lifetime of a cache's entries after they were created, updated and read, in ms; 0 removes them at
// once.
type Expiry struct{ Created, Updated, Accessed int64 }

// Special durations.
const (
	ForEver  int64 = -1
	AsBefore int64 = -2 // for new entries this is for ever
)

// NoExpiry is the Expiry of caches without an expiry policy.
var NoExpiry = Expiry{AsBefore, AsBefore, AsBefore}

// Valid reports whether the durations are valid.
func (e Expiry) Valid() bool { return min(e.Created, e.Updated, e.Accessed) >= AsBefore }

// Expiry returns the expiry policy of the cache.
func (c *Config) Expiry() Expiry {
	r := Reader{b: c.values[PropertyExpiry]}
	if !r.Bool() {
		return NoExpiry
	}
	return r.Expiry()
}

// Expiry reads an expiry policy.
func (r *Reader) Expiry() Expiry {
	e := Expiry{r.Int64(), r.Int64(), r.Int64()}
	if !e.Valid() {
		r.Fail(ErrMalformed)
	}
	return e
}

// AppendExpiring appends the configuration of a cache with only an expiry policy, as clients send it.
func AppendExpiring(dst []byte, name string, e Expiry) []byte {
	dst = le.LittleEndian.AppendUint16(dst, 2)
	dst = AppendString(le.LittleEndian.AppendUint16(dst, uint16(PropertyName)), name)
	dst = append(le.LittleEndian.AppendUint16(dst, uint16(PropertyExpiry)), 1)
	for _, ms := range []int64{e.Created, e.Updated, e.Accessed} {
		dst = le.LittleEndian.AppendUint64(dst, uint64(ms))
	}
	return dst
}

// Entity is a table of SQL: the values of a type.
type Entity struct {
	KeyType, ValueType, Table, KeyField, ValueField string
	Fields                                          []EntityField
	Aliases                                         map[string]string // of fields
	Indexes                                         []EntityIndex
}

// EntityField is a column.
type EntityField struct {
	Name, Type string
	Key        bool   // it is a field of the key
	NotNull    bool   // it cannot be null
	Default    []byte // an object; null without a default
	Precision  int32  // -1 if it is not given
	Scale      int32  // -1 if it is not given
}

// EntityIndex is an index.
type EntityIndex struct {
	Name   string
	Kind   byte
	Inline int32
	Fields []IndexField
}

// IndexField is a column of an index.
type IndexField struct {
	Name       string
	Descending bool
}

// HasIndex reports whether the table has an index.
func (e *Entity) HasIndex(name string) bool {
	return slices.ContainsFunc(e.Indexes, func(i EntityIndex) bool { return i.Name == name })
}

// Entities returns the tables of the cache.
func (c *Config) Entities() (entities []Entity) {
	r := Reader{b: c.values[PropertyEntities]}
	if len(r.b) == 0 {
		return nil
	}
	for range r.Count(5) {
		entities = append(entities, r.entity())
	}
	return entities
}

func (r *Reader) entity() (e Entity) {
	e.KeyType, e.ValueType, e.Table, e.KeyField, e.ValueField = r.String(), r.String(), r.String(), r.String(), r.String()
	for range r.Count(13) {
		e.Fields = append(e.Fields, EntityField{Name: r.String(), Type: r.String(), Key: r.Bool(), NotNull: r.Bool(),
			Default: r.Object(), Precision: r.Int32(), Scale: r.Int32()})
	}
	for range r.Count(2) {
		if e.Aliases == nil {
			e.Aliases = map[string]string{}
		}
		field := r.String()
		e.Aliases[field] = r.String()
	}
	for range r.Count(10) {
		index := EntityIndex{Name: r.String(), Kind: r.Byte(), Inline: r.Int32()}
		for range r.Count(2) {
			index.Fields = append(index.Fields, IndexField{r.String(), r.Bool()})
		}
		e.Indexes = append(e.Indexes, index)
	}
	return e
}

// append appends the table as entity reads it.
func (e *Entity) append(dst []byte) []byte {
	for _, s := range []string{e.KeyType, e.ValueType, e.Table, e.KeyField, e.ValueField} {
		dst = appendText(dst, s)
	}
	dst = appendInt32(dst, len(e.Fields))
	for _, f := range e.Fields {
		dst = appendText(appendText(dst, f.Name), f.Type)
		dst = appendFlag(appendFlag(dst, f.Key), f.NotNull)
		if len(f.Default) == 0 {
			dst = AppendNull(dst)
		} else {
			dst = append(dst, f.Default...)
		}
		dst = appendInt32(appendInt32(dst, int(f.Precision)), int(f.Scale))
	}
	dst = appendInt32(dst, len(e.Aliases))
	for _, field := range slices.Sorted(maps.Keys(e.Aliases)) {
		dst = appendText(appendText(dst, field), e.Aliases[field])
	}
	dst = appendInt32(dst, len(e.Indexes))
	for _, index := range e.Indexes {
		dst = appendInt32(append(appendText(dst, index.Name), index.Kind), int(index.Inline))
		dst = appendInt32(dst, len(index.Fields))
		for _, f := range index.Fields {
			dst = appendFlag(appendText(dst, f.Name), f.Descending)
		}
	}
	return dst
}

// appendText appends a string, or null for "".
func appendText(dst []byte, s string) []byte {
	if s == "" {
		return AppendNull(dst)
	}
	return AppendString(dst, s)
}

func appendInt32(dst []byte, n int) []byte { return le.LittleEndian.AppendUint32(dst, uint32(n)) }

func appendFlag(dst []byte, v bool) []byte {
	if v {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// NewConfig returns a configuration without properties.
func NewConfig() *Config { return &Config{values: map[Property][]byte{}} }

// SetText sets a property that is a text.
func (c *Config) SetText(p Property, s string) { c.values[p] = AppendString(nil, s) }

// SetInt sets a property that is a number of 32 bits.
func (c *Config) SetInt(p Property, n int) { c.values[p] = appendInt32(nil, n) }

// SetMade sets PropertyMade.
func (c *Config) SetMade() { c.values[PropertyMade] = []byte{1} }

// Made reports whether CREATE TABLE made the cache.
func (c *Config) Made() bool {
	return len(c.values[PropertyMade]) == 1 && c.values[PropertyMade][0] != 0
}

// SetAffinityKey sets the field of the keys of a type that decides where they are.
func (c *Config) SetAffinityKey(typeName, field string) {
	c.values[PropertyKeys] = AppendString(AppendString(appendInt32(nil, 1), typeName), field)
}

// SetEntities sets the tables.
func (c *Config) SetEntities(entities []Entity) {
	b := appendInt32(nil, len(entities))
	for i := range entities {
		b = entities[i].append(b)
	}
	c.values[PropertyEntities] = b
}

// Encode returns the configuration as ParseConfig reads it.
func (c *Config) Encode() []byte {
	dst := le.LittleEndian.AppendUint16(nil, uint16(len(c.values)))
	for _, p := range slices.Sorted(maps.Keys(c.values)) {
		dst = append(le.LittleEndian.AppendUint16(dst, uint16(p)), c.values[p]...)
	}
	return dst
}

// Append appends the configuration as clients get it, with its length. name is the name of the cache; expiry says
// that the client supports expiry policies.
func (c *Config) Append(dst []byte, name string, expiry bool) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for _, p := range shown {
		value, given := c.values[p]
		switch {
		case p == PropertyName:
			dst = AppendString(dst, name)
		case given:
			dst = append(dst, value...)
		default:
			dst = forms[p].appendDefault(dst, defaults[p])
		}
	}
	if expiry {
		if value, given := c.values[PropertyExpiry]; given {
			dst = append(dst, value...)
		} else {
			dst = append(dst, 0)
		}
	}
	le.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst
}

func (f form) appendDefault(dst []byte, n int64) []byte {
	switch f {
	case formBool:
		return append(dst, byte(n))
	case formLong:
		return le.LittleEndian.AppendUint64(dst, uint64(n))
	case formString:
		return AppendNull(dst)
	}
	return le.LittleEndian.AppendUint32(dst, uint32(n)) // a number, or the number of elements
}
