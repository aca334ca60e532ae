package rdb

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/paged"
)

// A sketch is a value of a module of our own: names and data of its parts, in their order. Redis refuses it, by the
// name of the module. Theirs depend on hash functions and layouts that nobody has documented.

// parts is a sketch as it is written.
type parts interface {
	delta.Parts
	Walk(c delta.Cursor, count int, fn func(name string)) (next delta.Cursor, more bool)
}

// sketchKind returns how the values of a type are written and read that has this name among modules.
func sketchKind[T paged.Sketch](module string, of func(*engine.Entry) parts, loader func() *paged.Loader[T]) kind {
	return kind{
		module:        module,
		moduleVersion: 1,
		read:          func(d *decoder, _ byte, _ *Limits) (any, error) { return readSketch(d, loader()) },
		form:          plainForm(typeModule),
		write: func(e *Encoder, entry *engine.Entry) {
			e.length(moduleID(module, 1))
			sketch := of(entry)
			var data []byte
			for c, more := (delta.Cursor{}), true; more; {
				c, more = sketch.Walk(c, 64, func(name string) {
					data, _ = sketch.AppendPart(data[:0], name)
					e.moduleString([]byte(name))
					e.moduleString(data)
				})
				e.written()
			}
			e.length(moduleEnd)
		},
	}
}

func readSketch[T paged.Sketch](d *decoder, l *paged.Loader[T]) (any, error) {
	for {
		d.recycle()
		name, end, err := d.moduleString()
		switch {
		case err != nil:
			return nil, err
		case end:
			sketch, err := l.Finish(nil)
			if err != nil {
				return nil, corrupt("a sketch: %v", err)
			}
			return sketch, nil
		}
		data, end, err := d.moduleString()
		if err != nil {
			return nil, err
		}
		if end {
			return nil, corrupt("a sketch that ends within a part")
		}
		if err := l.Add(name, data); err != nil {
			return nil, corrupt("a sketch: %v", err)
		}
	}
}
