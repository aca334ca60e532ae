package rdb

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/search/suggest"
)

// suggestKind is the kind of dictionaries of suggestions. They belong to a module of Redis, which writes the number of
// suggestions and, for each, its text, its score and its payload, both texts with a trailing zero. From version 2 on
// the module adds a number of documents, which it needs for other dictionaries.
var suggestKind = kind{
	module:        suggestModule,
	moduleVersion: suggestVersion,
	otherVersions: []uint64{2},
	read:          func(d *decoder, _ byte, _ *Limits) (any, error) { return d.suggestions() },
	form:          plainForm(typeModule),
	write: func(e *Encoder, entry *engine.Entry) {
		e.length(moduleID(suggestModule, suggestVersion))
		dict := entry.Suggestions()
		e.length(moduleUint)
		e.length(uint64(dict.Len()))
		var text []byte
		dict.Each(func(s suggest.Suggestion) bool {
			text = append(append(text[:0], s.Text...), 0)
			e.moduleString(text)
			e.length(moduleDouble)
			e.buf = binary.LittleEndian.AppendUint64(e.buf, math.Float64bits(float64(s.Score)))
			text = append(append(text[:0], s.Payload...), 0)
			e.moduleString(text)
			e.written()
			return true
		})
		e.length(moduleEnd)
	},
}

const (
	suggestModule  = "trietype0"
	suggestVersion = 1
)

// suggestions reads a dictionary.
func (d *decoder) suggestions() (any, error) {
	count, err := d.moduleNumber()
	if err != nil {
		return nil, err
	}
	dict := suggest.New()
	kind, err := d.length()
	for i := uint64(0); i < count && err == nil; i++ {
		var text, payload []byte
		var score float64
		if text, err = d.zeroEnded(kind); err != nil {
			break
		}
		text = bytes.Clone(text)
		if score, err = d.moduleFloat64(); err != nil {
			break
		}
		if kind, err = d.length(); err != nil {
			break
		}
		if payload, err = d.zeroEnded(kind); err != nil {
			break
		}
		if failed := dict.Restore(text, float32(score), payload); failed != nil {
			err = corrupt("a suggestion: %v", failed)
			break
		}
		d.recycle()
		if kind, err = d.length(); err == nil && kind == moduleUint { // of version 2
			if _, err = d.length(); err == nil {
				kind, err = d.length()
			}
		}
	}
	switch {
	case err != nil:
		return nil, err
	case kind != moduleEnd:
		return nil, corrupt("a dictionary with too many suggestions")
	case dict.Len() == 0:
		return nil, corrupt("a dictionary without suggestions")
	}
	return dict, nil
}

// zeroEnded reads a text with a trailing zero, whose kind has been read.
func (d *decoder) zeroEnded(kind uint64) ([]byte, error) {
	if kind != moduleString {
		return nil, corrupt("a module's datum of the kind %d in the place of a suggestion", kind)
	}
	b, err := d.string()
	if err == nil && len(b) == 0 {
		err = corrupt("a suggestion without its last byte")
	}
	if err != nil {
		return nil, err
	}
	return b[:len(b)-1], nil
}

// moduleNumber reads an integer of a module.
func (d *decoder) moduleNumber() (uint64, error) {
	kind, err := d.length()
	if err == nil && kind != moduleUint {
		err = corrupt("a module's datum of the kind %d where a number should be", kind)
	}
	if err != nil {
		return 0, err
	}
	return d.length()
}

// moduleFloat64 reads a double of a module.
func (d *decoder) moduleFloat64() (float64, error) {
	kind, err := d.length()
	if err == nil && kind != moduleDouble {
		err = corrupt("a module's datum of the kind %d where a double should be", kind)
	}
	if err != nil {
		return 0, err
	}
	b, err := d.fixed(8)
	if err != nil {
		return 0, err
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b)), nil
}
