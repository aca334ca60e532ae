package rdb

import (
	"bytes"

	"github.com/atomredis/atomredis/engine/hashes"
)

// Templates of hashes, since Redis 8.10: names of fields that many hashes share, which are in the order of their lengths.
// A file has each template once, before the keys: its number, the number of fields, and the names. A hash in a file then
// has only the number and the values. A payload has the names themselves. Either is read as an ordinary hash.

// How the names of a payload are stored.
const (
	namesPacked = 0 // as a listpack
	namesPlain  = 1 // their number, and each as a string
)

// template reads a template of a file.
func (d *decoder) template() error {
	id, err := d.length()
	if err != nil {
		return err
	}
	names, err := d.plainNames()
	if err != nil {
		return err
	}
	if _, ok := d.templates[id]; ok {
		return corrupt("the template %d comes twice", id)
	}
	if d.templates == nil {
		d.templates = map[uint64][][]byte{}
	}
	d.templates[id] = names
	return nil
}

// plainNames reads a number of names, and the names.
func (d *decoder) plainNames() (names [][]byte, err error) {
	err = d.elements(func() error {
		defer d.recycle()
		name, err := d.string()
		names = append(names, bytes.Clone(name))
		return err
	})
	if err == errEmpty {
		err = errNameless
	}
	return names, err
}

var errNameless = corrupt("a template without fields")

// names reads the names of the fields of a payload.
func (d *decoder) names() (names [][]byte, err error) {
	form, err := d.length()
	switch {
	case err != nil:
		return nil, err
	case form == namesPlain:
		return d.plainNames()
	case form != namesPacked:
		return nil, corrupt("names of fields in the form %d", form)
	}
	defer d.recycle()
	b, err := d.string()
	if err != nil {
		return nil, err
	}
	p, err := listpack(b)
	for err == nil {
		var more bool
		if more, err = p.more(); !more || err != nil {
			break
		}
		var name []byte
		name, err = p.next()
		names = append(names, bytes.Clone(name))
	}
	if err == nil && len(names) == 0 {
		err = errNameless
	}
	return names, err
}

// known returns the names of a template of the file.
func (d *decoder) known(id uint64) ([][]byte, error) {
	names, ok := d.templates[id]
	if !ok {
		return nil, corrupt("the unknown template %d", id)
	}
	return names, nil
}

// templateHash reads a hash that has a template.
func (d *decoder) templateHash(typ byte, lim *Limits) (any, error) {
	var names [][]byte
	var err error
	switch typ {
	case typeHashNamedPack, typeHashNamed:
		names, err = d.names()
	case typeHashTemplate:
		var id uint64
		if id, err = d.length(); err == nil {
			names, err = d.known(id)
		}
	}
	if err != nil {
		return nil, err
	}
	next := d.string
	var p *packed
	if typ == typeHashNamedPack || typ == typeHashTemplatePack { // before the values is the number of the template
		b, err := d.string()
		if err != nil {
			return nil, err
		}
		if p, err = listpack(b); err != nil {
			return nil, err
		}
		id, err := p.number()
		if err == nil && typ == typeHashTemplatePack {
			names, err = d.known(uint64(id))
		}
		if err != nil {
			return nil, err
		}
		next = p.next
	}
	h := &hashes.Hash{}
	for _, name := range names {
		value, err := next()
		if err != nil {
			return nil, err
		}
		if !h.Set(name, value, lim.Hash) {
			return nil, corrupt("a field of a hash that comes twice")
		}
		if p == nil {
			d.recycle()
		}
	}
	if p != nil {
		if more, err := p.more(); more || err != nil {
			return nil, corrupt("more values than fields")
		}
	}
	return h, nil
}
