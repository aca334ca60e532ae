package rdb

import (
	"encoding/binary"
	"fmt"

	"github.com/atomredis/atomredis/engine"
)

// A payload is a value or libraries of functions as in a file, followed by the version in two bytes and the checksum of
// everything before in eight, both little-endian.

const footerLength = 2 + 8

// footer completes a payload.
func (e *Encoder) footer(version uint16) []byte {
	e.buf = binary.LittleEndian.AppendUint16(e.buf, version)
	e.buf = binary.LittleEndian.AppendUint64(e.buf, checksum(0, e.buf))
	return e.buf
}

// Seal adds a payload's footer to b, for tools and tests.
func Seal(b []byte) []byte {
	e := Encoder{buf: b[:len(b):len(b)]}
	return e.footer(Version)
}

// open checks a payload's footer, with skipChecksum except for the checksum, and returns a decoder of the content. A
// checksum of zero means none.
func open(payload []byte, skipChecksum bool) (d decoder, err error) {
	end := len(payload) - footerLength
	if end < 0 {
		return d, ErrChecksum
	}
	version := uint64(binary.LittleEndian.Uint16(payload[end:]))
	if d.valkey = version >= OldestValkey; !d.knows(version) {
		return d, ErrChecksum
	}
	if sum := binary.LittleEndian.Uint64(payload[end+2:]); !skipChecksum && sum != 0 && sum != checksum(0, payload[:end+2]) {
		return d, ErrChecksum
	}
	d.buf = payload[:end:end]
	return d, nil
}

// Dump returns a value as a payload. It fails for a type without a form.
func Dump(entry *engine.Entry) ([]byte, error) { return payloadOf(entry, Encoder{}) }

// DumpAlone returns a value as a payload without references to other keys: a time series loses its rules and its
// source.
func DumpAlone(entry *engine.Entry) ([]byte, error) { return payloadOf(entry, Encoder{alone: true}) }

func payloadOf(entry *engine.Entry, e Encoder) ([]byte, error) {
	k, form, err := kindOf(entry)
	if err != nil {
		return nil, err
	}
	e.buf = []byte{form.number}
	k.write(&e, entry)
	return e.footer(form.version), nil
}

// HoldsString reports whether a payload, which may be invalid, claims to have a string.
func HoldsString(payload []byte) bool { return len(payload) > 0 && payload[0] == typeString }

// Restore returns the value of a payload: a []byte that shares its memory, or a collection.
func Restore(payload []byte, lim *Limits) (any, error) {
	d, err := open(payload, lim.SkipChecksum)
	if err != nil {
		return nil, err
	}
	typ, err := d.byte()
	if err != nil {
		return nil, err
	}
	v, err := d.value(typ, lim)
	if err == nil && d.pos != len(d.buf) {
		err = corrupt("%d bytes behind the value", len(d.buf)-d.pos)
	}
	return v, err
}

// DumpFunctions returns the sources of libraries as a payload.
func DumpFunctions(codes []string) []byte {
	var e Encoder
	for _, code := range codes {
		e.buf = append(e.buf, opFunction)
		e.string([]byte(code))
	}
	return e.footer(Version)
}

// RestoreFunctions returns the sources of the libraries in a payload. Besides ErrChecksum and ErrCorrupt it fails with
// ErrNotFunction, and with ErrUnsupported for the form of a release candidate of Redis 7.0, which Redis 8 refuses too.
func RestoreFunctions(payload []byte) (codes []string, err error) {
	d, err := open(payload, false)
	if err != nil {
		return nil, err
	}
	for d.pos < len(d.buf) {
		op, err := d.byte()
		if err != nil {
			return nil, err
		}
		switch op {
		case opFunction:
		case opFunctionOld:
			return nil, ErrUnsupported
		default:
			return nil, ErrNotFunction
		}
		code, err := d.string()
		if err != nil {
			return nil, err
		}
		codes = append(codes, string(code))
	}
	return codes, nil
}

// oldFunction returns the source of a library in the form of candidates of Redis 7.0: name, engine, perhaps a
// description, and the code, which does not begin with name and engine.
func (d *decoder) oldFunction() ([]byte, error) {
	name, err := d.string()
	if err != nil {
		return nil, err
	}
	engine, err := d.string()
	if err != nil {
		return nil, err
	}
	described, err := d.length()
	if err == nil && described != 0 {
		_, err = d.string()
	}
	if err != nil {
		return nil, err
	}
	code, err := d.string()
	return fmt.Appendf(nil, "#!%s name=%s\n%s", engine, name, code), err
}
