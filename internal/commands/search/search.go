// Package search has the commands of the query engine, FT.*. This file has the table and the service; create.go
// makes, changes and drops indexes, temporary.go drops unused ones, names.go has aliases, dictionaries and synonyms,
// info.go describes an index, config.go has the directives and FT.CONFIG, old.go the commands of RediSearch 1.
//
// A query passes through tree.go (its tree, from a request), run.go (its plan and how rows are loaded), and query.go (FT.SEARCH) or
// aggregate.go (FT.AGGREGATE and FT.CURSOR); load.go reads fields of documents, mark.go highlights.
//
// Indexes are in a catalog (package catalog), which is a service of the server. The journal and checkpoints have
// them as commands that make them again.
package search

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/search/catalog"
	"github.com/atomredis/atomredis/internal/search/fanout"
	"github.com/atomredis/atomredis/internal/search/index"
	"github.com/atomredis/atomredis/internal/search/schema"
	"github.com/atomredis/atomredis/resp"
)

func init() { register(commands) }

// register registers commands of a module that has their names in capitals.
func register(list []*command.Command) {
	for _, cmd := range list {
		for _, sub := range cmd.Subs {
			sub.Capital = true
		}
		cmd.Capital = true
	}
	command.Register(list)
}

const (
	reads  = command.ReadOnly | command.Module | command.ListsCategories
	writes = command.Write | command.Module | command.ListsCategories
	grows  = writes | command.DenyOOM
	// makes are the flags of commands that make or change indexes; nothing else runs meanwhile.
	makes = grows | command.WholeKeyspace
	drops = writes | command.WholeKeyspace

	// queries are the flags of commands that run a query. They need all keys loaded, and lock one document at a time
	// themselves; in a transaction they run under its guard.
	queries = reads | command.AllKeys | command.FollowsKeys

	dangerous = command.CatSearch | command.CatSlow | command.CatDangerous
)

// Host is what the commands of this package need of the server.
type Host interface {
	command.Host
	Config() *config.Config
}

// service is the catalog of a server.
type service struct {
	*catalog.Catalog
	host      command.Host
	counters  counters
	temporary temporaries
	defs      definitions

	// For questions to and from other shards.
	calls   *fanout.Caller
	calling sync.Once
	asking  sync.WaitGroup
	places  chan struct{} // a place is taken while this shard computes its part of a query
}

var serviceID = command.RegisterService(func() command.Service { return &service{} })

// serviceOf returns the query engine of a server.
func serviceOf(h command.Host) *service { return h.Service(serviceID).(*service) }

// catalogOf returns the catalog of the command's server.
func catalogOf(c *command.Ctx) *catalog.Catalog { return serviceOf(c.Host).Catalog }

// Start implements command.Service.
func (s *service) Start(h command.Host) {
	s.host = h
	s.Catalog = catalog.New(h.Keyspace(), h.Log(), func() index.Options { return documentOptions(h) })
	if host, ok := h.(Host); ok {
		host.Config().Follow(func(*config.Settings) { s.Reconfigured() }, "search-min-stem-len", "search-min-phonetic-term-len")
	}
	s.OnEmptied = s.emptied
	s.places = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1))
}

// Loaded implements command.Service: indexes notice loaded keys by themselves.
func (s *service) Loaded() {}

// Stored implements command.Keeper.
func (s *service) Stored() []byte {
	var r engine.Record
	s.Each(r.Add)
	s.defs.each(func(k catalog.Item, st stamp) { r.Add(stampArgs(k, st)...) })
	return r.Bytes()
}

// Restore implements command.Keeper.
func (s *service) Restore(commands []byte) error {
	s.Clear()
	s.defs.reset()
	for p := (&resp.Parser{MaxBulk: resp.AnyBulk}); len(commands) > 0; {
		args, n, err := p.Next(commands, nil)
		if err != nil || len(args) == 0 {
			return fmt.Errorf("search: the stored definitions are damaged: %w", err)
		}
		commands = commands[n:]
		if command.EqualFold(args[0], "changes") {
			continue // of another service
		}
		if err := s.repeat(args); err != nil {
			return fmt.Errorf("search: %w", err)
		}
	}
	return nil
}

