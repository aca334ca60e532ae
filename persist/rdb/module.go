package rdb

import "fmt"

// What modules of Redis have stored. There are no modules here: their own state is skipped, as Redis can do too, and
// their values are refused.

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

// moduleValue returns the error for a value of a module.
func (d *decoder) moduleValue() error {
	id, err := d.length()
	if err != nil {
		return err
	}
	version := id & 0x3ff
	var name [9]byte
	id >>= 10
	for i := len(name) - 1; i >= 0; i-- {
		name[i] = moduleAlphabet[id&63]
		id >>= 6
	}
	return fmt.Errorf("%w: a value of the module type %q, version %d", ErrUnsupported, name[:], version)
}
