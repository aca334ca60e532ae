package rdb

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/roaring"
)

// bitmapKind is the kind of compressed bitmaps: the length in bytes, and a string with the set bits in the portable format
// of roaring bitmaps.
var bitmapKind = kind{
	numbers: []byte{typeBitmap},
	read: func(d *decoder, _ byte, _ *Limits) (any, error) {
		n, err := d.length()
		if err != nil {
			return nil, err
		}
		data, err := d.string()
		if err != nil {
			return nil, err
		}
		defer d.recycle()
		r, err := roaring.FromPortable(data, n)
		if err != nil {
			return nil, corrupt("a bitmap: %v", err)
		}
		return r, nil
	},
	form: func(*engine.Entry) form { return form{typeBitmap, VersionBitmaps} },
	write: func(e *Encoder, entry *engine.Entry) {
		r := entry.Bitmap()
		e.length(r.Len())
		e.string(r.AppendPortable(nil))
	},
}
