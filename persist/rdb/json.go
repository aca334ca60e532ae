package rdb

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/documents"
)

// jsonKind is the kind of JSON documents. They belong to a module of Redis, which writes their JSON text.
var jsonKind = kind{
	module:        jsonModule,
	moduleVersion: jsonVersion,
	read:          func(d *decoder, _ byte, _ *Limits) (any, error) { return d.json() },
	form:          plainForm(typeModule),
	write: func(e *Encoder, entry *engine.Entry) {
		e.length(moduleID(jsonModule, jsonVersion))
		e.moduleString(entry.JSON().Root().AppendJSON(nil, documents.Layout{}))
		e.length(moduleEnd)
	},
}

const (
	jsonModule  = "ReJSON-RL"
	jsonVersion = 3
)

// json reads a document.
func (d *decoder) json() (any, error) {
	text, end, err := d.moduleString()
	if err != nil {
		return nil, err
	}
	if end {
		return nil, corrupt("a document without a text")
	}
	v, err := documents.Parse(text)
	if err != nil {
		return nil, corrupt("a document: %v", err)
	}
	if _, end, err = d.moduleString(); err == nil && !end {
		err = corrupt("a document with a second text")
	}
	return documents.New(v), err
}
