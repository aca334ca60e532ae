package rdb

import (
	"fmt"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/arrays"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/engine/vectors"
)

// kinds is all that files and payloads know about the types of values. Each type's functions are in a file of its own;
// those of strings are short and at the end of this file. A type that is not in the table has no form: it cannot be
// dumped or written to a file. No other code of this package depends on a type.
var kinds = [...]kind{
	engine.String:      stringKind,
	engine.List:        listKind,
	engine.Set:         setKind,
	engine.ZSet:        zsetKind,
	engine.Hash:        hashKind,
	engine.Stream:      streamKind,
	engine.Bloom:       bloomKind,
	engine.Cuckoo:      cuckooKind,
	engine.CountMin:    countMinKind,
	engine.TopK:        topKKind,
	engine.TDigest:     tDigestKind,
	engine.JSON:        jsonKind,
	engine.TimeSeries:  timeSeriesKind,
	engine.Array:       partsKind("atomARRAY", func(e *engine.Entry) parts { return e.Array() }, arrays.NewLoader),
	engine.Suggestions: suggestKind,
	engine.VectorSet:   partsKind("atomVECTR", func(e *engine.Entry) parts { return e.Vectors() }, vectors.NewLoader),
}

// kind says how values of a type are read and written.
type kind struct {
	// numbers are the numbers of the readable forms.
	numbers []byte
	// module is the name of the type if its values have the form of module values, and no number. moduleVersion is the
	// version of the form.
	module        string
	moduleVersion uint64
	// otherVersions can be read too.
	otherVersions []uint64
	// former is the form in a module of our own, which older versions wrote. Values for which the Redis module has no form
	// are still written in it.
	former partsForm
	// read reads a value in the form of a number. It returns a []byte, valid until recycle, or a collection of package
	// engine's. A repeated element, and an empty collection, is an error.
	read func(d *decoder, number byte, lim *Limits) (any, error)
	// form returns the form in which write writes a value.
	form func(entry *engine.Entry) form
	// write writes a value, and loads it if it is not in memory. For large ones it calls Encoder.written now and then.
	write func(e *Encoder, entry *engine.Entry)
	// saved writes a value as Redis does, to determine its length; nil if write does that. limit is the node size of
	// lists.
	saved func(e *Encoder, entry *engine.Entry, limit lists.Limit)
}

// form identifies a stored form.
type form struct {
	number  byte
	version uint16 // the first that has it, or Version
}

// plainForm is for types with a single form, which Version has.
func plainForm(number byte) func(*engine.Entry) form {
	return func(*engine.Entry) form { return form{number, Version} }
}

// readers has the kinds by the numbers of their forms.
var readers = func() (r [256]*kind) {
	for t := range kinds {
		for _, number := range kinds[t].numbers {
			r[number] = &kinds[t]
		}
	}
	return r
}()

// modules has the kinds by their names as modules.
var modules = func() map[string]*kind {
	r := map[string]*kind{}
	for t := range kinds {
		for _, name := range [...]string{kinds[t].module, kinds[t].former.module} {
			if name != "" {
				r[name] = &kinds[t]
			}
		}
	}
	return r
}()

// kindOf returns the kind of an entry's value, and its form. If the type has none, it returns an error that names the
// key.
func kindOf(entry *engine.Entry) (*kind, form, error) {
	if t := int(entry.Type()); t < len(kinds) && kinds[t].write != nil {
		return &kinds[t], kinds[t].form(entry), nil
	}
	return nil, form{}, fmt.Errorf("key %s: a %s has no form in RDB files", strconv.Quote(entry.Key()), entry.Type())
}

// value reads a value in the form of a number, as kind.read does.
func (d *decoder) value(number byte, lim *Limits) (any, error) {
	switch k := readers[number]; {
	case k != nil:
		return k.read(d, number, lim)
	case number == typeModule || number == typeModuleOld:
		return d.moduleValue(number, lim)
	}
	return nil, corrupt("the unknown type %d", number)
}

var stringKind = kind{
	numbers: []byte{typeString},
	read:    func(d *decoder, _ byte, _ *Limits) (any, error) { return d.string() },
	form:    plainForm(typeString),
	write:   func(e *Encoder, entry *engine.Entry) { e.string(entry.Bytes()) },
}
