package rdb

import (
	"cmp"
	"encoding/binary"
	"math"
	"strings"
)

// Data of Redis modules. The caller gets data that is stored beside the keys, and need not read it. Values of modules
// are refused, unless their type exists here.

// The kinds of a module's data; each datum is preceded by its kind.
const (
	moduleEnd    = 0
	moduleInt    = 1
	moduleUint   = 2
	moduleFloat  = 3
	moduleDouble = 4
	moduleString = 5
)

// The places of a module's data.
const (
	beforeKeys = 1
	behindKeys = 2
)

// Module is the data that a Redis module has stored, beside the keys or as a value. Its methods read the data one by
// one until the next call of Reader.Next, which skips the rest. A datum of another kind, or the end of the data, is an
// error; Err returns the first one, and afterwards all data is zero.
type Module struct {
	Name    string // of the module's type, nine letters
	Version uint64 // of the form
	// AfterKeys says that the data follows the keys instead of preceding them.
	AfterKeys bool

	d    *decoder
	err  error
	over bool
}

// module reads the head of a module's data.
func (d *decoder) module() (*Module, error) {
	id, err := d.length()
	if err != nil {
		return nil, err
	}
	m := &Module{d: d}
	m.Name, m.Version = moduleOf(id)
	m.AfterKeys = m.Uint() != beforeKeys
	return m, m.err
}

// next reads the kind of a datum.
func (m *Module) next() (kind uint64) {
	if m.over || m.err != nil {
		return moduleEnd
	}
	m.d.recycle()
	if kind, m.err = m.d.length(); m.err == nil && kind == moduleEnd {
		m.over = true
	}
	return kind
}

// expect reads the kind of a datum, and fails if it differs.
func (m *Module) expect(want uint64) bool {
	if kind := m.next(); m.err == nil && kind != want {
		m.err = corrupt("the module type %q has a datum of the kind %d in the place of the kind %d", m.Name, kind, want)
	}
	return m.err == nil
}

// Uint reads an integer; a signed one has the same bits.
func (m *Module) Uint() (n uint64) {
	if m.expect(moduleUint) {
		n, m.err = m.d.length()
	}
	return n
}

