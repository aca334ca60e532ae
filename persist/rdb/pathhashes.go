package rdb

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/pathhash"
)

// pathHashKind is the kind of path hashes. Redis has none, so they are written in a form of our own. That of Valkey is
// read: the number of paths, and for each the path, the number of its fields, and fields and values.
var pathHashKind = partsKind("atomPATHS", func(e *engine.Entry) parts { return e.PathHash() }, pathhash.NewLoader)

// pathHash reads a path hash of Valkey.
func (d *decoder) pathHash() (any, error) {
	t := pathhash.New()
	paths, fields := 0, 0
	err := d.elements(func() error {
		d.recycle()
		text, err := d.string()
		if err != nil {
			return err
		}
		path := append([]byte(nil), text...)
		fields = 0
		err = d.elements(func() error {
			defer d.recycle()
			text, err := d.string()
			if err != nil {
				return err
			}
			field := append([]byte(nil), text...)
			value, err := d.string()
			if err != nil {
				return err
			}
			t.Set(path, field, value)
			if fields++; t.Get(path).Len() != fields {
				return corrupt("a field of a path that comes twice")
			}
			return nil
		})
		if paths++; err == nil && t.Len() != paths {
			err = corrupt("a path without fields, or one that comes twice")
		}
		return err
	})
	return t, err
}
