package search

import (
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/search/catalog"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/spell"
	"github.com/atomredis/atomredis/internal/search/text"
)

// listIndexes is FT._LIST.
func listIndexes(c *command.Ctx) {
	if len(c.Args) > 2 {
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	list := catalogOf(c).List()
	c.W.Set(len(list))
	for _, x := range list {
		c.W.Simple(x.Name)
	}
}

var (
	aliasAddWord    = []byte("FT._ALIASADDIFNX")
	aliasDelWord    = []byte("FT._ALIASDELIFX")
	aliasUpdateWord = []byte("FT.ALIASUPDATE")
)

// aliasAdd is FT.ALIASADD; quiet is FT._ALIASADDIFNX, which accepts an existing alias.
func aliasAdd(c *command.Ctx, quiet bool) {
	cat, alias := catalogOf(c), string(c.Args[1])
	x := aliased(c)
	switch {
	case x == nil:
		return
	case cat.Alias(alias) == nil:
		cat.SetAlias(alias, x)
		c.Journal(aliasAddWord, c.Args[1], c.Args[2])
		note(c, catalog.AliasItem, alias, false, false)
	case !quiet:
		c.Err(coded(query.IndexExists, "Alias already exists"))
		return
	}
	c.W.OK()
}

// aliasUpdate is FT.ALIASUPDATE.
func aliasUpdate(c *command.Ctx) {
	if x := aliased(c); x != nil {
		catalogOf(c).SetAlias(string(c.Args[1]), x)
		c.Journal(aliasUpdateWord, c.Args[1], c.Args[2])
		note(c, catalog.AliasItem, string(c.Args[1]), false, false)
		c.W.OK()
	}
}

// aliased returns the index that gets an alias. On an error it writes the reply and returns nil.
func aliased(c *command.Ctx) *catalog.Index {
	cat, x := catalogOf(c), find(c, c.Args[2])
	switch {
	case x == nil:
		return nil
	case cat.Named(string(c.Args[2])) == nil:
		c.Err(coded(query.NoIndex, "Unknown index name (or name is an alias itself)"))
		return nil
	case cat.Named(string(c.Args[1])) != nil:
		c.Err(coded(query.AliasConflict, "Alias conflicts with an existing index name"))
		return nil
	}
	return x
}

// aliasDel is FT.ALIASDEL; quiet is FT._ALIASDELIFX, which accepts a missing alias.
func aliasDel(c *command.Ctx, quiet bool) {
	cat, alias := catalogOf(c), string(c.Args[1])
	if cat.Alias(alias) == nil {
		switch {
		case quiet:
			c.W.OK()
		case cat.Named(alias) != nil:
			c.Err(coded(query.NoIndex, "Alias does not belong to provided spec"))
		default:
			c.Err("Alias does not exist")
		}
		return
	}
	cat.SetAlias(alias, nil)
	c.Journal(aliasDelWord, c.Args[1])
	note(c, catalog.AliasItem, alias, true, false)
	c.W.OK()
}

// aliasList is FT.ALIASLIST. It accepts no alias in place of an index.
func aliasList(c *command.Ctx) {
	if catalogOf(c).Named(string(c.Args[1])) == nil {
		c.Err(noSuchIndex(c.Args[1]))
		return
	}
	if x := find(c, c.Args[1]); x != nil {
		names := catalogOf(c).Aliases(x)
		c.W.Set(len(names))
		for _, name := range names {
			c.W.BulkString(name)
		}
	}
}

// words returns arguments as texts.
func words(args [][]byte) []string {
	list := make([]string, len(args))
	for i, a := range args {
		list[i] = string(a)
	}
	return list
}

// dictAdd is FT.DICTADD.
func dictAdd(c *command.Ctx) {
	c.W.Int(int64(catalogOf(c).AddToDictionary(string(c.Args[1]), words(c.Args[2:]))))
	c.Journal(c.Args...)
	note(c, catalog.DictItem, string(c.Args[1]), false, false)
}

// dictDel is FT.DICTDEL.
func dictDel(c *command.Ctx) {
	c.W.Int(int64(catalogOf(c).RemoveFromDictionary(string(c.Args[1]), words(c.Args[2:]))))
	c.Journal(c.Args...)
	note(c, catalog.DictItem, string(c.Args[1]), !catalogOf(c).HasDictionary(string(c.Args[1])), false)
}

// dictDump is FT.DICTDUMP. A dictionary that does not exist is empty.
func dictDump(c *command.Ctx) {
	var list []string
	catalogOf(c).Dictionary(string(c.Args[1]), func(d *spell.Dict) { list = d.Words() })
	c.W.Set(len(list))
	for _, word := range list {
		c.W.BulkString(word)
	}
}

// synAdd is FT.SYNADD.
func synAdd(c *command.Ctx) { c.Err("No longer supported, use FT.SYNUPDATE") }

// synUpdate is FT.SYNUPDATE.
func synUpdate(c *command.Ctx) {
	x := find(c, c.Args[1])
	if x == nil {
		return
	}
	terms, skip := c.Args[3:], false
	if command.EqualFold(terms[0], "skipinitialscan") {
		terms, skip = terms[1:], true
	}
	if len(terms) == 0 {
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	if refused := x.UpdateSynonyms(string(c.Args[2]), words(terms)); refused != "" {
		c.Err(command.Error(refused))
		return
	}
	if !skip {
		catalogOf(c).Fill(c.G, x)
	}
	c.Journal(c.Args...)
	note(c, catalog.IndexItem, x.Name, false, false)
	c.W.OK()
}

// synDump is FT.SYNDUMP.
func synDump(c *command.Ctx) {
	x := find(c, c.Args[1])
	if x == nil {
		return
	}
	synonyms := x.Synonyms()
	c.W.Map(synonyms.Len())
	for word, groups := range synonyms.All {
		c.W.BulkString(word)
		c.W.Array(len(groups))
		for _, group := range groups {
			c.W.BulkString(group[len(text.Group):])
		}
	}
}

// tagVals is FT.TAGVALS.
func tagVals(c *command.Ctx) {
	x := find(c, c.Args[1])
	if x == nil {
		return
	}
	f, ok := x.Definition().Lookup(string(c.Args[2]))
	switch {
	case !ok:
		c.Err(coded(query.BadAttribute, "No such field"))
		return
	case f.Kind != query.TagKind:
		c.Err(coded(query.BadAttribute, "Not a tag field"))
		return
	}
	if !spread(c, func(f *fan) { f.tags() }) {
		writeTags(c, x.Tags(f.Name, hidden(c.Host)))
	}
}

func writeTags(c *command.Ctx, tags []string) {
	c.W.Set(len(tags))
	for _, tag := range tags {
		c.W.BulkString(tag)
	}
}
