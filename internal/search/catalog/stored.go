package catalog

import (
	"maps"
	"slices"

	"github.com/atomredis/atomredis/internal/search/text"
)

// Item names a part of a catalog: an index with its synonyms, an alias or a dictionary.
type Item struct{ Kind, Name string }

// The kinds of items.
const (
	IndexItem = "index"
	AliasItem = "alias"
	DictItem  = "dict"
)

// Items calls do with all items, each with the commands that make it. Aliases follow their indexes.
func (c *Catalog) Items(do func(it Item, commands [][][]byte)) {
	for _, x := range c.List() {
		commands := [][][]byte{c.Args(x)}
		groups := map[string][]string{}
		for word, of := range x.Synonyms().All {
			for _, group := range of {
				groups[group] = append(groups[group], word)
			}
		}
		for _, group := range slices.Sorted(maps.Keys(groups)) {
			args := [][]byte{synonymsWord, []byte(x.Name), []byte(group[len(text.Group):])}
			slices.Sort(groups[group])
			commands = append(commands, append(args, Bytes(groups[group])...))
		}
		do(Item{IndexItem, x.Name}, commands)
		for _, alias := range c.Aliases(x) {
			do(Item{AliasItem, alias}, [][][]byte{{aliasWord, []byte(alias), []byte(x.Name)}})
		}
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, name := range slices.Sorted(maps.Keys(c.dicts)) {
		do(Item{DictItem, name}, [][][]byte{append([][]byte{dictionaryWord, []byte(name)}, Bytes(c.dicts[name].Words())...)})
	}
}

// Each calls do with the arguments of the commands that make the catalog again, in their order.
func (c *Catalog) Each(do func(args ...[]byte)) {
	c.Items(func(_ Item, commands [][][]byte) {
		for _, args := range commands {
			do(args...)
		}
	})
}

// Args returns the command that makes an index, which is not changed.
func (c *Catalog) Args(x *Index) [][]byte {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return x.args
}

// The names of the commands.
var (
	synonymsWord   = []byte("FT.SYNUPDATE")
	aliasWord      = []byte("FT._ALIASADDIFNX")
	dictionaryWord = []byte("FT.DICTADD")
)

// Bytes returns texts as arguments.
func Bytes(texts []string) [][]byte {
	list := make([][]byte, len(texts))
	for i, t := range texts {
		list[i] = []byte(t)
	}
	return list
}