// repeat executes a command of Stored.
func (s *service) repeat(args [][]byte) error {
	x := s.Lookup(string(args[min(1, len(args)-1)]))
	switch name := string(args[0]); {
	case name == string(createWord):
		def, err := schema.Parse(string(args[1]), args[2:], checks)
		if err != nil {
			return err
		}
		made, err := s.define(def, copyArgs(args))
		if err != nil {
			return err
		}
		s.FillWhenLoaded(made)
	case name == string(aliasAddWord) && len(args) == 3:
		if of := s.Lookup(string(args[2])); of != nil {
			s.SetAlias(string(args[1]), of)
		}
	case name == "FT.SYNUPDATE" && x != nil && len(args) > 3:
		x.UpdateSynonyms(string(args[2]), words(args[3:]))
	case name == "FT.DICTADD" && len(args) > 2:
		s.AddToDictionary(string(args[1]), words(args[2:]))
	case name == string(stampWord):
		return s.setStamp(args)
	default:
		return fmt.Errorf("an unknown command %q is stored", name)
	}
	return nil
}

// define adds an index. A TEMPORARY one is dropped when it is unused. define keeps args, the arguments of FT.CREATE.
func (s *service) define(def *schema.Definition, args [][]byte) (*catalog.Index, error) {
	filter, err := compileFilter(def)
	if err != nil {
		return nil, err
	}
	x := s.Create(def, filter, append(slices.Clone(args[:2]), def.Lasting(args[2:])...))
	s.watch(x)
	return x, nil
}

// Following implements command.Service: the indexes follow changes of keys from any source.
func (s *service) Following() {}

// Close implements command.Service.
func (s *service) Close() {
	s.temporary.close()
	s.asking.Wait()
	if s.calls != nil {
		s.calls.Close()
	}
	s.Catalog.Close()
}

// Events implements command.Service: the engine itself reports changes to the indexes.
func (s *service) Events() engine.EventClass { return 0 }

// Heard implements command.Service.
func (s *service) Heard(command.Client, bool, string, int, string) {}

// NewClient implements command.Service.
func (s *service) NewClient() any { return nil }

// Gone implements command.Service.
func (s *service) Gone(command.Client) {}

// MustSee implements command.Service.
func (s *service) MustSee(command.Client) bool { return false }

// entry returns an entry of the table.
func entry(name, since string, arity int, flags command.Flag, acl command.Category, summary, syntax, complexity string,
	do func(*command.Ctx)) *command.Command {
	return &command.Command{Name: name, Group: "search", Since: since, Arity: arity, Flags: flags, ACL: command.CatSearch | acl,
		Summary: summary, Syntax: syntax, Complexity: complexity, Do: do}
}

