package search

import (
	"errors"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/search/catalog"
	"github.com/atomredis/atomredis/internal/search/expr"
	"github.com/atomredis/atomredis/internal/search/index"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/schema"
	"github.com/atomredis/atomredis/internal/search/text"
	"github.com/atomredis/atomredis/internal/search/value"
)

// This file has the commands of RediSearch 1: FT.ADD, FT.DEL, FT.GET and FT.MGET. Their documents are hashes now.

// added has the arguments of FT.ADD.
type added struct {
	score                      []byte
	language, payload          []byte
	replace, partial, noCreate bool
	condition                  string   // of IF; "" without IF
	fields                     [][]byte // names and values
}

var hsetWord = []byte("HSET")

// add is FT.ADD.
func add(c *command.Ctx) {
	if len(c.Args) < 4 {
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	x := find(c, c.Args[1])
	if x == nil {
		return
	}
	a, e := readAdded(c)
	if e != "" {
		c.Err(e)
		return
	}
	key := c.Args[2]
	entry, ok := c.WriteAs(key, engine.Hash)
	switch {
	case !ok:
		return
	case entry != nil && !a.replace:
		c.Err(coded(query.DocumentExists, "Document already exists"))
		return
	case entry == nil && a.noCreate:
		c.Err(coded(query.NoDocument, "Document does not exist"))
		return
	}
	if entry != nil && a.condition != "" {
		holds, err := a.holds(entry, x.Definition())
		if err != nil {
			c.Err(command.Error(err.Error()))
			return
		}
		if !holds {
			c.W.Simple("NOADD")
			return
		}
	}
	def := x.Definition()
	fields := a.fields
	if def.ScoreField != "" && (a.partial || !isOne(a.score)) {
		fields = append(fields, []byte(def.ScoreField), a.score)
	}
	if def.LanguageField != "" && a.language != nil {
		fields = append(fields, []byte(def.LanguageField), a.language)
	}
	if def.PayloadField != "" && a.payload != nil {
		fields = append(fields, []byte(def.PayloadField), a.payload)
	}
	if len(fields) > 0 {
		blessed := false
		if entry != nil && !a.partial {
			blessed = entry.Blessed()
			c.G.Remove(entry, engine.EventGeneric, "del")
			c.JournalDelete(key)
			entry = nil
		}
		if entry == nil {
			entry = c.G.Create(c.DB, key, new(hashes.Hash))
		}
		h, limits := entry.Hash(), c.Host.HashLimits()
		for i := 0; i < len(fields); i += 2 {
			h.Set(fields[i], fields[i+1], limits)
		}
		c.G.ChangedFields(entry, "hset", fields, 2)
		c.Journal(append([][]byte{hsetWord, key}, fields...)...)
		c.Rebless(entry, blessed)
	}
	c.W.OK()
}

// isOne reports whether a score is 1, the default.
func isOne(score []byte) bool {
	f, err := strconv.ParseFloat(string(score), 64)
	return err == nil && f == 1
}

// readAdded reads the arguments of FT.ADD after the key.
func readAdded(c *command.Ctx) (a *added, e command.Error) {
	a = &added{score: c.Args[3]}
	score, err := strconv.ParseFloat(string(a.score), 64)
	if err != nil {
		return nil, coded(query.AddArguments, "Could not parse document score")
	}
	if !(score >= 0 && score <= 1) {
		return nil, coded(query.AddArguments, "Score must be between 0 and 1")
	}
	rest := c.Args[4:]
	value := func(option string, to *[]byte) command.Error {
		if len(rest) == 0 {
			return coded(query.AddArguments, "Parsing error for document option "+option+": Expected an argument, but none provided")
		}
		*to, rest = rest[0], rest[1:]
		return ""
	}
	for len(rest) > 0 {
		word := rest[0]
		rest = rest[1:]
		switch {
		case command.EqualFold(word, "fields"):
			if len(rest)%2 != 0 {
				return nil, coded(query.AddArguments, "Fields must be specified in FIELD VALUE pairs")
			}
			a.fields = append([][]byte(nil), rest...)
			return a, ""
		case command.EqualFold(word, "replace"):
			a.replace = true
		case command.EqualFold(word, "partial"):
			a.partial = true
		case command.EqualFold(word, "nocreate"):
			a.noCreate = true
		case command.EqualFold(word, "language"):
			if e := value("LANGUAGE", &a.language); e != "" {
				return nil, e
			}
			if _, ok := text.ParseLanguage(string(a.language)); !ok {
				return nil, coded(query.AddArguments, "Unsupported language")
			}
		case command.EqualFold(word, "payload"):
			if e := value("PAYLOAD", &a.payload); e != "" {
				return nil, e
			}
		case command.EqualFold(word, "if"):
			var condition []byte
			if e := value("IF", &condition); e != "" {
				return nil, e
			}
			a.condition = string(condition)
		default:
			return nil, coded(query.AddArguments, "Unknown keyword `"+string(word)+"` provided")
		}
	}
	return nil, coded(query.AddArguments, "No field list found")
}

// holds reports whether the condition of IF is true for the present document. A condition that needs a missing field
// is not.
func (a *added) holds(e *engine.Entry, def *schema.Definition) (bool, error) {
	condition, err := expr.Parse(a.condition)
	if err != nil {
		return false, err
	}
	row := &filterRow{key: e.Key(), doc: &index.HashDocument{Hash: e.Hash()}}
	err = condition.Bind(func(name string) (int, bool) {
		f, ok := def.Lookup(name)
		if ok {
			row.paths = append(row.paths, f.Path)
		}
		return len(row.paths) - 1, ok
	})
	if err != nil {
		return false, err
	}
	v, err := condition.Eval(row)
	var failed *query.Error
	if errors.As(err, &failed) && failed.Code == query.NoValue {
		return false, nil
	}
	return err == nil && v.Truth(), err
}

// del is FT.DEL.
func del(c *command.Ctx) {
	if len(c.Args) > 4 {
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	if find(c, c.Args[1]) == nil {
		return
	}
	e := c.G.Write(c.DB, c.Args[2])
	if e == nil {
		c.W.Int(0)
		return
	}
	c.G.Remove(e, engine.EventGeneric, "del")
	c.JournalDelete(c.Args[2])
	c.W.Int(1)
}

// get is FT.GET and, for several keys, FT.MGET.
func get(several bool) func(c *command.Ctx) {
	return func(c *command.Ctx) {
		if len(c.Args) < 3 || !several && len(c.Args) > 3 {
			c.Err(command.WrongArity(c.Cmd))
			return
		}
		x := find(c, c.Args[1])
		if x == nil {
			return
		}
		if spread(c, func(f *fan) { f.documents(several) }) {
			return
		}
		found := documentsOf(c, x)
		if several {
			c.W.Array(len(found))
		}
		for _, fields := range found {
			writeDocument(c, fields)
		}
	}
}

// documentsOf returns the fields of the documents that the command names; nil for those that the index does not
// have.
func documentsOf(c *command.Ctx, x *catalog.Index) (list [][]field) {
	r := &run{c: c, x: x, def: x.Definition()}
	r.loader = loader{def: r.def, dialect: 1}
	hides := hidden(c.Host)
	for _, key := range words(c.Args[2:]) {
		var fields []field
		if x.Current(key) != 0 && (hides == nil || !hides(key)) {
			r.locked(key, func(g *engine.Guard) {
				r.loader.g = g
				if e := r.loader.document(key); e != nil {
					fields = []field{}
					r.loader.all(e, func(name string, v value.Value) { fields = append(fields, field{name, v}) })
				}
			})
		}
		list = append(list, fields)
	}
	return list
}

// writeDocument writes the fields of a document; null if there is none.
func writeDocument(c *command.Ctx, fields []field) {
	if fields == nil {
		c.W.Null()
		return
	}
	c.W.Array(2 * len(fields)) // in RESP3 too
	for _, f := range fields {
		c.W.BulkString(f.name)
		writeValue(c.W, f.value, false)
	}
}
