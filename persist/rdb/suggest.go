package rdb

import (
	"bytes"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/search/suggest"
)

// suggestKind is the kind of dictionaries of suggestions. They belong to a module of Redis, which writes the number of
// suggestions and, for each, its text, its score and its payload, both texts with a trailing zero. Version 0 has no
// payloads. Version 2 adds a number of documents, which the module needs for other dictionaries.
var suggestKind = kind{
	redis: []moduleForm{{name: suggestModule, newest: suggestDocuments, read: readSuggestions}},
	form:  plainForm(typeModule),
	write: func(e *Encoder, entry *engine.Entry) {
		w := e.moduleHead(suggestModule, suggestPayloads)
		dict := entry.Suggestions()
		w.Uint(uint64(dict.Len()))
		var text []byte
		dict.Each(func(s suggest.Suggestion) bool {
			text = append(append(text[:0], s.Text...), 0)
			e.moduleString(text)
			w.Double(float64(s.Score))
			text = append(append(text[:0], s.Payload...), 0)
			e.moduleString(text)
			e.written()
			return true
		})
		w.End()
	},
}

const (
	suggestModule = "trietype0"
	// The first versions with payloads and with numbers of documents.
	suggestPayloads  = 1
	suggestDocuments = 2
)

// readSuggestions reads a dictionary.
func readSuggestions(m *Module, _ *Limits) any {
	dict := suggest.New()
	for n := m.Uint(); n > 0 && m.err == nil; n-- {
		text, score := bytes.Clone(m.zeroEnded()), m.Double()
		var payload []byte
		if m.Version >= suggestPayloads {
			payload = m.zeroEnded()
		}
		if m.err != nil {
			break
		}
		if err := dict.Restore(text, float32(score), payload); err != nil {
			m.Corrupt("a suggestion: %v", err)
		}
		if m.Version >= suggestDocuments {
			m.Uint()
		}
	}
	if m.err == nil && dict.Len() == 0 {
		m.Corrupt("a dictionary without suggestions")
	}
	return dict
}

// zeroEnded reads a text with a trailing zero. It is valid until the next datum is read.
func (m *Module) zeroEnded() []byte {
	b := m.bytes()
	if len(b) == 0 {
		m.Corrupt("a suggestion without its last byte")
		return nil
	}
	return b[:len(b)-1]
}
