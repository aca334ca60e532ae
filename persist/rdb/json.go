package rdb

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/documents"
)

// jsonKind is the kind of JSON documents. They belong to a module of Redis, which writes their JSON text. In version 2
// a number follows; unless it is 0, two names of an index follow too. Version 0, of RedisJSON 1, is a tree of nodes,
// each preceded by its type. There is no version 1.
var jsonKind = kind{
	redis: []moduleForm{{name: jsonModule, newest: jsonVersion, read: readJSON}},
	form:  plainForm(typeModule),
	write: func(e *Encoder, entry *engine.Entry) {
		w := e.moduleHead(jsonModule, jsonVersion)
		e.moduleString(entry.JSON().Root().AppendJSON(nil, documents.Layout{}))
		w.End()
	},
}

const (
	jsonModule  = "ReJSON-RL"
	jsonTree    = 0
	jsonIndexed = 2
	jsonVersion = 3
)

// readJSON reads a document.
func readJSON(m *Module, _ *Limits) any {
	var text []byte
	switch m.Version {
	case jsonTree:
		text = m.jsonNode(nil, 0)
	case jsonIndexed, jsonVersion:
		text = []byte(m.Text())
		if m.Version == jsonIndexed && m.More() && m.Uint() > 0 {
			m.Text()
			m.Text()
		}
	default:
		m.Fail(&UnknownType{m.Name, m.Version, true})
	}
	if m.err != nil {
		return nil
	}
	v, err := documents.Parse(text)
	if err != nil {
		m.Corrupt("a document: %v", err)
		return nil
	}
	return documents.New(v)
}

// The types of nodes of version 0.
const (
	jsonNull    = 1 << iota // 1
	jsonString              // 2
	jsonNumber              // 4
	jsonInteger             // 8
	jsonBool                // 16
	jsonObject              // 32
	jsonArray               // 64
	jsonMember              // 128, only in an object
)

// maxJSONDepth is the maximum depth of nodes of version 0.
const maxJSONDepth = 1024

// jsonNode appends the JSON text of a node of version 0 to dst.
func (m *Module) jsonNode(dst []byte, depth int) []byte {
	if depth > maxJSONDepth {
		m.Corrupt("a document that is nested too deep")
		return dst
	}
	switch typ := m.Uint(); {
	case m.err != nil:
	case typ == jsonNull:
		return append(dst, "null"...)
	case typ == jsonString:
		return appendJSONString(dst, m.Text())
	case typ == jsonNumber:
		return m.jsonFloat(dst)
	case typ == jsonInteger:
		return strconv.AppendInt(dst, int64(m.Uint()), 10)
	case typ == jsonBool:
		return strconv.AppendBool(dst, strings.HasPrefix(m.Text(), "1"))
	case typ == jsonObject:
		dst = append(dst, '{')
		for i, n := uint64(0), m.Uint(); i < n && m.err == nil; i++ {
			if i > 0 {
				dst = append(dst, ',')
			}
			if m.Uint() != jsonMember {
				m.Corrupt("a document with an object of something else than members")
			}
			dst = append(appendJSONString(dst, m.Text()), ':')
			dst = m.jsonNode(dst, depth+1)
		}
		return append(dst, '}')
	case typ == jsonArray:
		dst = append(dst, '[')
		for i, n := uint64(0), m.Uint(); i < n && m.err == nil; i++ {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = m.jsonNode(dst, depth+1)
		}
		return append(dst, ']')
	default:
		m.Corrupt("a document with a node of the unknown type %d", typ)
	}
	return dst
}

// jsonFloat appends a floating-point number; without a fraction it still is not an integer.
func (m *Module) jsonFloat(dst []byte) []byte {
	f := m.Double()
	if math.IsNaN(f) || math.IsInf(f, 0) {
		m.Corrupt("a document with a number that JSON has not")
		return dst
	}
	text := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return append(dst, text...)
}

// appendJSONString appends a string without checking its UTF-8.
func appendJSONString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ':
			dst = fmt.Appendf(dst, `\u%04x`, c)
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