// Double reads a floating-point number.
func (m *Module) Double() (f float64) {
	if !m.expect(moduleDouble) {
		return 0
	}
	var b []byte
	if b, m.err = m.d.fixed(8); m.err == nil {
		f = math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return f
}

// Text reads a string.
func (m *Module) Text() string { return string(m.bytes()) }

// bytes reads a string. It is valid until the next datum is read.
func (m *Module) bytes() (b []byte) {
	if m.expect(moduleString) {
		b, m.err = m.d.string()
	}
	return b
}

// payload reports whether the data is in a payload, and not in a file.
func (m *Module) payload() bool { return m.d.r == nil }

// More reports whether there are more data.
func (m *Module) More() bool {
	if m.over || m.err != nil {
		return false
	}
	var kind byte
	kind, m.err = m.d.peek()
	return m.err == nil && kind != moduleEnd
}

// Err returns the first error.
func (m *Module) Err() error { return m.err }

// Fail sets the error, unless there is one. The file cannot be read further.
func (m *Module) Fail(err error) { m.err = cmp.Or(m.err, err) }

// Corrupt is Fail for data that the module cannot have written.
func (m *Module) Corrupt(format string, args ...any) { m.Fail(corrupt(format, args...)) }

// skip reads the rest of the data.
func (m *Module) skip() error {
	for !m.over && m.err == nil {
		switch kind := m.next(); kind {
		case moduleEnd:
		case moduleInt, moduleUint:
			_, m.err = m.d.length()
		case moduleFloat:
			_, m.err = m.d.fixed(4)
		case moduleDouble:
			_, m.err = m.d.fixed(8)
		case moduleString:
			_, m.err = m.d.string()
		default:
			m.err = corrupt("a module's datum of the unknown kind %d", kind)
		}
	}
	return m.err
}

// moduleForm is the form of a Redis module's values.
type moduleForm struct {
	name   string // of the type
	newest uint64 // all versions up to it are read
	// read reads a value of m's version. It need not check Err; if Err is set, its result is ignored.
	read func(m *Module, lim *Limits) any
}

// moduleAlphabet has the letters of a module's name, which is nine groups of six bits of a number.
const moduleAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// moduleValue reads a value in the form of modules, if a kind has its name and version.
func (d *decoder) moduleValue(number byte, lim *Limits) (any, error) {
	id, err := d.length()
	if err != nil {
		return nil, err
	}
	name, version := moduleOf(id)
	if f, ok := redisModules[name]; ok && version <= f.newest && number == typeModule {
		m := &Module{Name: name, Version: version, d: d}
		v := f.read(m, lim)
		m.expect(moduleEnd)
		return v, m.err
	}
	if k := modules[name]; k != nil && version == k.moduleVersion && number == typeModule {
		return k.read(d, number, lim)
	}
	return nil, &UnknownType{name, version, number == typeModule}
}

const (
	moduleNameLen  = 9
	moduleVersions = 1<<10 - 1
)

// moduleOf returns the name and the version encoded in a number.
func moduleOf(id uint64) (string, uint64) {
	version := id & moduleVersions
	var name [moduleNameLen]byte
	id >>= 10
	for i := len(name) - 1; i >= 0; i-- {
		name[i] = moduleAlphabet[id&63]
		id >>= 6
	}
	return string(name[:]), version
}

// moduleID encodes the name and version of a module's type in a number.
func moduleID(name string, version uint64) (id uint64) {
	for i := range moduleNameLen {
		id = id<<6 | uint64(strings.IndexByte(moduleAlphabet, name[i]))
	}
	return id<<10 | version
}

// moduleString writes a string as a module does.
func (e *Encoder) moduleString(b []byte) {
	e.length(moduleString)
	e.string(b)
}

// moduleString reads a string of a module; end reports the end of the value instead.
func (d *decoder) moduleString() (b []byte, end bool, err error) {
	kind, err := d.length()
	switch {
	case err != nil || kind == moduleEnd:
		return nil, true, err
	case kind != moduleString:
		return nil, false, corrupt("a module's datum of the kind %d in the place of a string", kind)
	}
	b, err = d.string()
	return b, false, err
}

// ModuleWriter writes the data that a Redis module would store, beside the keys or as a value.
type ModuleWriter struct{ e *Encoder }

// moduleHead begins a value of a module's type. End of the ModuleWriter ends it.
func (e *Encoder) moduleHead(name string, version uint64) ModuleWriter {
	e.length(moduleID(name, version))
	return ModuleWriter{e}
}

// Module begins data of a module's type; Module describes the arguments. End of the ModuleWriter ends it.
func (e *Encoder) Module(name string, version uint64, afterKeys bool) ModuleWriter {
	e.buf = append(e.buf, opModuleAux)
	e.length(moduleID(name, version))
	w := ModuleWriter{e}
	when := uint64(beforeKeys)
	if afterKeys {
		when = behindKeys
	}
	w.Uint(when)
	return w
}

// Uint writes whole numbers.
func (w ModuleWriter) Uint(list ...uint64) {
	for _, n := range list {
		w.e.length(moduleUint)
		w.e.length(n)
	}
}

// Double writes a number with a fraction.
func (w ModuleWriter) Double(f float64) {
	w.e.length(moduleDouble)
	w.e.buf = binary.LittleEndian.AppendUint64(w.e.buf, math.Float64bits(f))
}

// Text writes a string.
func (w ModuleWriter) Text(s string) { w.e.moduleString([]byte(s)) }

// End ends the data.
func (w ModuleWriter) End() {
	w.e.length(moduleEnd)
	w.e.written()
}
