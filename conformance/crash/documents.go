package crash

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// documents changes JSON documents, one of them large, at paths. A value of this kind has a Go value in doc.
type documents struct {
	noObserver
	label string
	n     int
}

const (
	documentKind = "ReJSON-RL"
	// largeDocument is the number of the document that has many people, manyPeople their number.
	largeDocument = 2
	manyPeople    = 1500
)

func (g *documents) restart(model) {}

func (g *documents) key(i int) string { return fmt.Sprintf("%s:doc%d", g.label, i) }

// person is a member of the object people.
func (g *documents) person() string {
	g.n++
	return fmt.Sprintf(`{"name":"n%d","age":%d,"tags":["t%d"]}`, g.n, g.n%90, g.n)
}

// whole is a document. Every document has the members counts, list and people.
func (g *documents) whole(i, people int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"counts":{"c0":0,"c1":1},"list":[%d],"people":{`, i)
	for n := range people {
		if n > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"p%d":%s`, n, g.person())
	}
	return b.String() + "}}"
}

func (g *documents) next(r *rand.Rand) *op {
	g.n++
	i := r.IntN(3)
	key, people := g.key(i), 20
	if i == largeDocument {
		people = manyPeople
	}
	person := "p" + strconv.Itoa(r.IntN(people))
	number := strconv.Itoa(g.n)
	count := "c" + strconv.Itoa(r.IntN(5))
	if g.n < 10 || r.IntN(1000) == 0 {
		return plain("JSON.SET", key, "$", g.whole(g.n, r.IntN(people)))
	}
	o := g.change(r, key, person, count, number)
	o.mayFail = true // the document may not exist; the result is checked
	return o
}

func (g *documents) change(r *rand.Rand, key, person, count, number string) *op {
	switch r.IntN(20) {
	case 0, 1:
		return plain("JSON.SET", key, "$.people."+person, g.person())
	case 2, 3:
		return plain("JSON.SET", key, "$.people."+person+".name", `"named `+number+`"`)
	case 4:
		return plain("JSON.SET", key, "$.counts."+count, number)
	case 5, 6, 7:
		return plain("JSON.NUMINCRBY", key, "$.counts."+count, strconv.Itoa(r.IntN(100)-50))
	case 8:
		return plain("JSON.NUMINCRBY", key, "$.counts.*", "1")
	case 9, 10, 11:
		return plain("JSON.ARRAPPEND", key, "$.list", number, `{"x":[`+number+`]}`)
	case 12:
		return plain("JSON.ARRAPPEND", key, "$.people."+person+".tags", `"`+number+`"`)
	case 13:
		return plain("JSON.ARRINSERT", key, "$.list", "0", number)
	case 14:
		return plain("JSON.ARRPOP", key, "$.list", []string{"0", "-1"}[r.IntN(2)])
	case 15:
		return plain("JSON.ARRTRIM", key, "$.list", "0", "199")
	case 16:
		return plain("JSON.DEL", key, "$.people."+person)
	case 17:
		return plain("JSON.MERGE", key, "$", fmt.Sprintf(`{"people":{%q:null},"counts":{%q:%s}}`, person, count, number))
	case 18:
		return plain("JSON.STRAPPEND", key, "$.people."+person+".name", `"`+strings.Repeat("s", r.IntN(50))+`"`)
	default:
		if r.IntN(4) == 0 {
			return plain("COPY", key, g.label+":copy", "REPLACE")
		}
		return transaction(command{args: []string{"JSON.NUMINCRBY", key, "$.counts." + count, "1"}},
			command{args: []string{"JSON.ARRAPPEND", key, "$.list", number}})
	}
}

func parse(text string) any {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		panic("no JSON: " + text)
	}
	return v
}

// cloneJSON copies a Go value that represents JSON.
func cloneJSON(v any) any {
	switch v := v.(type) {
	case map[string]any:
		w := make(map[string]any, len(v))
		for name, e := range v {
			w[name] = cloneJSON(e)
		}
		return w
	case []any:
		w := make([]any, len(v))
		for i, e := range v {
			w[i] = cloneJSON(e)
		}
		return w
	}
	return v
}

