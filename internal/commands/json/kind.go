package json

import (
	"slices"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/documents"
	"github.com/atomredis/atomredis/engine/documents/path"
	"github.com/atomredis/atomredis/internal/command"
)

var (
	setWord  = []byte("JSON.SET")
	fphaWord = []byte("FPHA")
	rootPath = []byte("$")
)

// Registers documents for commands on keys of any type. In Redis a module has them.
func init() {
	command.RegisterKind(engine.JSON, command.Kind{
		Number:   5,
		Encoding: func(*engine.Entry) string { return "raw" },
		Rebuild: func(r *command.Rebuilder, key []byte, e *engine.Entry) {
			root := e.JSON().Root()
			r.Command(setWord, key, rootPath, root.AppendJSON(nil, documents.Layout{}))
			eachTyped(root, nil, func(at *documents.Place, array documents.Value, t *floatType) {
				r.Command(setWord, key, path.AppendPlace(nil, at), array.AppendJSON(nil, documents.Layout{}), fphaWord, []byte(t.word))
			})
		},
		Digest: func(d *command.Digest, e *engine.Entry) {
			d.Mix(e.JSON().Root().AppendJSON(nil, documents.Layout{}))
		},
	})
}

// eachTyped calls fn with the arrays in a value whose numbers have a smaller type, which JSON does not show.
func eachTyped(v documents.Value, at *documents.Place, fn func(*documents.Place, documents.Value, *floatType)) {
	object := v.Kind() == documents.Object
	v.Elements(func(i int, name string, element documents.Value) bool {
		if t := element.FloatType(); t != documents.Float64 {
			fn(at, v, typeNamed(t))
			return false
		}
		switch element.Kind() {
		case documents.Array, documents.Object:
			inner := at.Element(i)
			if object {
				inner = at.Member(name)
			}
			eachTyped(element, inner, fn)
		}
		return true
	})
}

// typeNamed returns the type with its name in FPHA.
func typeNamed(t documents.FloatType) *floatType {
	i := slices.IndexFunc(floatTypes, func(f floatType) bool { return f.typ == t })
	return &floatTypes[i]
}
