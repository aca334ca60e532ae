package rdb

import (
	"fmt"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/lists"
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
	engine.Array:       arrayKind,
	engine.Suggestions: suggestKind,
	engine.VectorSet:   vectorKind,
	engine.Bitmap:      bitmapKind,
	engine.PathHash:    pathHashKind,
}

// kind says how values of a type are read and written.
type kind struct {
	// numbers are the numbers of the readable forms.
	numbers []byte
	// module is the type's name in our own form, which read reads as typeModule; "" if there is no such form.
	// moduleVersion is its version.
	module        string
	moduleVersion uint64
	// redis are the forms of Redis modules that can be read too.
	redis []moduleForm
	// read reads a value in the form of a number. It returns a []byte, valid until recycle, or a collection of package
	// engine's. A repeated element, and an empty collection, is an error.
	read func(d *decoder, number byte, lim *Limits) (any, error)
	// form returns the form in which write writes a value.
	form func(entry *engine.Entry) form
	// write writes a value, and loads it if it is not in memory. For large ones it calls Encoder.written now and then.
	write func(e *Encoder, entry *engine.Entry)
	// own reports whether a value is written in a form of our own, which no Redis reads; nil if none is.
	own func(entry *engine.Entry) bool
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
		if kinds[t].module != "" {
			r[kinds[t].module] = &kinds[t]
		}
	}
	return r
}()

// redisModules has the forms of Redis modules by their names.
var redisModules = func() map[string]moduleForm {
	r := map[string]moduleForm{}
	for t := range kinds {
		for _, f := range kinds[t].redis {
			r[f.name] = f
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

// OwnForm reports whether an entry's value is written in a form that no Redis reads.
func OwnForm(entry *engine.Entry) bool {
	t := int(entry.Type())
	return t < len(kinds) && kinds[t].own != nil && kinds[t].own(entry)
}

// value reads a value in the form of a number, as kind.read does.
func (d *decoder) value(number byte, lim *Limits) (any, error) {
	switch k := readers[number]; {
	case d.valkey && number == typePathHash:
		return d.pathHash()
	case d.valkey && number > typeHashValkey: // Redis gives these numbers another meaning
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