// flat lists the scalars of a document by path, to show differences.
func flat(v any) map[string]string {
	all := map[string]string{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, e := range v {
				walk(path+"."+name, e)
			}
		case []any:
			for i, e := range v {
				walk(fmt.Sprintf("%s[%d]", path, i), e)
			}
		default:
			all[path] = fmt.Sprint(v)
		}
	}
	walk("$", v)
	return all
}

// object finds the object that contains the target of a path of names, and its name there; nil if there is none.
func (c *call) object(m model, key int) (map[string]any, string) {
	v := m[c.place(key)]
	if v == nil {
		return nil, ""
	}
	names := strings.Split(strings.TrimPrefix(c.args[key+1], "$."), ".")
	at, _ := v.doc.(map[string]any)
	for _, name := range names[:len(names)-1] {
		at, _ = at[name].(map[string]any)
	}
	return at, names[len(names)-1]
}

// jsonset models JSON.SET key path value, with $ or a path of names.
func jsonset(m model, c *call) {
	if c.args[2] == "$" {
		m[c.place(1)] = &value{kind: documentKind, doc: parse(c.args[3])}
		return
	}
	if o, name := c.object(m, 1); o != nil {
		o[name] = parse(c.args[3])
	}
}

func jsonnumincrby(m model, c *call) {
	o, name := c.object(m, 1)
	for e, v := range o {
		if e == name || name == "*" {
			o[e] = v.(float64) + float64(c.int(3))
		}
	}
}

func jsonarrappend(m model, c *call) {
	c.changeArray(m, func(a []any) []any {
		for _, text := range c.args[3:] {
			a = append(a, parse(text))
		}
		return a
	})
}

// jsonarrinsert models JSON.ARRINSERT key path 0 value.
func jsonarrinsert(m model, c *call) {
	c.changeArray(m, func(a []any) []any { return slices.Insert(a, 0, parse(c.args[4])) })
}

// jsonarrpop models JSON.ARRPOP key path 0|-1.
func jsonarrpop(m model, c *call) {
	c.changeArray(m, func(a []any) []any {
		switch {
		case len(a) == 0:
			return a
		case c.args[3] == "0":
			return slices.Delete(a, 0, 1)
		}
		return a[:len(a)-1]
	})
}

// jsonarrtrim models JSON.ARRTRIM key path 0 last.
func jsonarrtrim(m model, c *call) {
	c.changeArray(m, func(a []any) []any { return a[:min(len(a), c.int(4)+1)] })
}

func (c *call) changeArray(m model, change func([]any) []any) {
	o, name := c.object(m, 1)
	if a, ok := o[name].([]any); ok {
		o[name] = change(a)
	}
}

func jsondel(m model, c *call) {
	o, name := c.object(m, 1)
	delete(o, name)
}

func jsonstrappend(m model, c *call) {
	o, name := c.object(m, 1)
	if s, ok := o[name].(string); ok {
		o[name] = s + parse(c.args[3]).(string)
	}
}

// jsonmerge models JSON.MERGE key $ value. If there is no such key, the value is stored unchanged, with its nulls.
func jsonmerge(m model, c *call) {
	p := c.place(1)
	if v := m[p]; v != nil {
		v.doc = merged(v.doc, parse(c.args[3]))
		return
	}
	m[p] = &value{kind: documentKind, doc: parse(c.args[3])}
}

// merged is the result of JSON Merge Patch (RFC 7396).
func merged(v, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	o, ok := v.(map[string]any)
	if !ok {
		o = map[string]any{}
	}
	for name, change := range changes {
		if change == nil {
			delete(o, name)
		} else {
			o[name] = merged(o[name], change)
		}
	}
	return o
}

func init() {
	maps.Copy(effects, map[string]func(model, *call){
		"JSON.SET": jsonset, "JSON.NUMINCRBY": jsonnumincrby, "JSON.ARRAPPEND": jsonarrappend, "JSON.ARRINSERT": jsonarrinsert,
		"JSON.ARRPOP": jsonarrpop, "JSON.ARRTRIM": jsonarrtrim, "JSON.DEL": jsondel, "JSON.STRAPPEND": jsonstrappend,
		"JSON.MERGE": jsonmerge,
	})
}
