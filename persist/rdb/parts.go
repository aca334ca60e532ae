package rdb

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/delta"
)

// A value in parts is a value of a module of our own: the names and data of its parts, in the order of the names. Redis
// refuses it and names the module.

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

// partsKind returns the kind of a type whose values are written in parts. module is its name.
func partsKind[T any, L partsLoader[T]](module string, of func(*engine.Entry) parts, loader func() L) kind {
	return kind{
		module:        module,
		moduleVersion: 1,
		read:          func(d *decoder, _ byte, _ *Limits) (any, error) { return readParts[T](d, loader()) },
		form:          plainForm(typeModule),
		own:           func(*engine.Entry) bool { return true },
		write: func(e *Encoder, entry *engine.Entry) {
			w, value := e.moduleHead(module, 1), of(entry)
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

// maxSparse is the size in bytes up to which sparse sketches are written as a module of Redis does, with all their zeros.
const maxSparse = 512 << 20

// redisKind returns the kind of a type that has a form of its own and is written in the form of a Redis module. Values for
// which former is true have no such form, and are written in their own; all have one if it is nil.
func redisKind(own kind, form moduleForm, former func(*engine.Entry) bool, write func(*Encoder, *engine.Entry)) kind {
	k := own
	k.redis = []moduleForm{form}
	k.own = former
	k.write = func(e *Encoder, entry *engine.Entry) {
		if former != nil && former(entry) {
			own.write(e, entry)
			return
		}
		write(e, entry)
	}
	return k
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
