package binary

import (
	le "encoding/binary"
	"fmt"
	"math"
)

// headerLen is the length of a complex object's header.
const headerLen = 24

// The flags of complex objects.
const (
	flagUserType      = 1
	flagSchema        = 2
	flagRaw           = 4
	flagByteOffsets   = 8
	flagShortOffsets  = 16
	flagCompactFooter = 32
)

// Object is a complex object whose header has been read.
type Object struct {
	TypeID, Hash, SchemaID int32

	b      []byte // the whole object
	flags  uint16
	footer []byte // ids and offsets
}

// Field is a field of a complex object.
type Field struct {
	ID    int32
	Value []byte // an object
}

// Schemas returns the fields of a schema, for objects that do not contain their field ids; nil if the schema is
// unknown.
type Schemas func(typeID, schemaID int32) []int32

// ParseObject reads a complex object.
func ParseObject(object []byte) (o Object, err error) {
	n, err := Len(object)
	if err != nil || Code(object[0]) != Complex {
		return o, ErrMalformed
	}
	b := object[:n]
	o = Object{
		TypeID: int32(le.LittleEndian.Uint32(b[4:])), Hash: int32(le.LittleEndian.Uint32(b[8:])),
		SchemaID: int32(le.LittleEndian.Uint32(b[16:])), b: b, flags: le.LittleEndian.Uint16(b[2:]),
	}
	if b[1] != 1 {
		return o, fmt.Errorf("%w: version %d", ErrMalformed, b[1])
	}
	if o.flags&flagSchema == 0 {
		return o, nil
	}
	from, to := int(int32(le.LittleEndian.Uint32(b[20:]))), n
	if o.flags&flagRaw != 0 {
		to -= 4
	}
	if from < headerLen || from > to || (to-from)%o.entryLen() != 0 {
		return o, ErrMalformed
	}
	o.footer = b[from:to]
	return o, nil
}

// entryLen is the length of a field's entry in the footer.
func (o *Object) entryLen() int {
	n := 4
	if o.flags&flagCompactFooter != 0 {
		n = 0
	}
	switch {
	case o.flags&flagByteOffsets != 0:
		return n + 1
	case o.flags&flagShortOffsets != 0:
		return n + 2
	}
	return n + 4
}

// Fields calls fn with the fields of the object until fn returns false. It uses schemas if the object does not
// contain its field ids.
func (o *Object) Fields(schemas Schemas, fn func(f Field) bool) error {
	size := o.entryLen()
	n := len(o.footer) / size
	var ids []int32
	if o.flags&flagCompactFooter != 0 && n > 0 {
		if ids = schemas(o.TypeID, o.SchemaID); len(ids) < n {
			return fmt.Errorf("%w: the schema %d of type %d is not known", ErrMalformed, o.SchemaID, o.TypeID)
		}
	}
	for i := range n {
		entry := o.footer[i*size : (i+1)*size]
		var f Field
		if ids != nil {
			f.ID = ids[i]
		} else {
			f.ID, entry = int32(le.LittleEndian.Uint32(entry)), entry[4:]
		}
		at := 0
		switch len(entry) {
		case 1:
			at = int(entry[0])
		case 2:
			at = int(le.LittleEndian.Uint16(entry))
		default:
			at = int(int32(le.LittleEndian.Uint32(entry)))
		}
		if at < headerLen || at >= len(o.b) {
			return ErrMalformed
		}
		var err error
		if f.Value, _, err = Next(o.b[at:]); err != nil {
			return err
		}
		if !fn(f) {
			return nil
		}
	}
	return nil
}

// Field returns the value of a field, nil if the object does not have it.
func (o *Object) Field(schemas Schemas, id int32) (value []byte, err error) {
	err = o.Fields(schemas, func(f Field) bool {
		if f.ID != id {
			return true
		}
		value = f.Value
		return false
	})
	return value, err
}

// AppendObject appends a complex object that contains its field ids.
func AppendObject(dst []byte, typeID int32, fields []Field) []byte {
	return appendObject(dst, typeID, fields, 0)
}

// AppendCompact appends a complex object as most clients write it: without its field ids, which the schema of its
// registered type must have, and with short offsets.
func AppendCompact(dst []byte, typeID int32, fields []Field) []byte {
	return appendObject(dst, typeID, fields, flagCompactFooter)
}

// appendObject appends a complex object. flags may have flagCompactFooter.
func appendObject(dst []byte, typeID int32, fields []Field, flags uint16) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, headerLen)...)
	offsets, ids := make([]int, len(fields)), make([]int32, len(fields))
	for i, f := range fields {
		offsets[i], ids[i] = len(dst)-start, f.ID
		dst = append(dst, f.Value...)
	}
	schemaAt := len(dst) - start
	hash := int32(1)
	for _, c := range dst[start+headerLen:] {
		hash = 31*hash + int32(int8(c))
	}
	compact := flags&flagCompactFooter != 0
	flags |= flagUserType | flagSchema
	last := 0
	if len(fields) > 0 {
		last = offsets[len(fields)-1]
	}
	switch {
	case len(fields) == 0:
		flags, schemaAt = flagUserType, 0
	case compact && last <= math.MaxUint8:
		flags |= flagByteOffsets
	case compact && last <= math.MaxUint16:
		flags |= flagShortOffsets
	}
	for i, id := range ids {
		if !compact {
			dst = le.LittleEndian.AppendUint32(dst, uint32(id))
		}
		switch {
		case flags&flagByteOffsets != 0:
			dst = append(dst, byte(offsets[i]))
		case flags&flagShortOffsets != 0:
			dst = le.LittleEndian.AppendUint16(dst, uint16(offsets[i]))
		default:
			dst = le.LittleEndian.AppendUint32(dst, uint32(offsets[i]))
		}
	}
	h := dst[start:]
	h[0], h[1] = byte(Complex), 1
	le.LittleEndian.PutUint16(h[2:], flags)
	le.LittleEndian.PutUint32(h[4:], uint32(typeID))
	le.LittleEndian.PutUint32(h[8:], uint32(hash))
	le.LittleEndian.PutUint32(h[12:], uint32(len(h)))
	le.LittleEndian.PutUint32(h[16:], uint32(SchemaID(ids)))
	le.LittleEndian.PutUint32(h[20:], uint32(schemaAt))
	return dst
}
