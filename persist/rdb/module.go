package rdb

import (
	"fmt"
	"slices"
	"strings"
)

// Data of Redis modules. Their own state is skipped, as Redis does without the module; their values are refused, except
// those of types that exist here.

// The kinds of what a module has written, each with its kind in front.
const (
	moduleEnd    = 0
	moduleInt    = 1
	moduleUint   = 2
	moduleFloat  = 3
	moduleDouble = 4
	moduleString = 5
)

// moduleAux skips what a module has stored beside the keys.
func (d *decoder) moduleAux() error {
	if _, err := d.length(); err != nil { // which module
		return err
	}
	for {
		d.recycle()
		kind, err := d.length()
		if err != nil {
			return err
		}
		switch kind {
		case moduleEnd:
			return nil
		case moduleInt, moduleUint:
			_, err = d.length()
		case moduleFloat:
			_, err = d.fixed(4)
		case moduleDouble:
			_, err = d.fixed(8)
		case moduleString:
			_, err = d.string()
		default:
			err = corrupt("a module's datum of the unknown kind %d", kind)
		}
		if err != nil {
			return err
		}
	}
}

// moduleAlphabet has the letters of a module's name, which is nine times six bits of a number.
const moduleAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// moduleValue reads a value in the form of modules, if one of the kinds has the name and the version.
func (d *decoder) moduleValue(number byte, lim *Limits) (any, error) {
	id, err := d.length()
	if err != nil {
		return nil, err
	}
	version := id & moduleVersions
	var name [moduleNameLen]byte
	id >>= 10
	for i := len(name) - 1; i >= 0; i-- {
		name[i] = moduleAlphabet[id&63]
		id >>= 6
	}
	if k := modules[string(name[:])]; k != nil && (version == k.moduleVersion || slices.Contains(k.laterVersions, version)) && number == typeModule {
		return k.read(d, number, lim)
	}
	return nil, fmt.Errorf("%w: a value of the module type %q, version %d", ErrUnsupported, name[:], version)
}

const (
	moduleNameLen  = 9
	moduleVersions = 1<<10 - 1
)

// moduleID returns the number that stands for a version of a module's type.
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

// moduleString reads a string of a module; end says that the value ends in place of one.
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
