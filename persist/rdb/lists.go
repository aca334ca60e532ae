package rdb

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/lists"
)

var listKind = kind{
	numbers: []byte{typeList, typeListZiplist, typeListZiplists, typeListListpacks},
	read:    (*decoder).list,
	form:    plainForm(typeList),
	write:   func(e *Encoder, entry *engine.Entry) { e.list(entry.List()) },
	saved:   func(e *Encoder, entry *engine.Entry, lim lists.Limit) { e.savedList(entry.List(), lim) },
}

const (
	containerPlain  = 1 // a node of a list with a single element
	containerPacked = 2 // a node that is a listpack
)

func (d *decoder) list(typ byte, lim *Limits) (any, error) {
	l := lists.New(lim.List)
	add := func(p *packed) error {
		v, err := p.next()
		if err == nil {
			l.PushBack(v)
		}
		return err
	}
	var err error
	switch typ {
	case typeList:
		err = d.elements(func() error {
			v, err := d.string()
			if err == nil {
				l.PushBack(v)
			}
			d.recycle()
			return err
		})
	case typeListZiplist:
		err = d.packed(ziplist, add)
	case typeListZiplists:
		err = d.elements(func() error {
			defer d.recycle()
			return d.packed(ziplist, add)
		})
	case typeListListpacks:
		err = d.elements(func() error {
			defer d.recycle()
			container, err := d.length()
			switch {
			case err != nil:
				return err
			case container == containerPacked:
				return d.packed(listpack, add)
			case container != containerPlain:
				return corrupt("a list's node of the unknown kind %d", container)
			}
			v, err := d.string()
			if err == nil {
				l.PushBack(v)
			}
			return err
		})
	}
	if err == nil && l.Len() == 0 {
		err = errEmpty
	}
	return l, err
}

func (e *Encoder) list(l *lists.List) {
	e.length(uint64(l.Len()))
	l.Range(0, l.Len()-1, func(v []byte) bool {
		e.string(v)
		e.written()
		return true
	})
}

// nodeOverhead is Redis's estimate of an element's overhead when it checks whether a node has room.
const nodeOverhead = 8

// savedList writes a list in the nodes that Redis creates when the elements are pushed one after the other.
func (e *Encoder) savedList(l *lists.List, limit lists.Limit) {
	maxBytes, maxEntries := limit.Bounds()
	var nodes [][]byte // each after its kind
	var b []byte
	n := 0
	end := func() {
		if n > 0 {
			nodes = append(nodes, []byte{containerPacked}, sealListpack(b, n))
			b, n = b[:0], 0
		}
	}
	l.Range(0, l.Len()-1, func(v []byte) bool {
		if len(v) > maxBytes {
			end()
			nodes = append(nodes, []byte{containerPlain}, append([]byte(nil), v...))
			return true
		}
		if n > 0 && (packedBytes+len(b)+len(v)+nodeOverhead > maxBytes || n >= maxEntries) {
			end()
		}
		b = appendListpackString(b, v)
		n++
		return true
	})
	end()
	e.length(uint64(len(nodes) / 2))
	for i := 0; i < len(nodes); i += 2 {
		e.length(uint64(nodes[i][0]))
		e.string(nodes[i+1])
	}
}