const (
	createSyntax = "index [ON <HASH | JSON>] [INDEXALL <ENABLE | DISABLE>] [PREFIX count prefix [prefix ...]] [FILTER filter] " +
		"[LANGUAGE default_lang] [LANGUAGE_FIELD lang_attribute] [SCORE default_score] [SCORE_FIELD score_attribute] " +
		"[PAYLOAD_FIELD payload_attribute] [MAXTEXTFIELDS] [TEMPORARY seconds] [NOOFFSETS] [NOHL] [NOFIELDS] [NOFREQS] " +
		"[STOPWORDS count [stopword [stopword ...]]] [SKIPINITIALSCAN] SCHEMA <field_name [AS alias] <TEXT | TAG | NUMERIC | GEO | " +
		"GEOSHAPE | VECTOR> [WITHSUFFIXTRIE] [INDEXEMPTY] [INDEXMISSING] [SORTABLE [UNF]] [NOINDEX] [field_name [AS alias] " +
		"<TEXT | TAG | NUMERIC | GEO | GEOSHAPE | VECTOR> [WITHSUFFIXTRIE] [INDEXEMPTY] [INDEXMISSING] [SORTABLE [UNF]] [NOINDEX] ...]>"
	aggregateSyntax = "index query [VERBATIM] [<WITHCOUNT | WITHOUTCOUNT>] [LOAD count field [field ...]] [TIMEOUT timeout] [GROUPBY nargs property [property ...] " +
		"[REDUCE function nargs arg [arg ...] [AS name] [REDUCE function nargs arg [arg ...] [AS name] ...]]] [SORTBY nargs [property " +
		"<ASC | DESC> [property <ASC | DESC> ...]] [MAX num]] [APPLY expression AS name [APPLY expression AS name ...]] [LIMIT offset num] " +
		"[FILTER filter] [WITHCURSOR [COUNT read_size] [MAXIDLE idle_time]] [PARAMS nargs name value [name value ...]] [DIALECT dialect]"
	searchSyntax = "index query [NOCONTENT] [VERBATIM] [NOSTOPWORDS] [WITHSCORES] [WITHPAYLOADS] [WITHSORTKEYS] [FILTER numeric_field " +
		"min max [FILTER numeric_field min max ...]] [GEOFILTER geo_field lon lat radius <m | km | mi | ft> [GEOFILTER geo_field lon " +
		"lat radius <m | km | mi | ft> ...]] [INKEYS count key [key ...]] [INFIELDS count field [field ...]] [RETURN count " +
		"<identifier [AS property]> [<identifier [AS property]> ...]] [SUMMARIZE [FIELDS count field [field ...]] [FRAGS num] " +
		"[LEN fragsize] [SEPARATOR separator]] [HIGHLIGHT [FIELDS count field [field ...]] [TAGS open close]] [SLOP slop] " +
		"[TIMEOUT timeout] [INORDER] [LANGUAGE language] [EXPANDER expander] [SCORER scorer] [EXPLAINSCORE] [PAYLOAD payload] " +
		"[SORTBY sortby [<ASC | DESC>]] [LIMIT offset num] [PARAMS nargs name value [name value ...]] [DIALECT dialect]"
	hybridSyntax = "index SEARCH query [SCORER scorer] [YIELD_SCORE_AS yield_score_as] VSIM field vector [<KNN count K k " +
		"[EF_RUNTIME ef_runtime] [SHARD_K_RATIO shard_k_ratio] [YIELD_SCORE_AS yield_score_as] | RANGE count RADIUS " +
		"radius [EPSILON epsilon] [YIELD_SCORE_AS yield_score_as]>] [FILTER filter] [COMBINE <RRF count [CONSTANT " +
		"constant] [WINDOW window] [YIELD_SCORE_AS yield_score_as] | LINEAR count [ALPHA alpha BETA beta] [WINDOW " +
		"window] [YIELD_SCORE_AS yield_score_as]>] [LIMIT offset num] [<SORTBY sortby [<ASC | DESC>] | NOSORT>] " +
		"[EXPLAINSCORE] [PARAMS nargs name value [name value ...]] [TIMEOUT timeout] [FORMAT format] [LOAD count field " +
		"[field ...]] [GROUPBY nargs property [property ...] [REDUCE function nargs arg [arg ...] [AS name] " +
		"[REDUCE function nargs arg [arg ...] [AS name] ...]]] [APPLY expression AS name [APPLY expression AS name ...]] " +
		"[WITHCURSOR [COUNT read_size] [MAXIDLE idle_time]]"
	alterSyntax = "index [SKIPINITIALSCAN] SCHEMA ADD field options"
	scanning    = "O(N), where N is the number of keys that the index covers; many are indexed beside other commands"
)

