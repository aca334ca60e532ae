package rdb

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/delta"
)

// A value in parts is a value of a module of our own: names and data of its parts, in the order of the names. Redis
// refuses it, by the name of the module.

const partsVersion = 1

// parts is a value for writing.
type parts interface {
	delta.Parts
	Walk(c delta.Cursor, count int, fn func(name string)) (next delta.Cursor, more bool)
}

// partsLoader builds a value from its parts.
type partsLoader[T any] interface {
	Add(name, data []byte) error
	Finish(log *delta.Log) (T, error)
}

// partsForm is how values in parts are read and written.
type partsForm struct {
	module string
	read   func(d *decoder) (any, error)
	write  func(e *Encoder, entry *engine.Entry)
}

// newPartsForm returns the form of a type that has this name among modules.
func newPartsForm[T any, L partsLoader[T]](module string, of func(*engine.Entry) parts, loader func() L) partsForm {
	return partsForm{
		module: module,
		read:   func(d *decoder) (any, error) { return readParts[T](d, loader()) },
		write: func(e *Encoder, entry *engine.Entry) {
			w, value := e.moduleHead(module, partsVersion), of(entry)
			var data []byte
			for c, more := (delta.Cursor{}), true; more; {
				c, more = value.Walk(c, 64, func(name string) {
					data, _ = value.AppendPart(data[:0], name)
					e.moduleString([]byte(name))
					e.moduleString(data)
				})
				e.written()
			}
			w.End()
		},
	}
}

// partsKind returns the kind of a type whose values have this form only.
func partsKind[T any, L partsLoader[T]](module string, of func(*engine.Entry) parts, loader func() L) kind {
	form := newPartsForm(module, of, loader)
	return kind{former: form, form: plainForm(typeModule), write: form.write}
}

func readParts[T any](d *decoder, l partsLoader[T]) (any, error) {
	for {
		d.recycle()
		name, end, err := d.moduleString()
		switch {
		case err != nil:
			return nil, err
		case end:
			value, err := l.Finish(nil)
			if err != nil {
				return nil, corrupt("a value in parts: %v", err)
			}
			return value, nil
		}
		data, end, err := d.moduleString()
		if err != nil {
			return nil, err
		}
		if end {
			return nil, corrupt("a value that ends within a part")
		}
		if err := l.Add(name, data); err != nil {
			return nil, corrupt("a value in parts: %v", err)
		}
	}
}
