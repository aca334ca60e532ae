package samples

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/atomredis/atomredis/engine/documents"
)

var document = Type{
	Name: "ReJSON-RL",
	Values: func() map[string]any {
		values := map[string]any{}
		add := func(name, text string) {
			v, err := documents.Parse([]byte(text))
			if err != nil {
				panic(err)
			}
			values[name] = documents.New(v)
		}
		add("null", "null")
		add("number", "18446744073709551615")
		add("text", `"`+long+`"`)
		add("small", `{"a":[1,-2.5,"x",null,true,1e300],"b":{"c":[]},"\u0000":""}`)
		add("long text", `["`+strings.Repeat("x", 100_000)+`"]`)
		var array, object []byte
		for i := range many {
			array = fmt.Appendf(array, `,[%d,{"n":"%s"}]`, i, number(i))
			object = fmt.Appendf(object, `,"%s":{"i":%d,"list":[%[2]d,"%s"]}`, number(i), i, long)
		}
		add("array", "["+string(array[1:])+"]")
		add("object", "{"+string(object[1:])+"}")
		return values
	},
	New: func() any { return documents.New(documents.NewObject(nil, nil)) },
	Change: func(v any, rnd *rand.Rand, _ int64) any {
		d := v.(*documents.Document)
		at, found := (*documents.Place)(nil), d.Root()
		for found.Len() > 0 && rnd.IntN(4) > 0 {
			i := rnd.IntN(found.Len())
			if found.Kind() == documents.Array {
				at = at.Element(i)
			} else {
				found.ElementsFrom(i, func(_ int, name string, _ documents.Value) bool {
					at = at.Member(name)
					return false
				})
			}
			found, _ = d.Find(at)
		}
		text := documents.Text(string(word(rnd, 1000)))
		switch kind := found.Kind(); {
		case kind == documents.Array && rnd.IntN(2) == 0:
			d.Insert(at, rnd.IntN(found.Len()+1), text, documents.NewArray(text, documents.Int(1)))
		case kind == documents.Object && rnd.IntN(2) == 0:
			d.SetMember(at, string(word(rnd, 40)), documents.NewArray(text, documents.Double(0.5)))
		case at != nil && rnd.IntN(3) == 0:
			d.Remove(at)
		case at != nil || found.Len() == 0:
			d.Replace(at, documents.NewObject([]string{"t"}, []documents.Value{text}))
		}
		return d
	},
	Empty: func(any) bool { return false },
	describe: func(v any) []string {
		return []string{string(v.(*documents.Document).Root().AppendJSON(nil, documents.Layout{}))}
	},
}