var commands = []*command.Command{
	entry("ft._aliasaddifnx", "1.0.0", 3, makes, 0, "Gives an index another name unless it has it", "alias index", "O(1)",
		defining(func(c *command.Ctx) { aliasAdd(c, true) })),
	entry("ft._aliasdelifx", "1.0.0", 2, drops, 0, "Takes another name from an index if there is one", "alias", "O(1)",
		defining(func(c *command.Ctx) { aliasDel(c, true) })),
	entry("ft._alterifnx", "1.0.0", -5, makes, 0, "Adds fields to an index unless it has the first one", alterSyntax, scanning,
		defining(func(c *command.Ctx) { alter(c, true) })),
	entry("ft._createifnx", "1.0.0", -5, makes, 0, "Creates an index unless there is one", createSyntax, scanning,
		defining(func(c *command.Ctx) { create(c, true) })),
	entry("ft._dropifx", "1.0.0", -2, drops, command.CatWrite, "Drops an index if there is one", "index [KEEPDOCS]",
		"O(1), or O(N) if keys are deleted", defining(func(c *command.Ctx) { drop(c, true, true) })),
	entry("ft._dropindexifx", "2.0.0", -2, drops, command.CatWrite|dangerous, "Drops an index if there is one", "index [DD]",
		"O(1), or O(N) if keys are deleted", defining(func(c *command.Ctx) { drop(c, true, false) })),
	entry("ft._stamp", "8.12.0", 7, makes, command.CatAdmin, "Gives a definition the version that it has in a cluster; only in journals",
		"kind name count shard gone deletes", "O(1)", stampCommand),
	entry("ft._list", "2.0.0", -1, reads, command.CatSlow|command.CatAdmin, "Lists the indexes", "", "O(N), where N is the number of indexes",
		listIndexes),
	{Name: "ft.add", Group: "search", Since: "1.0.0", Arity: -1, Flags: grows, ACL: command.CatSearch | command.CatWrite,
		Keys:       command.Keys("i2+r0/1/0[RW,INSERT]"),
		Summary:    "Stores a document as a hash",
		Syntax:     "index key score [REPLACE [PARTIAL] [NOCREATE]] [LANGUAGE language] [PAYLOAD payload] [IF condition] FIELDS field value [field value ...]",
		Complexity: "O(N), where N is the number of fields", Do: add},
	entry("ft.aggregate", "1.1.0", -3, queries, command.CatRead, "Groups, computes and sorts what a query finds in an index", aggregateSyntax,
		"O(N), where N is the number of documents that match", counted(aggregateCommand, false)),
	entry("ft.aliasadd", "1.0.0", 3, makes, 0, "Gives an index another name", "alias index", "O(1)",
		defining(func(c *command.Ctx) { aliasAdd(c, false) })),
	entry("ft.aliasdel", "1.0.0", 2, drops, 0, "Takes another name from an index", "alias", "O(1)",
		defining(func(c *command.Ctx) { aliasDel(c, false) })),
	entry("ft.aliaslist", "8.10.0", 2, reads, 0, "Lists the other names of an index", "index", "O(N), where N is the number of aliases",
		aliasList),
	entry("ft.aliasupdate", "1.0.0", 3, makes, 0, "Gives an index a name that another one may have had", "alias index", "O(1)", defining(aliasUpdate)),
	entry("ft.alter", "1.0.0", -5, makes, 0, "Adds fields to an index", alterSyntax, scanning, defining(func(c *command.Ctx) { alter(c, false) })),
	{Name: "ft.config", Group: "search", Since: "1.0.0", Arity: -2, Flags: reads, ACL: command.CatSearch | command.CatAdmin,
		Summary: "Shows and changes the configuration of the query engine", Complexity: "O(1)", Subs: []*command.Command{
			{Name: "ft.config|get", Group: "search", Since: "1.0.0", Arity: -3, Flags: reads, Summary: "Shows a setting", Syntax: "option",
				Complexity: "O(1)", Do: configGet},
			{Name: "ft.config|help", Group: "search", Since: "1.0.0", Arity: -3, Flags: reads, Summary: "Describes a setting", Syntax: "option",
				Complexity: "O(1)", Do: configHelp},
			{Name: "ft.config|set", Group: "search", Since: "1.0.0", Arity: -3, Flags: writes, Summary: "Changes a setting",
				Syntax: "option value", Complexity: "O(1)", Do: configSet},
		}},
	entry("ft.create", "1.0.0", -5, makes, 0, "Creates an index", createSyntax, scanning, defining(func(c *command.Ctx) { create(c, false) })),
	{Name: "ft.cursor", Group: "search", Since: "1.1.0", Arity: -2, Flags: reads, ACL: command.CatSearch | command.CatRead,
		Summary: "Goes on with the results of FT.AGGREGATE", Complexity: "Depends on the sub-command", Subs: []*command.Command{
			{Name: "ft.cursor|del", Group: "search", Since: "1.1.0", Arity: -4, Flags: reads, Summary: "Ends a cursor", Syntax: "index cursor_id",
				Complexity: "O(1)", Do: cursorCommand(cursorDel)},
			{Name: "ft.cursor|gc", Group: "search", Since: "1.1.0", Arity: -4, Flags: reads, Summary: "Collects cursors whose time is up",
				Syntax: "index cursor_id", Complexity: "O(1)", Do: cursorCommand(cursorGC)},
			{Name: "ft.cursor|read", Group: "search", Since: "1.1.0", Arity: -4, Flags: queries, Summary: "Reads the next rows of a cursor",
				Syntax: "index cursor_id [COUNT read_size]", Complexity: "O(N), where N is the number of rows", Do: counted(cursorCommand(cursorRead), true)},
		}},
	{Name: "ft.del", Group: "search", Since: "1.0.0", Arity: -3, Flags: writes, ACL: command.CatSearch | command.CatWrite,
		Keys:    command.Keys("i2+r0/1/0[RW,DELETE]"),
		Summary: "Deletes the key of a document", Syntax: "index key [DD]", Complexity: "O(1)", Do: del},
	entry("ft.dictadd", "1.4.0", -3, makes, 0, "Adds words to a dictionary for spelling", "dict term [term ...]", "O(1) for each word", defining(dictAdd)),
	entry("ft.dictdel", "1.4.0", -3, drops, 0, "Removes words from a dictionary for spelling", "dict term [term ...]", "O(1) for each word",
		defining(dictDel)),
	entry("ft.dictdump", "1.4.0", 2, reads, 0, "Lists the words of a dictionary for spelling", "dict", "O(N), where N is their number", dictDump),
	entry("ft.drop", "1.0.0", -2, drops, command.CatWrite|dangerous, "Drops an index and deletes its keys", "index [KEEPDOCS]",
		"O(N), where N is the number of keys", defining(func(c *command.Ctx) { drop(c, false, true) })),
	entry("ft.dropindex", "2.0.0", -2, drops, command.CatWrite|dangerous, "Drops an index", "index [DD]", "O(1), or O(N) if keys are deleted",
		defining(func(c *command.Ctx) { drop(c, false, false) })),
	entry("ft.explain", "1.0.0", -3, reads, 0, "Shows how a query is understood", "index query [DIALECT dialect]",
		"O(N), where N is the length of the query", explain),
	entry("ft.explaincli", "1.0.0", -3, reads, 0, "Shows how a query is understood, line by line", "index query [DIALECT dialect]",
		"O(N), where N is the length of the query", explainLines),
	entry("ft.get", "1.0.0", -1, reads|command.FollowsKeys, command.CatRead, "Returns the fields of a document", "index key",
		"O(N), where N is the number of fields", get(false)),
	entry("ft.hybrid", "8.4.4", -7, queries, command.CatRead, "Fuses the results of a search of text and of one of vectors", hybridSyntax,
		"O(N), where N is the number of documents that match the text", counted(hybridCommand, false)),
	entry("ft.info", "1.0.0", 2, reads, 0, "Describes an index", "index", "O(N), where N is the number of fields and terms", info),
	entry("ft.mget", "1.0.0", -1, reads|command.FollowsKeys, command.CatRead, "Returns the fields of documents", "index key [key ...]",
		"O(N), where N is the number of fields of all", get(true)),
	entry("ft.profile", "2.2.0", -5, queries, command.CatRead, "Runs a query and shows where its time went",
		"index <SEARCH | AGGREGATE | HYBRID> [LIMITED] QUERY query", "O(N), where N is the number of documents that match", profile),
	entry("ft.search", "1.0.0", -3, queries, command.CatRead, "Finds the documents of an index that a query matches", searchSyntax,
		"O(N), where N is the number of documents that match", counted(searchCommand, false)),
	entry("ft.spellcheck", "1.4.0", -3, queries, 0, "Suggests words for those of a query that no document has",
		"index query [DISTANCE distance] [TERMS <INCLUDE | EXCLUDE> dictionary [terms [terms ...]]] [DIALECT dialect]",
		"O(N), where N is the number of terms", spellCheck),
	entry("ft.synadd", "1.2.0", -1, grows, 0, "Is no longer supported: see FT.SYNUPDATE", "", "O(1)", synAdd),
	entry("ft.syndump", "1.2.0", 2, reads, 0, "Lists the words of an index that mean the same", "index", "O(N), where N is their number", synDump),
	entry("ft.synupdate", "1.2.0", -4, makes, 0, "Adds words to a group of an index that mean the same",
		"index synonym_group_id [SKIPINITIALSCAN] term [term ...]", scanning, defining(synUpdate)),
	entry("ft.tagvals", "1.0.0", 3, reads, command.CatRead|command.CatSlow|command.CatDangerous, "Lists the tags of a field", "index field_name",
		"O(N), where N is the number of tags", tagVals),
}
