package rdb

import (
	"iter"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/engine/lists"
)

var hashKind = kind{
	numbers: []byte{
		typeHash, typeHashZipmap, typeHashZiplist, typeHashListpack, typeHashExpire, typeHashExpireEarly, typeHashPack,
		typeHashPackEarly,
	},
	read: (*decoder).hash,
	form: func(entry *engine.Entry) form {
		if entry.Hash().NextDeadline() != 0 {
			return form{typeHashExpire, VersionExpiringFields}
		}
		return form{typeHash, Version}
	},
	write: func(e *Encoder, entry *engine.Entry) { e.hash(entry.Hash()) },
	saved: func(e *Encoder, entry *engine.Entry, _ lists.Limit) { e.savedHash(entry.Hash()) },
}

func (d *decoder) hash(typ byte, lim *Limits) (any, error) {
	switch {
	case d.valkey && typ == typeHashValkey:
		return d.valkeyHash(lim)
	case typ == typeHashExpire || typ == typeHashExpireEarly:
		return d.expiringHash(typ, lim)
	case typ == typeHashPack || typ == typeHashPackEarly:
		return d.expiringPack(typ, lim)
	}
	h := &hashes.Hash{}
	add := func(field, value []byte) error {
		if !h.Set(field, value, lim.Hash) {
			return corrupt("a field of a hash that comes twice")
		}
		return nil
	}
	pair := func(p *packed) error {
		field, err := p.next()
		if err != nil {
			return err
		}
		value, err := p.next()
		if err != nil {
			return err
		}
		return add(field, value)
	}
	var err error
	switch typ {
	case typeHash:
		err = d.elements(func() error {
			defer d.recycle()
			field, err := d.string()
			if err != nil {
				return err
			}
			value, err := d.string()
			if err != nil {
				return err
			}
			return add(field, value)
		})
	case typeHashZipmap:
		var b []byte
		if b, err = d.string(); err == nil {
			err = zipmap(b, add)
		}
	case typeHashZiplist:
		err = d.packed(ziplist, pair)
	case typeHashListpack:
		err = d.packed(listpack, pair)
	}
	if err == nil && h.Len() == 0 {
		err = errEmpty
	}
	return h, err
}

// maxFieldDeadline is the latest time at which a field can expire, in ms since 1970.
const maxFieldDeadline = 1<<48 - 1

// setExpiring adds a field that expires, unless at is 0.
func setExpiring(h *hashes.Hash, field, value []byte, at int64, lim *Limits) error {
	if !h.Set(field, value, lim.Hash) {
		return corrupt("a field of a hash that comes twice")
	}
	if at < 0 || at > maxFieldDeadline {
		return corrupt("a field that expires at %d", at)
	}
	if at != 0 {
		h.SetDeadline(field, at)
	}
	return nil
}

// expiringHash reads a hash with expiring fields. Each field's deadline stands before it: as a time, or since Redis 7.4
// relative to one millisecond before the earliest deadline, which comes first.
func (d *decoder) expiringHash(typ byte, lim *Limits) (any, error) {
	base := int64(0)
	if typ == typeHashExpire {
		first, err := d.millis()
		if err != nil {
			return nil, err
		}
		if first < 0 || first > maxFieldDeadline+1 { // one above the maximum: no field expires
			return nil, corrupt("a field that expires at %d", first)
		}
		base = first - 1
	}
	h := &hashes.Hash{}
	err := d.elements(func() error {
		defer d.recycle()
		at, err := d.length()
		if err != nil {
			return err
		}
		if at > maxFieldDeadline {
			return corrupt("a field that expires at %d", at)
		}
		field, err := d.string()
		if err != nil {
			return err
		}
		value, err := d.string()
		if err != nil {
			return err
		}
		if at != 0 {
			at += uint64(base)
		}
		return setExpiring(h, field, value, int64(at), lim)
	})
	return h, err
}

// valkeyHash reads a hash with expiring fields of Valkey: each value is followed by its deadline, -1 for none.
func (d *decoder) valkeyHash(lim *Limits) (any, error) {
	h := &hashes.Hash{}
	err := d.elements(func() error {
		defer d.recycle()
		field, err := d.string()
		if err != nil {
			return err
		}
		value, err := d.string()
		if err != nil {
			return err
		}
		at, err := d.millis()
		switch {
		case err != nil:
			return err
		case at == -1:
			at = 0
		case at == 0:
			return corrupt("a field that expires at 0")
		}
		return setExpiring(h, field, value, at, lim)
	})
	return h, err
}

// expiringPack reads a small hash with expiring fields: a listpack of fields, values and deadlines.
func (d *decoder) expiringPack(typ byte, lim *Limits) (any, error) {
	if typ == typeHashPack {
		if _, err := d.millis(); err != nil { // the earliest deadline
			return nil, err
		}
	}
	h := &hashes.Hash{}
	err := d.packed(listpack, func(p *packed) error {
		field, err := p.next()
		if err != nil {
			return err
		}
		value, err := p.next()
		if err != nil {
			return err
		}
		at, err := p.number()
		if err != nil {
			return err
		}
		return setExpiring(h, field, value, at, lim)
	})
	if err == nil && h.Len() == 0 {
		err = errEmpty
	}
	return h, err
}

// hash writes a hash, with the deadlines of its fields if there are any.
func (e *Encoder) hash(h *hashes.Hash) {
	first := h.NextDeadline()
	if first != 0 {
		e.millis(first)
	}
	e.length(uint64(h.Len()))
	for field, value := range h.All() {
		if first != 0 {
			after := uint64(0)
			if at, _ := h.Deadline(field); at != 0 {
				after = uint64(at - first + 1)
			}
			e.length(after)
		}
		e.string(field)
		e.string(value)
		e.written()
	}
}

// savedHash writes a hash. If any field of a packed one has a deadline, a deadline follows each value, 0 for none.
func (e *Encoder) savedHash(h *hashes.Hash) {
	encoding := h.Encoding()
	if encoding == "hashtable" {
		e.hash(h)
		return
	}
	deadlines := encoding == "listpackex"
	if deadlines {
		e.millis(h.NextDeadline())
	}
	e.string(listpackOf(fieldsAndValues(h, deadlines)))
}

func fieldsAndValues(h *hashes.Hash, deadlines bool) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for field, value := range h.All() {
			if !yield(field) || !yield(value) {
				return
			}
			if !deadlines {
				continue
			}
			at, _ := h.Deadline(field)
			if !yield(strconv.AppendInt(nil, at, 10)) {
				return
			}
		}
	}
}
