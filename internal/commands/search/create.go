package search

import (
	"bytes"
	"slices"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/search/catalog"
	"github.com/atomredis/atomredis/internal/search/expr"
	"github.com/atomredis/atomredis/internal/search/index"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/schema"
	"github.com/atomredis/atomredis/internal/search/value"
)

const maxIndexes = 200_000

const errNotDB0 command.Error = "Cannot create index on db != 0"

var (
	errExists      = coded(query.IndexExists, "Index already exists")
	errTooMany     = coded(query.LimitExceeded, "Maximum number of indexes (200000) reached")
	errUnknownWord = coded(query.UnknownArgument, "Unknown argument")
)

var (
	createWord = []byte("FT._CREATEIFNX")
	alterWord  = []byte("FT._ALTERIFNX")
	dropWord   = []byte("FT._DROPINDEXIFX")
	delWord    = []byte("DEL")
)

// coded returns an error with a code.
func coded(code query.Code, text string) command.Error { return command.Error(code.With(text)) }

// noSuchIndex is the error for an index that does not exist.
func noSuchIndex(name []byte) command.Error {
	return coded(query.NoIndex, "Index not found: "+string(name))
}

// find returns the index that an argument names. If there is no such index, or the user may not use it, find writes the error and
// returns nil.
func find(c *command.Ctx, name []byte) *catalog.Index {
	x := catalogOf(c).Lookup(string(name))
	switch {
	case x == nil:
		c.Err(noSuchIndex(name))
		return nil
	case !mayUse(c, x):
		c.Err(errNotPermitted)
		return nil
	}
	settle(c)
	return x
}

// fail replies with an error of one of the packages of search.
func fail(c *command.Ctx, err error) {
	if c.Cmd.Flags&queries == queries {
		serviceOf(c.Host).counters.failed(err)
	}
	c.Err(command.Error(err.Error()))
}

// create is FT.CREATE; quiet is FT._CREATEIFNX, which accepts an existing index.
func create(c *command.Ctx, quiet bool) {
	if c.DB != 0 {
		c.Err(errNotDB0)
		return
	}
	cat := catalogOf(c)
	if cat.Named(string(c.Args[1])) != nil {
		if quiet {
			c.W.OK()
		} else {
			c.Err(errExists)
		}
		return
	}
	def, err := schema.Parse(string(c.Args[1]), c.Args[2:], checks)
	if err != nil {
		fail(c, err)
		return
	}
	if len(cat.List()) >= maxIndexes {
		c.Err(errTooMany)
		return
	}
	args := copyArgs(c.Args)
	args[0] = createWord
	x, err := c.Host.Service(serviceID).(*service).define(def, args)
	switch {
	case err != nil:
		fail(c, err)
		return
	case c.Origin == command.FromJournal:
		cat.FillWhenLoaded(x)
	case !def.SkipScan:
		cat.Fill(c.G, x)
	}
	c.Journal(args...)
	note(c, catalog.IndexItem, def.Name, false, false)
	c.W.OK()
}

// alter is FT.ALTER; quiet is FT._ALTERIFNX, which accepts an existing field.
func alter(c *command.Ctx, quiet bool) {
	x := find(c, c.Args[1])
	if x == nil {
		return
	}
	rest, skip := c.Args[2:], false
	if command.EqualFold(rest[0], "skipinitialscan") {
		rest, skip = rest[1:], true
	}
	if !command.EqualFold(rest[0], "schema") {
		c.Err("ALTER must be followed by SCHEMA")
		return
	}
	if len(rest) < 2 || !command.EqualFold(rest[1], "add") {
		c.Err("Unknown action passed to ALTER SCHEMA")
		return
	}
	fields := rest[2:]
	if len(fields) == 0 {
		c.Err("No fields provided")
		return
	}
	old := x.Definition()
	if _, has := old.Lookup(string(fields[0])); has && quiet {
		c.W.OK()
		return
	}
	def, err := old.ParseFields(fields, checks)
	if err != nil {
		fail(c, err)
		return
	}
	cat := catalogOf(c)
	cat.Alter(x, def, copyArgs(fields))
	if !skip {
		cat.Fill(c.G, x)
	}
	args := slices.Clone(c.Args)
	args[0] = alterWord
	c.Journal(args...)
	note(c, catalog.IndexItem, x.Name, false, false)
	c.W.OK()
}

// drop drops an index. old is FT.DROP, which deletes the documents by default; FT.DROPINDEX keeps them by default.
// quiet accepts a missing index.
func drop(c *command.Ctx, quiet, old bool) {
	cat := catalogOf(c)
	if len(c.Args) > 3 {
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	x := cat.Lookup(string(c.Args[1]))
	if x == nil {
		if quiet {
			c.W.OK()
		} else {
			c.Err(noSuchIndex(c.Args[1]))
		}
		return
	}
	if !mayUse(c, x) {
		c.Err(errNotPermitted)
		return
	}
	deletes := old
	if len(c.Args) == 3 {
		switch word := c.Args[2]; {
		case old && command.EqualFold(word, "keepdocs"), command.EqualFold(word, "_forcekeepdocs"):
			deletes = false
		case !old && command.EqualFold(word, "dd"):
			deletes = true
		default:
			c.Err(errUnknownWord)
			return
		}
	}
	c.Journal(dropWord, []byte(x.Name), []byte("_FORCEKEEPDOCS"))
	aliases := cat.Aliases(x)
	dropIndex(c.G, cat, x, deletes)
	note(c, catalog.IndexItem, x.Name, true, deletes)
	for _, alias := range aliases {
		note(c, catalog.AliasItem, alias, true, false)
	}
	c.W.OK()
}

// copyArgs returns a copy of arguments, which are valid only until the command ends.
func copyArgs(args [][]byte) [][]byte {
	own := make([][]byte, len(args))
	for i, a := range args {
		own[i] = bytes.Clone(a)
	}
	return own
}

// checks are checks of a schema that other packages make.
var checks = schema.Checks{
	Filter:    checkFilter,
	Path:      func(path string) bool { return new(index.Paths).Get(path) != nil },
	Unordered: index.Unordered,
}

func checkFilter(expression string) error {
	_, err := expr.Parse(expression)
	return err
}

// compileFilter returns a function that reports whether a document passes the index's filter; nil without a filter.
// A document for which the expression fails, because it lacks a field, does not pass.
func compileFilter(def *schema.Definition) (func(key string, d index.Document) bool, error) {
	if def.Filter == "" {
		return nil, nil
	}
	e, err := expr.Parse(def.Filter)
	if err != nil {
		return nil, err
	}
	var paths []string
	err = e.Bind(func(name string) (int, bool) {
		path := name
		if f, ok := def.Lookup(name); ok {
			path = f.Path
		}
		if i := slices.Index(paths, path); i >= 0 {
			return i, true
		}
		paths = append(paths, path)
		return len(paths) - 1, true
	})
	if err != nil {
		return nil, err
	}
	return func(key string, d index.Document) bool {
		return e.Holds(&filterRow{key, d, paths})
	}, nil
}

// filterRow is a document as the filter expression of an index sees it.
type filterRow struct {
	key   string
	doc   index.Document
	paths []string // by slot
}

// Get implements expr.Row.
func (r *filterRow) Get(slot int) value.Value {
	if r.paths[slot] == keyPath {
		return value.Str(r.key)
	}
	if v, ok := r.doc.Text(r.paths[slot]); ok {
		return value.Str(string(v))
	}
	return value.Value{}
}

// MatchedTerms implements expr.Row: there is no query.
func (r *filterRow) MatchedTerms(int) []string { return nil }
