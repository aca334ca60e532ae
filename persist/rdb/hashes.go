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
		typeHashPackEarly, typeHashNamedPack, typeHashTemplatePack, typeHashNamed, typeHashTemplate,
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
		return d.expiringHashPack(typ, lim)
	case typ >= typeHashNamedPack && typ <= typeHashTemplate:
		return d.templateHash(typ, lim)
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

// setExpiring adds a field that expires, unless at is 0.
func setExpiring(h *hashes.Hash, field, value []byte, at int64, lim *Limits) error {
	if !h.Set(field, value, lim.Hash) {
		return corrupt("a field of a hash that comes twice")
	}
	if err := checkElementDeadline(at); err != nil {
		return err
	}
	if at != 0 {
		h.SetDeadline(field, at)
	}
	return nil
}

// expiringHash reads a hash with expiring fields. Early forms have no earliest deadline.
func (d *decoder) expiringHash(typ byte, lim *Limits) (any, error) {
	h := &hashes.Hash{}
	err := d.expiring(typ == typeHashExpire, func(at int64) error {
		field, err := d.string()
		if err != nil {
			return err
		}
		value, err := d.string()
		if err != nil {
			return err
		}
		return setExpiring(h, field, value, at, lim)
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

// expiringHashPack reads a small hash with expiring fields: a listpack of fields, values and deadlines.
func (d *decoder) expiringHashPack(typ byte, lim *Limits) (any, error) {
	h := &hashes.Hash{}
	err := d.expiringPack(typ == typeHashPack, func(p *packed) error {
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
			at, _ := h.Deadline(field)
			e.elementDeadline(first, at)
		}
		e.string(field)
		e.string(value)
		e.written()
	}
}

// valkeyHash writes a hash with fields that expire in the form of Valkey: a deadline follows each value, -1 for none.
func (e *Encoder) valkeyHash(h *hashes.Hash) {
	e.length(uint64(h.Len()))
	for field, value := range h.All() {
		e.string(field)
		e.string(value)
		if at, _ := h.Deadline(field); at != 0 {
			e.millis(at)
		} else {
			e.millis(-1)
		}
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
